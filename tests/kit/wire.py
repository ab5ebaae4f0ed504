"""Numbers of the wire by the name that they have in the source of the peer.

The API counts traffic by the number of its kind. A number that is written down here as well would
be wrong without a word once the source has another one.
"""

import re

from kit import ROOT

KIND = re.compile(r"const (\w+): Kind = Kind::free\((\d+)\);")
FIRST_FREE = re.compile(r"const FIRST_FREE: u8 = (\d+);")


def _found(folder, pattern):
    """What the pattern finds in the Rust files of a folder."""
    for file in sorted((ROOT / folder).rglob("*.rs")):
        yield from pattern.findall(file.read_text())


def kind(name):
    """The number of a kind of message, as the API writes it."""
    firsts = list(_found("crates/overlay/src", FIRST_FREE))
    numbers = [number for known, number in _found("crates/peer/src", KIND) if known == name]
    assert len(firsts) == 1, f"crates/overlay has {len(firsts)} constants FIRST_FREE"
    assert len(numbers) == 1, f"crates/peer has {len(numbers)} kinds of message named {name}"
    return str(int(firsts[0]) + int(numbers[0]))
