"""Running programs that must succeed, and finding what they made."""

import pathlib
import subprocess

TOP = pathlib.Path(__file__).resolve().parents[2]


def run(*command, **options):
    """Runs a program that must succeed; gives what it printed."""
    done = subprocess.run(
        [str(word) for word in command],
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        **options,
    )
    assert done.returncode == 0, (
        f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}"
    )
    return done.stdout


def version():
    """The version under test."""
    return run(TOP / "installer/version").strip()


def only(folder, pattern):
    """The one file of this kind."""
    found = list(folder.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]
