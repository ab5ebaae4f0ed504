"""The Debian packages: installed into a fresh system, used, upgraded, purged."""

import gzip
import os
import re
import shlex
import shutil
import subprocess

import crawl
import licences
import limits
import shell
from kit.peer import Peer, options
from root import Root

# The highest exposure that systemd calls OK.
EXPOSURE = 4.9
PREVIOUS = "0.0.9"
# What says that the services are enabled.
ENABLED = (
    "etc/systemd/system/multi-user.target.wants/apoidea.service",
    "etc/systemd/user/default.target.wants/apoidea.service",
)


def check(dist, work):
    headless, full = (
        shell.only(dist, f"{name}_{shell.version()}_amd64.deb")
        for name in ("apoidea-headless", "apoidea")
    )
    for package in (headless, full):
        judged = shell.run("lintian", "--allow-root", "--fail-on=error,warning", package)
        assert not re.search(r"^[EW]:", judged, re.MULTILINE), judged
    check_headless(headless, previous("headless", work), work)
    check_full(headless, full, dist, work)


def previous(kind, work):
    """A package of the version before this one, from the same source."""
    folder = work / "previous"
    shell.run(
        shell.TOP / "installer/linux/deb",
        kind,
        folder,
        env=os.environ | {"APOIDEA_VERSION": PREVIOUS},
    )
    return shell.only(folder, f"*_{PREVIOUS}_amd64.deb")


def check_headless(package, previous, work):
    root = Root(work / "headless")
    before = root.files()
    root.install(previous)
    limits.check_headless(root.folder, root.files() - before)
    assert not re.search(r"lib(gtk|webkit|X11)", root.run("ldd", "/usr/bin/apoidea")), (
        "the headless peer wants a desktop"
    )
    check_units(root)
    enable(root)
    check_upgrade(root, package, work)
    purge(root, "apoidea-headless", before)


def enable(root):
    """For the computer, and for every user of it."""
    for scope in ([], ["--global"]):
        root.run("systemctl", *scope, "enable", "apoidea")
    assert all(os.path.lexists(root.folder / link) for link in ENABLED)


def purge(root, name, before):
    """What is left is what was there before the package and all that it needs; what an app has kept
    in its user's home is theirs."""
    assert all(
        os.path.lexists(root.folder / kept) for kept in ("var/lib/apoidea/identity", *ENABLED)
    )
    root.run("apt-get", "purge", "--yes", "--quiet=2", name)
    left = {path for path in root.files() - before if not path.startswith("root/")}
    assert not left, f"purging left {sorted(left)[:20]}"


def check_units(root):
    """Both units are right, and the system's is shut in."""
    for unit in ("system/apoidea.service", "user/apoidea.service"):
        words = shell.run(
            "systemd-analyze",
            "verify",
            "--man=no",
            f"--root={root.folder}",
            f"/usr/lib/systemd/{unit}",
        )
        assert "apoidea" not in words, words
    words = shell.run(
        "systemd-analyze",
        "security",
        "--offline=true",
        f"--root={root.folder}",
        "/usr/lib/systemd/system/apoidea.service",
    )
    exposure = float(re.search(r"Overall exposure level[^:]*: ([0-9.]+)", words)[1])
    assert exposure <= EXPOSURE, words
    print(f"exposure of the system's unit: {exposure}")


def check_upgrade(root, package, work):
    """A crawl that an older version began is ended by the newer one, and no page is fetched
    twice."""
    web = crawl.toyweb(work)
    try:
        shutil.copy(web.certificate, root.folder / "srv/ca.pem")
        data = root.folder / "var/lib/apoidea"
        words = ["/usr/bin/apoidea", "--data", "/var/lib/apoidea", "run"]
        words += options(crawl.settings(web, "/srv/ca.pem"))
        peer = Peer(root.start(*words, stdout=subprocess.DEVNULL), data)
        peer.api.seed(web.seeds)
        crawl.wait_until_half_done(peer)
        assert peer.stop() == 0
        identity = (data / "identity").read_bytes()
        root.install(package)
        assert shell.version() in root.run("apoidea", "--version")
        peer = Peer(root.start(*words, stdout=subprocess.DEVNULL), data)
        crawl.wait_until_done([peer])
        peer.stop()
        (root.folder / "srv/ca.pem").unlink()
        assert (data / "identity").read_bytes() == identity
        crawl.check_fetched(web)
    finally:
        web.stop()


def check_full(headless, package, dist, work):
    root = Root(work / "full")
    # What it needs is the system's and stays; that is there first, so that all else is ours.
    needs = shell.run("dpkg-deb", "--field", package, "Depends").strip()
    root.run("apt-get", "satisfy", "--yes", "--quiet=2", "--no-install-recommends", needs)
    before = root.files()
    check_change(root, headless, package)
    share = root.folder / "usr/share"
    shell.run(
        "desktop-file-validate",
        share / "applications/org.apoidea.desktop.desktop",
        root.folder / "etc/xdg/autostart/org.apoidea.desktop.desktop",
    )
    shell.run(
        "appstreamcli", "validate", "--no-net", share / "metainfo/org.apoidea.desktop.metainfo.xml"
    )
    collected = share / "doc/apoidea/third-party-licences.txt.gz"
    licences.check(gzip.decompress(collected.read_bytes()).decode(), dist, "linux")
    assert (
        os.readlink(root.folder / "usr/libexec/xscreensaver/apoidea") == "../../bin/apoidea-desktop"
    )
    check_tray(root, work)
    purge(root, "apoidea", before)


def check_change(root, headless, package):
    """The full package takes over what the service of the other has kept, and that does not come
    back for it."""
    root.install(headless)
    enable(root)
    kept = root.folder / "var/lib/apoidea/identity"
    kept.parent.mkdir(parents=True)
    kept.write_text("a peer\n")
    root.install(package)
    root.run("dpkg", "--purge", "apoidea-headless")
    assert kept.exists() and (root.folder / "etc/apoidea/apoidea.toml").exists()


def check_tray(root, work):
    """The installed app reaches the tray, and everything that can be chosen there is chosen with
    the mouse."""
    app = work / "apoidea-desktop"
    inside = root.command("/usr/bin/apoidea-desktop", binds=("/tmp",))
    app.write_text(f'#!/bin/sh\nexec {shlex.join(inside)} "$@"\n')
    app.chmod(0o755)
    clicks = shlex.split(
        os.environ.get("APOIDEA_CLICKS", "cargo test --locked -p apoidea-desktop --test desktop")
    )
    said = shell.run(
        *clicks, "tray::", cwd=shell.TOP, env=os.environ | {"APOIDEA_DESKTOP": str(app)}
    )
    assert "1 passed" in said, said
    print("the installed app was paused, limited, snoozed, looked at and quit from its tray")
