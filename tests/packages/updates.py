"""The updates of a release: announced for every system, each signed as exactly this version by a
key that is not in the repository."""

import base64
import json
import os
import subprocess

import shell

# Which download each system's copies replace themselves with.
UPDATES = {
    "windows-x86_64": "apoidea_{}_x64-setup.exe",
    "darwin-aarch64": "apoidea_{}_aarch64.app.tar.gz",
    "darwin-x86_64": "apoidea_{}_x86_64.app.tar.gz",
    "linux-x86_64": "apoidea_{}_amd64.AppImage",
}
WHERE = "https://example.org/download"


def check(_dist, work):
    key, folder = work / "key", work / "release"
    shell.run(
        "npx",
        "--yes",
        "@tauri-apps/cli@2.12.4",
        "signer",
        "generate",
        "--ci",
        "--password",
        "secret",
        "--write-keys",
        key,
    )
    public = base64.b64decode((work / "key.pub").read_text()).decode().splitlines()[1]
    secrets = {
        "TAURI_SIGNING_PRIVATE_KEY": key.read_text(),
        "TAURI_SIGNING_PRIVATE_KEY_PASSWORD": "secret",
    }
    folder.mkdir()
    names = {system: name.format(shell.version()) for system, name in UPDATES.items()}
    for name in names.values():
        (folder / name).write_text(f"{name}\n")
    # A package of a distribution is none.
    (folder / f"apoidea_{shell.version()}_amd64.deb").write_text("a package\n")
    shell.run(shell.TOP / "installer/announce", folder, f"{WHERE}/", env=os.environ | secrets)
    announced = json.loads((folder / "latest.json").read_text())
    assert announced["version"] == shell.version()
    assert {system: update["url"] for system, update in announced["platforms"].items()} == {
        system: f"{WHERE}/{name}" for system, name in names.items()
    }
    for system, name in names.items():
        check_signature(announced["platforms"][system]["signature"], folder / name, public)
    check_missing(folder, folder / names["darwin-x86_64"], secrets)


def check_signature(signature, file, public):
    """That it is of this file as this version, and of nothing else. What the app makes of that is
    tested beside its code."""
    (file.parent / "signature").write_bytes(base64.b64decode(signature))
    verify = ["minisign", "-V", "-P", public, "-x", file.parent / "signature", "-m", file]
    assert f"version:{shell.version()}" in shell.run(*verify).split()
    file.write_text(f"{file.name} and a wasp\n")
    done = subprocess.run(verify, check=False, capture_output=True)
    assert done.returncode != 0, f"{file.name}: anything passes"


def check_missing(folder, file, secrets):
    """A release that would leave one system behind is not announced."""
    file.unlink()
    (folder / "latest.json").unlink()
    announce = [shell.TOP / "installer/announce", folder, WHERE]
    done = subprocess.run(announce, check=False, env=os.environ | secrets, capture_output=True)
    assert done.returncode != 0 and not (folder / "latest.json").exists()
