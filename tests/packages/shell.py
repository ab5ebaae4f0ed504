"""Running programs, and waiting for what they bring about."""

import pathlib
import subprocess
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
# A busy machine is given this long for anything.
PATIENCE = 120


def run(*command, **options):
    """Runs a program that must succeed; gives what it printed."""
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
    assert done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}"
    return done.stdout


def wait(what, look, patience=PATIENCE):
    """Looks until there is something to see; gives it."""
    until = time.monotonic() + patience
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < until, f"not in {patience} s: {what}"
        time.sleep(0.2)


def version():
    """The version under test."""
    return run(TOP / "installer/version").strip()


def only(folder, pattern):
    """The one file of this kind."""
    found = list(folder.glob(pattern))
    assert len(found) == 1, f"{pattern}: {found}"
    return found[0]
