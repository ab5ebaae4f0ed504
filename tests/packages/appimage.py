"""The AppImage, made here behind a stand-in for its runtime, which is fetched when a release is
made."""

import os

import limits
import shell

# Larger than the real one (0.9 MB), so that the limit of a download holds for that as well.
RUNTIME = 1_000_000
CONTENTS = {
    "AppRun": "usr/bin/apoidea-desktop",
    "org.apoidea.desktop.desktop": "usr/share/applications/org.apoidea.desktop.desktop",
    "apoidea.png": "usr/share/icons/hicolor/256x256/apps/apoidea.png",
    ".DirIcon": "apoidea.png",
}


def check(_dist, work):
    runtime = work / "runtime"
    runtime.write_bytes(bytes(RUNTIME))
    shell.run(shell.TOP / "installer/linux/appimage", work, runtime)
    image = shell.only(work, f"apoidea_{shell.version()}_amd64.AppImage")
    assert os.access(image, os.X_OK)
    limits.check_download(image)
    unpacked = work / "unpacked"
    shell.run("unsquashfs", "-quiet", "-no-progress", "-offset", RUNTIME, "-dest", unpacked, image)
    links = {name: os.readlink(unpacked / name) for name in CONTENTS}
    assert links == CONTENTS, links
    assert {path.name for path in unpacked.iterdir()} == {"usr", *CONTENTS}
    assert os.listdir(unpacked / "usr/bin") == ["apoidea-desktop"]
    assert shell.version() in shell.run(unpacked / "AppRun", "--version")
    texts = {path.name for path in (unpacked / "usr/share/licenses/apoidea").iterdir()}
    assert texts == {
        "third-party-licences.txt.gz",
        "appimage-runtime.txt",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    }, texts
