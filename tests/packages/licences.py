"""The collected licences: a package brings those of everything that is in it."""

import json
import re

import shell

# Parts that are not in Rust hide inside crates, or come with the linker; each stands for itself in
# the text of its licence.
HIDDEN = {
    "linux": ("Intel Corporation", "Eric Biggers"),
    "windows": ("Eric Biggers", "(C) Microsoft Corporation", "the mingw-w64 project"),
}


def check(text, dist, system):
    """That this collection is about all of the system's bill of materials."""
    bom = json.loads(shell.only(dist, f"*_{system}.cdx.json").read_text())
    listed = set(re.findall(r"^(\S+ \S+): ", text.split("=" * 79)[0], re.MULTILINE))
    expected = {f"{component['name']} {component['version']}" for component in bom["components"]}
    assert listed == expected, f"{system}: {sorted(listed ^ expected)[:20]}"
    for author in HIDDEN[system]:
        assert author in text, f"{system}: nothing is said of the work of {author}"
