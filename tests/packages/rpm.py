"""The RPM packages: installed into an empty root, their files and scripts looked at, and
removed."""

import gzip
import os
import stat
import subprocess

import licences
import limits
import shell

HEADLESS = {
    "/usr/bin/apoidea",
    "/etc/apoidea/apoidea.toml",
    "/usr/lib/systemd/system/apoidea.service",
    "/usr/lib/systemd/user/apoidea.service",
    "/usr/share/man/man1/apoidea.1.gz",
    "/usr/share/man/man1/apoidea-run.1.gz",
    "/usr/share/bash-completion/completions/apoidea",
    "/usr/share/zsh/site-functions/_apoidea",
    "/usr/share/fish/vendor_completions.d/apoidea.fish",
    "/etc/apoidea",
}
FULL = HEADLESS | {
    "/usr/bin/apoidea-desktop",
    "/usr/share/applications/org.apoidea.desktop.desktop",
    "/etc/xdg/autostart/org.apoidea.desktop.desktop",
    "/usr/share/metainfo/org.apoidea.desktop.metainfo.xml",
    "/usr/share/icons/hicolor/128x128/apps/apoidea.png",
    "/usr/share/icons/hicolor/scalable/apps/apoidea.svg",
    "/usr/share/xscreensaver/config/apoidea.xml",
    "/usr/libexec/xscreensaver/apoidea",
}
DISABLE = ["disable apoidea.service", "--global disable apoidea.service"]
# What each script asks of systemd where that runs, and where it does not, by its argument: how many
# versions will be left.
SCRIPTS = {
    ("POSTIN", 1): (["daemon-reload"], []),
    ("POSTIN", 2): (["daemon-reload"], []),
    ("PREUN", 0): (["stop apoidea.service", *DISABLE], DISABLE),
    ("PREUN", 1): ([], []),
    ("POSTUN", 0): (["daemon-reload"], []),
    ("POSTUN", 1): (["daemon-reload", "try-restart apoidea.service"], []),
}


def check(dist, work):
    for name, expected in (("apoidea-headless", HEADLESS), ("apoidea", FULL)):
        package = shell.only(dist, f"{name}-{shell.version()}-1.x86_64.rpm")
        check_package(name, package, expected, dist, work / name)


def check_package(name, package, expected, dist, root):
    listed = set(shell.run("rpm", "--query", "--list", "--package", package).split())
    assert expected <= listed, f"missing: {expected - listed}"
    strangers = {path for path in listed if "apoidea" not in path}
    assert not strangers, f"not ours: {strangers}"
    configuration = shell.run("rpm", "--query", "--configfiles", "--package", package).split()
    assert set(configuration) == {path for path in listed if path.startswith("/etc/")} - {
        "/etc/apoidea"
    }
    assert f"/usr/share/licenses/{name}/third-party-licences.txt.gz" in shell.run(
        "rpm", "--query", "--licensefiles", "--package", package
    )
    needs = shell.run("rpm", "--query", "--requires", "--package", package)
    assert ("libwebkit2gtk-4.1.so.0()(64bit)" in needs) == (name == "apoidea"), needs
    check_scripts(package, root.with_suffix(".scripts"))
    check_root(name, package, listed, dist, root)


def check_scripts(package, work):
    """Each is run as rpm would, before a systemd that only writes down what it is asked for, and
    without one."""
    work.mkdir()
    systemctl, asked = work / "systemctl", work / "asked"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >>{asked}\n')
    systemctl.chmod(systemctl.stat().st_mode | stat.S_IXUSR)
    for (part, left), expected in SCRIPTS.items():
        systems = ("mkdir -p /run/systemd/system", ":")
        script = shell.run("rpm", "--query", "--queryformat", f"%{{{part}}}", "--package", package)
        for system, calls in zip(systems, expected, strict=True):
            asked.write_text("")
            command = (
                f"mount -t tmpfs none /run && {system} && PATH={work}:$PATH && exec sh -s {left}"
            )
            subprocess.run(
                ["unshare", "--mount", "sh", "-c", command], input=script, text=True, check=True
            )
            assert asked.read_text().splitlines() == calls, f"{part} {left}: {asked.read_text()}"


def check_root(name, package, listed, dist, root):
    """Scripts are left out: an empty root has no shell."""
    root.mkdir()
    rpm = ["rpm", f"--root={root}"]
    shell.run(*rpm, "--initdb")
    shell.run(*rpm, "--install", "--nodeps", "--noscripts", package)
    shell.run(*rpm, "--verify", "--nodeps", name)
    for path in listed:
        assert os.path.lexists(f"{root}{path}"), path
    if name == "apoidea":
        collected = root / "usr/share/licenses/apoidea/third-party-licences.txt.gz"
        licences.check(gzip.decompress(collected.read_bytes()).decode(), dist, "linux")
    else:
        limits.check_headless(root, [path.lstrip("/") for path in listed])
    assert shell.version() in shell.run(f"{root}/usr/bin/apoidea", "--version")
    shell.run(*rpm, "--erase", "--nodeps", "--noscripts", name)
    left = [path for path in listed if os.path.lexists(f"{root}{path}")]
    assert not left, f"removing left {left}"
