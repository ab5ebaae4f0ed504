"""A toy web and peers that crawl it together, each a process of its own, and what they and the web
counted."""

import collections
import contextlib
import dataclasses
import gzip
import shutil
import time

from kit import peer, wire
from kit.api import is_done, is_one_ring
from kit.web import Web

# Seconds for all peers to find their places.
RING_PATIENCE = 60
# A crawl has ended when nobody had anything left in so many looks, a second apart.
QUIET_LOOKS = 3


@dataclasses.dataclass
class Result:
    """What one crawl came to."""

    peers: int
    pages: int
    expected: int
    requests: int
    seconds: float
    # Pages by the second of their arrival.
    timeline: list
    received: int
    # Messages with links.
    batches: int
    overlay_bytes: int
    web_bytes: int
    cpu_seconds: float
    # Pages of the domains that each peer owns.
    shares: list
    # Pages that each peer fetched, for itself or for others.
    fetched: list
    # Fetches that owners lent to their neighbours.
    lent: int
    # Looks in which many hosts waited for a fetch.
    waiting: int
    # The share of these in which a peer had nothing under way while another had more than twice
    # its share of the waiting hosts.
    uneven: float
    # The same, but the peer had no fetch under way, whether or not it had pages to store.
    pausing: float
    # The share of all fetches that the peers may do at a time that were under way in these looks.
    used: float
    # Of the tenth of pages with the most links to them, the share among the first tenth fetched.
    quality: float
    # The largest resident set of each peer, in the mean.
    peak_mib: float

    @property
    def coverage(self):
        return self.pages / self.expected

    @property
    def overlap(self):
        return (self.requests - self.pages) / self.requests

    @property
    def pages_per_second(self):
        return self.pages / self.seconds

    def per_page(self, what):
        """A sum of the crawl, such as `overlay_bytes`, for each page."""
        return getattr(self, what) / self.pages

    @property
    def cpu_ms_per_page(self):
        return 1000 * self.per_page("cpu_seconds")


@dataclasses.dataclass
class Programs:
    """The programs that take part."""

    apoidea: object
    toyweb: object


def start(programs, folder, number, web, delay, fetches, entries=()):
    """Starts the peer with this number, to crawl the web in a swarm."""
    settings = peer.in_swarm(entries) | web.settings(delay) | {"crawl.fetches": fetches}
    return peer.start(programs.apoidea, folder / f"peer-{number}", settings)


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def has_waiting(look):
    """Do many hosts wait for a fetch?"""
    return sum(status["ready"] for status in look) >= 2 * len(look)


def is_uneven(look, work):
    """Is a peer without any of this work while another has more than twice its share of the hosts
    that wait for a fetch?"""
    ready = [status["ready"] for status in look]
    is_idle = any(sum(status[kind] for kind in work) == 0 for status in look)
    return is_idle and max(ready) > 2 * sum(ready) / len(ready)


def cpu_seconds(swarm):
    return sum(member.cpu_seconds() for member in swarm)


def watch(swarm, seconds):
    """Looks at all peers once a second until nobody has anything left; gives the looks."""
    until = time.monotonic() + seconds
    quiet, looks = 0, []
    while quiet < QUIET_LOOKS and time.monotonic() < until:
        time.sleep(1)
        looks.append([member.api.status() for member in swarm])
        quiet = quiet + 1 if all(map(is_done, looks[-1])) else 0
    return looks


def crawl(programs, folder, peers, hosts, pages, delay, fetches=32, answers_after=0, seconds=300):
    """Lets a swarm crawl a web to the end; gives what was counted."""
    fresh(folder)
    with contextlib.ExitStack() as ends:
        web = Web(programs.toyweb, folder, hosts, pages, answers_after)
        ends.callback(web.stop)
        swarm = []
        for number in range(peers):
            entries = [swarm[0].api.entry_point()] if swarm else []
            swarm.append(start(programs, folder, number, web, delay, fetches, entries))
            ends.callback(swarm[-1].kill)
        until = time.monotonic() + RING_PATIENCE
        while not is_one_ring(swarm) and time.monotonic() < until:
            time.sleep(0.5)
        before = cpu_seconds(swarm)
        swarm[0].api.seed(web.seeds)
        looks = watch(swarm, seconds)
        cpu = cpu_seconds(swarm) - before
        statuses = [member.api.status() for member in swarm]
        traffic = [member.api.traffic() for member in swarm]
        peak_mib = sum(member.peak_mib() for member in swarm) / peers
        visits, due = web.visits(), set(web.due())
        for member in swarm:
            member.stop()
        order, timing = arrivals(visits, due)
        return Result(
            peers=peers,
            cpu_seconds=cpu,
            peak_mib=peak_mib,
            quality=quality(order, [member.data for member in swarm]),
            **timing,
            **counts(statuses, traffic),
            **balance(looks, fetches),
        )


def apart(programs, folder, peers, hosts, pages, delay, fetches=32, seconds=300):
    """As many peers that know nothing of each other, each with its part of the hosts and pages in a
    web of its own: milliseconds of CPU for a page."""
    fresh(folder)
    with contextlib.ExitStack() as ends:
        webs, alone = [], []
        for number in range(peers):
            place = fresh(folder / str(number))
            webs.append(Web(programs.toyweb, place, hosts // peers, pages // peers))
            ends.callback(webs[-1].stop)
            alone.append(start(programs, place, number, webs[-1], delay, fetches))
            ends.callback(alone[-1].kill)
        before = cpu_seconds(alone)
        for member, web in zip(alone, webs, strict=True):
            member.api.seed(web.seeds)
        watch(alone, seconds)
        cpu = cpu_seconds(alone) - before
        return 1000 * cpu / sum(member.api.pages() for member in alone)


def arrivals(visits, due):
    """The due pages in the order in which they were first asked for, and what the web saw."""
    asked = [visit for visit in visits if visit.url in due]
    first = {}
    for visit in asked:
        first.setdefault(visit.url, visit.at)
    fetched = sorted((at, url) for url, at in first.items())
    begin, end = fetched[0][0], fetched[-1][0]
    timeline = [0] * (int(end - begin) + 1)
    for at, _ in fetched:
        timeline[int(at - begin)] += 1
    timing = {
        "pages": len(fetched),
        "expected": len(due),
        "requests": len(asked),
        "seconds": end - begin,
        "timeline": timeline,
    }
    return [url for _, url in fetched], timing


def counts(statuses, traffic):
    """The sums of the peers' own counters."""
    links = wire.kind("LINKS")
    totals = [status["totals"] for status in statuses]
    received = sum(total["received"] for total in totals)
    batches = sum(kinds[links]["asked"] for kinds in traffic if links in kinds)
    assert batches or not received, f"links came without a message of kind {links}"
    return {
        "received": received,
        "batches": batches,
        "overlay_bytes": sum(kind["bytes_out"] for kinds in traffic for kind in kinds.values()),
        "web_bytes": sum(total["bytes"] for total in totals),
        "shares": [total["pages"] for total in totals],
        "lent": sum(total["lent"] for total in totals),
        "fetched": [total["pages"] - total["lent"] + total["borrowed"] for total in totals],
    }


def balance(looks, fetches):
    """The looks in which many hosts waited, and how evenly the peers were at work in them."""
    waiting = list(filter(has_waiting, looks))

    def share(of_look):
        return sum(map(of_look, waiting)) / max(1, len(waiting))

    def used(look):
        under_way = sum(min(status["fetching"], fetches) for status in look)
        return under_way / (fetches * len(look))

    return {
        "waiting": len(waiting),
        "uneven": share(lambda look: is_uneven(look, ["fetching", "processing"])),
        "pausing": share(lambda look: is_uneven(look, ["fetching"])),
        "used": share(used),
    }


def quality(order, folders):
    """Links are read from the archives; a page's own host counts like any other."""
    links = collections.Counter()
    for folder in folders:
        for file in sorted((folder / "archive").glob("*.warc.gz*")):
            with gzip.open(file, "rt", encoding="utf-8", errors="replace") as lines:
                links.update(line.split()[1] for line in lines if line.startswith("outlink: "))
    tenth = max(1, len(order) // 10)
    important = {page for page, _ in links.most_common(tenth)}
    return len(important & set(order[:tenth])) / tenth
