"""One crawl of one contestant: what it used, by the kernel's account, and what it got, by the
server's log."""

import dataclasses
import os
import shutil
import signal
import subprocess
import threading
import time

from kit.process import peak_mib

# A contestant that does not end by itself is told to when it has asked for nothing for so long.
QUIET = 3.0
# Who takes longer is stopped, and its coverage tells how far it got; what it did until then counts.
DEADLINE = 120.0
# For ending properly when told to.
GRACE = 10.0
# How often a contestant is looked at; memory that it takes only in its last moment is not seen. The
# kernel's account of an ended process is of no use here, since it begins with the size of the
# process that started it.
LOOK = 0.05


@dataclasses.dataclass
class Result:
    """What a crawl came to."""

    pages: int
    requests: int
    coverage: float
    cpu_seconds: float
    seconds: float
    peak_mib: float

    @property
    def pages_per_cpu_second(self):
        return self.pages / self.cpu_seconds

    @property
    def pages_per_second(self):
        return self.pages / self.seconds


def crawl(contestant, known, server, work):
    """Lets one contestant crawl the corpus from an empty folder."""
    folder = work / "run"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    server.served()
    command = contestant.command(known["start"], folder)
    with (work / "last.out").open("wb") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=folder
        )
        over, peaks = threading.Event(), [0.0]
        watcher = threading.Thread(target=watch, args=(process, contestant, server, over, peaks))
        watcher.start()
        # Of the process and of all its descendants that it waited for.
        _, _, usage = os.wait4(process.pid, 0)
        over.set()
        process.returncode = 0
        watcher.join()
    return judge(server.served(), usage, max(peaks), known)


def watch(process, contestant, server, over, peaks):
    """Ends a contestant that would not, and one that is stuck; notes its memory meanwhile."""
    started = quiet_since = time.monotonic()
    size = server.size()
    while not over.wait(LOOK):
        now = time.monotonic()
        peaks.append(peak_mib(process.pid))
        if server.size() != size:
            size, quiet_since = server.size(), now
        is_done = not contestant.ends and now - quiet_since > QUIET and now - started > 2 * QUIET
        if is_done or now - started > DEADLINE:
            return end(process, over)


def end(process, over):
    """Asks a contestant to end, and ends it if it does not. It is waited for elsewhere."""
    for asked in (signal.SIGTERM, signal.SIGKILL):
        if not over.is_set():
            os.kill(process.pid, asked)
        if over.wait(GRACE):
            return


def judge(served, usage, peak, known):
    """Pages are counted once each, whatever was asked for besides."""
    pages = {page for _, status, page in served if status == 200} & set(known["pages"])
    times = [at for at, _, _ in served] or [0.0, 1.0]
    return Result(
        pages=len(pages),
        requests=len(served),
        coverage=len(pages) / len(known["pages"]),
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        seconds=max(times) - min(times),
        peak_mib=peak,
    )
