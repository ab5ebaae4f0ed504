"""The macOS bundle: laid out here with stand-ins for the programs and for the tools of a Mac. See
also installer/macos/check."""

import os
import pathlib
import plistlib
import re
import stat
import tarfile

import shell

MACOS = shell.TOP / "installer/macos"
# As Apple's tools call them.
PROCESSORS = ("arm64", "x86_64")
LIPO = """
case "$1 $2 $3" in
"-create -output "*) out=$3; shift 3; cat "$@" >"$out" ;;
"-thin "*" -output") grep " for $2\\$" "$5" >"$4" ;;
*) exit 1 ;;
esac
"""
# What a Mac has for programs of two processors, symbols, seals, disk images and the notary. All but
# the first say what they were asked for.
NOTE = 'echo "${0##*/} $*" >>"$ASKED"'
TOOLS = {"lipo": LIPO, **dict.fromkeys(("strip", "codesign", "hdiutil", "xcrun", "ditto"), NOTE)}
CREDENTIALS = {
    "APPLE_SIGNING_IDENTITY": "us",
    "APPLE_ID": "us@example.org",
    "APPLE_PASSWORD": "secret",
    "APPLE_TEAM_ID": "team",
}
# What is asked of them for the image, with credentials and without, by how it begins.
SIGNED = [
    "codesign --force --timestamp --options runtime",
    "codesign --verify --deep --strict",
    "hdiutil create",
    "codesign --timestamp --sign us",
    "xcrun notarytool submit",
    "xcrun stapler staple",
    "xcrun stapler staple",
]
SEALED = ["codesign --force --deep --sign -", "hdiutil create"]


def check(dist, work):
    for name in ("Info.plist", "entitlements.plist", "org.apoidea.desktop.plist"):
        shell.run("plistutil", "-i", MACOS / name, "-o", work / "parsed")
    binaries = [work / processor for processor in PROCESSORS]
    for folder in binaries:
        folder.mkdir()
        for program in ("apoidea", "apoidea-desktop"):
            (folder / program).write_text(f"{program} for {folder.name}\n")
    mac = Mac(work)
    mac.run("bundle", work / "image", *binaries)
    check_layout(work / "image")
    check_info(work / "image/Apoidea.app/Contents")
    check_image(mac, work / "image")
    for processor in PROCESSORS:
        archive = work / f"{processor}.app.tar.gz"
        mac.run("update", work / "image", archive, processor)
        check_update(archive, work / "image", processor)
    mac.run("headless", work / "headless.tar.xz", *binaries)
    check_headless(work / "headless.tar.xz")


class Mac:
    """Our scripts among stand-ins for a Mac's tools."""

    def __init__(self, work):
        tools, self.asked = work / "tools", work / "asked"
        tools.mkdir()
        for name, script in TOOLS.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)
        bare = {name: value for name, value in os.environ.items() if name not in CREDENTIALS}
        self.environment = bare | {
            "PATH": f"{tools}:{os.environ['PATH']}",
            "ASKED": str(self.asked),
        }

    def run(self, script, *words, **credentials):
        """Runs one; gives what it asked of the tools."""
        self.asked.write_text("")
        shell.run(MACOS / script, *words, env=self.environment | credentials)
        return self.asked.read_text().splitlines()


def check_image(mac, folder):
    """That the image is of this folder, compressed by the best that macOS 11 reads, and that
    signing and the notary only wait for credentials."""
    for credentials, expected in ((CREDENTIALS, SIGNED), ({}, SEALED)):
        asked = mac.run("image", folder, "Apoidea.dmg", **credentials)
        assert len(asked) == len(expected) and all(map(str.startswith, asked, expected)), asked
        create = next(line for line in asked if line.startswith("hdiutil"))
        assert f"-srcfolder {folder} " in create and "-format ULMO" in create, create


def check_program(content, name, processors=PROCESSORS):
    """That it is for these processors, or for both kinds of Macs."""
    assert content == "".join(f"{name} for {processor}\n" for processor in processors), content


def check_update(archive, image, processor):
    """That it is the bundle of the image but for the other processor's program, in the one folder
    that the updater unpacks."""
    with tarfile.open(archive) as files:
        found = {member.name for member in files if not member.isdir()}
        assert found == {path for path in files_of(image) if path.startswith("Apoidea.app/")}, found
        program = files.getmember("Apoidea.app/Contents/MacOS/apoidea-desktop")
        assert program.mode & stat.S_IXUSR
        check_program(files.extractfile(program).read().decode(), "apoidea-desktop", [processor])


def files_of(folder):
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def check_headless(archive):
    folder = f"apoidea-{shell.version()}"
    with tarfile.open(archive) as files:
        names = {"apoidea", "third-party-licences.txt", "LICENSE-MIT", "LICENSE-APACHE"}
        assert set(files.getnames()) == {folder} | {f"{folder}/{name}" for name in names}, (
            files.getnames()
        )
        assert files.getmember(f"{folder}/apoidea").mode & stat.S_IXUSR
        check_program(files.extractfile(f"{folder}/apoidea").read().decode(), "apoidea")


def check_layout(image):
    expected = {
        "Applications",
        "Apoidea.app/Contents/Info.plist",
        "Apoidea.app/Contents/PkgInfo",
        "Apoidea.app/Contents/MacOS/apoidea-desktop",
        "Apoidea.app/Contents/Library/LaunchAgents/org.apoidea.desktop.plist",
        "Apoidea.app/Contents/Resources/apoidea.icns",
        "Apoidea.app/Contents/Resources/third-party-licences.txt",
        "Apoidea.app/Contents/Resources/LICENSE-MIT",
        "Apoidea.app/Contents/Resources/LICENSE-APACHE",
    }
    found = files_of(image)
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
    agent = plistlib.loads(
        (contents / "Library/LaunchAgents/org.apoidea.desktop.plist").read_bytes()
    )
    program, *words = agent["ProgramArguments"]
    assert words == ["--hidden"]
    # The image has a link to Applications, where the bundle is meant to be put.
    assert (contents.parents[1] / pathlib.Path(program).relative_to("/Applications")).exists(), (
        program
    )
    # Without an exception for the hardened runtime, which the notary would ask about.
    entitlements = plistlib.loads((MACOS / "entitlements.plist").read_bytes())
    assert set(entitlements) == {
        "com.apple.security.network.client",
        "com.apple.security.network.server",
    }
