"""How large a download and an installed peer may be: a volunteer waits for the one and gives room
to the other.

Usage: python3 tests/packages/limits.py FOLDER, of downloads
"""

import os
import pathlib
import sys

# Bytes of any file that is offered for download.
DOWNLOAD = 25_000_000
# Bytes on the disk of the package without a desktop.
HEADLESS = 30_000_000


def check_download(file):
    size = file.stat().st_size
    assert size < DOWNLOAD, f"{file.name} is a download of {size} bytes"
    print(f"{file.name}: {size / 1e6:.1f} MB")


def check_headless(root, files):
    """That these files under this root take little room."""
    places = [os.path.join(root, file) for file in files]
    size = sum(os.lstat(place).st_size for place in places if not os.path.isdir(place))
    assert size < HEADLESS, f"installed, the headless package takes {size} bytes"
    print(f"the headless package, installed: {size / 1e6:.1f} MB")


if __name__ == "__main__":
    for download in sorted(pathlib.Path(sys.argv[1]).iterdir()):
        check_download(download)
