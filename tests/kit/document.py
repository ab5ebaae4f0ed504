"""Documents with measured figures: people write the words, and a run writes between marks.

A block begins with `<!-- name -->` or `<!-- name: a remark -->` and ends with `<!-- /name -->`.
Marks on lines of their own hold lines, such as a table; marks within a line hold a figure.
"""

import pathlib
import re


class MarkMissing(Exception):
    """A document lacks a mark, or has it twice."""


def replaced(text, name, content):
    """The text with this content in the block of this name, and all else as it was."""
    begin = _only(text, rf"<!-- {re.escape(name)}(?:: [^>]*)? -->", f"<!-- {name} -->")
    end = _only(text, rf"<!-- /{re.escape(name)} -->", f"<!-- /{name} -->")
    if end.start() < begin.end():
        raise MarkMissing(f"<!-- /{name} --> stands before <!-- {name} -->")
    around = "\n" if text.startswith("\n", begin.end()) else ""
    return f"{text[: begin.end()]}{around}{content}{around}{text[end.start() :]}"


def _only(text, pattern, mark):
    found = list(re.finditer(pattern, text))
    if len(found) != 1:
        raise MarkMissing(f"{mark} stands {len(found)} times, not once")
    return found[0]


def filled(path, blocks):
    """The text of a document with these blocks by name."""
    # As bytes, so that the ends of lines stay as they are.
    text = pathlib.Path(path).read_bytes().decode()
    for name, content in blocks.items():
        try:
            text = replaced(text, name, content)
        except MarkMissing as missing:
            raise MarkMissing(f"{path}: {missing}") from None
    return text


def write(path, blocks):
    """Replaces blocks of a document; it stays as it is unless all of them are there."""
    pathlib.Path(path).write_bytes(filled(path, blocks).encode())


def require(path, names):
    """Fails unless all of these blocks are there, so that nothing is measured in vain."""
    filled(path, dict.fromkeys(names, ""))


def table(head, rows):
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)
