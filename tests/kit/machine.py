"""The machine that figures were measured on, without what would tell which one it is."""

import os
import pathlib
import platform
import re


def _field(path, name):
    """The value of the first line that begins with this name."""
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith(name):
            return line.partition(":")[2].strip()
    return "unknown"


def description():
    cpu = _field("/proc/cpuinfo", "model name")
    gib = int(_field("/proc/meminfo", "MemTotal").split()[0]) / (1 << 20)
    kernel = re.match(r"[\d.]+", platform.release())[0].rstrip(".")
    return f"{os.cpu_count()} cores ({cpu}), {gib:.0f} GiB of memory, Linux {kernel}"
