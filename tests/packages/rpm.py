"""The RPM packages: installed into an empty root, their files and scripts looked at, and removed."""

import os

import limits
import shell

HEADLESS = {
    "/usr/bin/apoidea", "/etc/apoidea/apoidea.toml", "/usr/lib/systemd/system/apoidea.service", "/usr/lib/systemd/user/apoidea.service",
    "/usr/share/man/man1/apoidea.1.gz", "/usr/share/man/man1/apoidea-run.1.gz", "/usr/share/bash-completion/completions/apoidea",
    "/usr/share/zsh/site-functions/_apoidea", "/usr/share/fish/vendor_completions.d/apoidea.fish",
}
FULL = HEADLESS | {
    "/usr/bin/apoidea-desktop", "/usr/share/applications/org.apoidea.desktop.desktop", "/etc/xdg/autostart/org.apoidea.desktop.desktop",
    "/usr/share/metainfo/org.apoidea.desktop.metainfo.xml", "/usr/share/icons/hicolor/128x128/apps/apoidea.png",
    "/usr/share/icons/hicolor/scalable/apps/apoidea.svg", "/usr/share/xscreensaver/config/apoidea.xml", "/usr/libexec/xscreensaver/apoidea",
}


def check(dist, work):
    for name, expected in (("apoidea-headless", HEADLESS), ("apoidea", FULL)):
        package = shell.only(dist, f"{name}-{shell.version()}-1.x86_64.rpm")
        check_package(name, package, expected, work / name)


def check_package(name, package, expected, root):
    listed = set(shell.run("rpm", "--query", "--list", "--package", package).split())
    assert expected <= listed, f"missing: {expected - listed}"
    strangers = {path for path in listed if "apoidea" not in path}
    assert not strangers, f"not ours: {strangers}"
    configuration = shell.run("rpm", "--query", "--configfiles", "--package", package).split()
    assert set(configuration) == {path for path in listed if path.startswith("/etc/")}
    assert f"/usr/share/licenses/{name}/third-party-licences.txt.gz" in shell.run("rpm", "--query", "--licensefiles", "--package", package)
    needs = shell.run("rpm", "--query", "--requires", "--package", package)
    assert ("libwebkit2gtk-4.1.so.0()(64bit)" in needs) == (name == "apoidea"), needs
    scripts = shell.run("rpm", "--query", "--scripts", "--package", package)
    for part in ("postinstall", "preuninstall", "postuninstall"):
        assert part in scripts, scripts
    check_root(name, package, listed, root)


def check_root(name, package, listed, root):
    """Scripts are left out: an empty root has no shell. The package's own are the same few lines as Debian's."""
    root.mkdir()
    rpm = ["rpm", f"--root={root}"]
    shell.run(*rpm, "--initdb")
    shell.run(*rpm, "--install", "--nodeps", "--noscripts", package)
    shell.run(*rpm, "--verify", "--nodeps", name)
    for path in listed:
        assert os.path.lexists(f"{root}{path}"), path
    if name == "apoidea-headless":
        limits.check_headless(root, [path.lstrip("/") for path in listed])
    assert shell.version() in shell.run(f"{root}/usr/bin/apoidea", "--version")
    shell.run(*rpm, "--erase", "--nodeps", "--noscripts", name)
    left = [path for path in listed if os.path.lexists(f"{root}{path}")]
    assert not left, f"removing left {left}"
