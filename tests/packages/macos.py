"""The macOS bundle: laid out here with stand-ins for the programs and for the tools of a Mac. See also installer/macos/check."""

import os
import pathlib
import plistlib
import re
import stat
import tarfile

import shell

MACOS = shell.TOP / "installer/macos"
PROCESSORS = ("aarch64", "x86_64")
# What a Mac has for programs of two processors, for symbols and for seals.
TOOLS = {"lipo": '[ "$1 $2" = "-create -output" ] || exit 1; out=$3; shift 3; cat "$@" >"$out"', "strip": "", "codesign": ""}


def check(dist, work):
    for name in ("Info.plist", "entitlements.plist", "org.apoidea.desktop.plist"):
        shell.run("plistutil", "-i", MACOS / name, "-o", work / "parsed")
    tools = work / "tools"
    tools.mkdir()
    for name, script in TOOLS.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    binaries = [work / processor for processor in PROCESSORS]
    for folder in binaries:
        folder.mkdir()
        for program in ("apoidea", "apoidea-desktop"):
            (folder / program).write_text(f"{program} for {folder.name}\n")
    environment = os.environ | {"PATH": f"{tools}:{os.environ['PATH']}"}
    shell.run(MACOS / "bundle", work / "image", *binaries, env=environment)
    check_layout(work / "image")
    check_info(work / "image/Apoidea.app/Contents")
    shell.run(MACOS / "headless", work / "headless.tar.xz", *binaries, env=environment)
    check_headless(work / "headless.tar.xz")


def check_program(content, name):
    """That it is for both kinds of Macs."""
    assert content == "".join(f"{name} for {processor}\n" for processor in PROCESSORS), content


def check_headless(archive):
    folder = f"apoidea-{shell.version()}"
    with tarfile.open(archive) as files:
        names = {"apoidea", "third-party-licences.txt", "LICENSE-MIT", "LICENSE-APACHE"}
        assert set(files.getnames()) == {folder} | {f"{folder}/{name}" for name in names}, files.getnames()
        assert files.getmember(f"{folder}/apoidea").mode & stat.S_IXUSR
        check_program(files.extractfile(f"{folder}/apoidea").read().decode(), "apoidea")


def check_layout(image):
    expected = {
        "Applications", "Apoidea.app/Contents/Info.plist", "Apoidea.app/Contents/PkgInfo",
        "Apoidea.app/Contents/MacOS/apoidea-desktop", "Apoidea.app/Contents/Library/LaunchAgents/org.apoidea.desktop.plist",
        "Apoidea.app/Contents/Resources/apoidea.icns", "Apoidea.app/Contents/Resources/third-party-licences.txt",
        "Apoidea.app/Contents/Resources/LICENSE-MIT", "Apoidea.app/Contents/Resources/LICENSE-APACHE",
    }
    found = {str(path.relative_to(image)) for path in image.rglob("*") if path.is_symlink() or path.is_file()}
    assert found == expected, found ^ expected
    assert os.readlink(image / "Applications") == "/Applications"
    program = image / "Apoidea.app/Contents/MacOS/apoidea-desktop"
    assert program.stat().st_mode & stat.S_IXUSR
    check_program(program.read_text(), "apoidea-desktop")
    icon = (image / "Apoidea.app/Contents/Resources/apoidea.icns").read_bytes()
    assert icon[:4] == b"icns" and int.from_bytes(icon[4:8], "big") == len(icon)


def check_info(contents):
    info = plistlib.loads((contents / "Info.plist").read_bytes())
    assert info["CFBundleShortVersionString"] == info["CFBundleVersion"] == shell.version()
    assert (contents / "MacOS" / info["CFBundleExecutable"]).exists()
    assert (contents / "Resources" / info["CFBundleIconFile"]).exists()
    assert info["CFBundleIdentifier"] in (shell.TOP / "src-tauri/tauri.conf.json").read_text()
    assert info["LSUIElement"] is True, "a tray app has no icon in the Dock"
    # The system refuses a service on the local network that is not named here.
    source = (shell.TOP / "crates/overlay/src/chord/local_network.rs").read_text()
    assert info["NSBonjourServices"] == [re.search(r'SERVICE: &str = "(.*)\.local\."', source)[1]]
    agent = plistlib.loads((contents / "Library/LaunchAgents/org.apoidea.desktop.plist").read_bytes())
    program, *words = agent["ProgramArguments"]
    assert words == ["--hidden"]
    # The image has a link to Applications, where the bundle is meant to be put.
    assert (contents.parents[1] / pathlib.Path(program).relative_to("/Applications")).exists(), program
    # Without an exception for the hardened runtime, which the notary would ask about.
    entitlements = plistlib.loads((MACOS / "entitlements.plist").read_bytes())
    assert set(entitlements) == {"com.apple.security.network.client", "com.apple.security.network.server"}
