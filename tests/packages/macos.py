"""The macOS bundle: laid out here with stand-ins for the programs, which only a Mac can link. See also installer/macos/check."""

import os
import plistlib
import re
import stat

import shell

MACOS = shell.TOP / "installer/macos"


def check(dist, work):
    for name in ("Info.plist", "entitlements.plist", "org.apoidea.desktop.plist"):
        shell.run("plistutil", "-i", MACOS / name, "-o", work / "parsed")
    stand_ins = work / "programs"
    stand_ins.mkdir()
    for name in ("apoidea", "apoidea-desktop"):
        (stand_ins / name).write_text("stands for a program\n")
    image = work / "image"
    shell.run(MACOS / "bundle", image, stand_ins)
    check_layout(image)
    check_info(image / "Apoidea.app/Contents")


def check_layout(image):
    expected = {
        "Applications", "Apoidea.app/Contents/Info.plist", "Apoidea.app/Contents/PkgInfo", "Apoidea.app/Contents/MacOS/apoidea",
        "Apoidea.app/Contents/MacOS/apoidea-desktop", "Apoidea.app/Contents/Library/LaunchAgents/org.apoidea.desktop.plist",
        "Apoidea.app/Contents/Resources/apoidea.icns", "Apoidea.app/Contents/Resources/third-party-licences.txt",
        "Apoidea.app/Contents/Resources/LICENSE-MIT", "Apoidea.app/Contents/Resources/LICENSE-APACHE",
    }
    found = {str(path.relative_to(image)) for path in image.rglob("*") if path.is_symlink() or path.is_file()}
    assert found == expected, found ^ expected
    assert os.readlink(image / "Applications") == "/Applications"
    for name in ("apoidea", "apoidea-desktop"):
        assert (image / "Apoidea.app/Contents/MacOS" / name).stat().st_mode & stat.S_IXUSR
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
    assert (contents.parent / agent["BundleProgram"]).exists()
    assert agent["ProgramArguments"][1:] == ["--hidden"]
