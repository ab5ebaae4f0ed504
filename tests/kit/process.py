"""CPU time and memory of a process, as the kernel counts them."""

import os
import pathlib

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def _read(pid, name):
    return pathlib.Path(f"/proc/{pid}/{name}").read_text()


def cpu_seconds(pid):
    """CPU time so far, of all threads."""
    fields = _read(pid, "stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mib(pid):
    """The resident set."""
    return int(_read(pid, "statm").split()[1]) * PAGE_BYTES / 2**20


def peak_mib(pid):
    """The largest resident set so far; 0 for a process that has ended."""
    try:
        lines = _read(pid, "status").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:")), 0.0)
