"""Waiting for something that another process brings about."""

import time

# A busy machine is given this many seconds for anything.
PATIENCE = 120


def wait(what, look, patience=PATIENCE, pause=0.2):
    """Looks until there is something to see; gives it."""
    until = time.monotonic() + patience
    while True:
        seen = look()
        if seen:
            return seen
        assert time.monotonic() < until, f"not in {patience} s: {what}"
        time.sleep(pause)
