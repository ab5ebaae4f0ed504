"""The figures of an evaluation as the blocks of docs/evaluation.md.

The document has the words; it has marks for each of these blocks.
"""

import dataclasses
import statistics

from kit import machine
from kit.document import table

# The blocks that `blocks` gives.
NAMES = (
    "machine",
    "pages",
    "peers",
    "growth",
    "hosts",
    "balance",
    "narrow",
    "looks",
    "simulated",
    "load",
    "four-peers",
    "most-peers",
    "worst",
)


@dataclasses.dataclass
class Evaluation:
    """The results of all experiments."""

    # Pages of the web.
    pages: int
    # A crawl by each number of peers.
    by_peers: list
    # CPU ms per page by peers that know nothing of each other, by their number.
    apart: dict
    # A crawl of a web with each number of hosts.
    by_hosts: dict
    # A crawl by peers that may do little.
    narrow: object
    # A crawl beside each load on every core, as a share.
    by_load: dict
    # What the simulator says of each number of peers.
    simulated: list

    @property
    def four(self):
        """The crawl that others are compared with: by four peers, if there is one."""
        return next((r for r in self.by_peers if r.peers == 4), self.by_peers[0])

    @property
    def most(self):
        return self.by_peers[-1]


def blocks(done):
    return {
        "machine": machine.description(),
        "pages": f"{done.pages:,}",
        "peers": peers(done.by_peers),
        "growth": growth(done),
        "hosts": hosts(done.by_hosts),
        "balance": balance(done.narrow),
        "narrow": narrow(done.narrow),
        "looks": looks(done.by_peers),
        "simulated": simulated(done.simulated),
        "load": load(done.by_load),
        "four-peers": f"{done.four.pages_per_second:.0f} pages/s with {done.four.peers} peers",
        "most-peers": f"{done.most.pages_per_second:.0f} pages/s with {done.most.peers} peers",
        "worst": worst(done.by_peers),
    }


def beside_mean(shares, pick):
    """The greatest or least of some shares, as a multiple of their mean."""
    return pick(shares) / (statistics.mean(shares) or 1)


def peers(crawls):
    columns = {
        "peers": lambda r: r.peers,
        "pages/s": lambda r: f"{r.pages_per_second:.0f}",
        "pages/s each": lambda r: f"{r.pages_per_second / r.peers:.1f}",
        "web kB/s": lambda r: f"{r.web_bytes / r.seconds / 1000:.0f}",
        "coverage": lambda r: f"{r.coverage:.2%}",
        "overlap": lambda r: f"{r.overlap:.2%}",
        "URLs sent per page": lambda r: f"{r.per_page('received'):.2f}",
        "batches per page": lambda r: f"{r.per_page('batches'):.2f}",
        "overlay bytes per page": lambda r: f"{r.per_page('overlay_bytes'):.0f}",
        "CPU ms per page": lambda r: f"{r.cpu_ms_per_page:.2f}",
        "fullest peer ÷ mean": lambda r: f"{beside_mean(r.shares, max):.1f}",
        "lent": lambda r: f"{r.per_page('lent'):.1%}",
        "quality": lambda r: f"{r.quality:.0%}",
    }
    return table_of(columns, crawls)


def growth(done):
    """Work per page by the most peers against that by four."""
    few, many = done.four, done.most

    def row(name, first, last, digits):
        if first is None or last is None:
            return (name, "–", "–", "–")
        times = f"{last / first:.2f}" if first else "–"
        return (name, f"{first:.{digits}f}", f"{last:.{digits}f}", times)

    traffic = (few.per_page("overlay_bytes"), many.per_page("overlay_bytes"))
    apart = (done.apart.get(few.peers), done.apart.get(many.peers))
    rows = [
        row("overlay bytes", *traffic, 0),
        row("CPU ms", few.cpu_ms_per_page, many.cpu_ms_per_page, 2),
        row("CPU ms, peers that know nothing of each other", *apart, 2),
    ]
    head = ["per page", f"{few.peers} peers", f"{many.peers} peers", "times as much"]
    return table(head, rows)


def hosts(by_hosts):
    rows = [
        (count, f"{r.pages_per_second:.0f}", f"{r.pages_per_second / count:.2f}")
        for count, r in by_hosts.items()
    ]
    return table(["hosts", "pages/s", "pages/s per host"], rows)


def balance(crawl):
    both = (crawl.shares, crawl.fetched)
    rows = [
        ("pages of the fullest peer ÷ mean", *(f"{beside_mean(s, max):.1f}" for s in both)),
        ("pages of the emptiest peer ÷ mean", *(f"{beside_mean(s, min):.2f}" for s in both)),
    ]
    return table(["", "by owner of the domain", "by fetching peer"], rows)


def narrow(crawl):
    rows = [
        ("pages/s in all", f"{crawl.pages_per_second:.0f}"),
        ("fetches lent to neighbours", f"{crawl.per_page('lent'):.0%}"),
        ("overlay bytes per page", f"{crawl.per_page('overlay_bytes'):.0f}"),
        ("looks in which many hosts waited", crawl.waiting),
        ("of all possible fetches, under way", f"{crawl.used:.0%}"),
        ("looks with a peer that had nothing under way", f"{crawl.uneven:.0%}"),
        ("looks with a peer that had no fetch under way", f"{crawl.pausing:.0%}"),
    ]
    return table(["", "measured"], rows)


def looks(crawls):
    columns = {
        "peers": lambda r: r.peers,
        "looks in which many hosts waited": lambda r: r.waiting,
        "with a peer that had nothing under way": lambda r: f"{r.uneven:.0%}",
        "with a peer that had no fetch under way": lambda r: f"{r.pausing:.0%}",
    }
    return table_of(columns, [r for r in crawls if r.peers > 1])


def simulated(crawls):
    columns = {
        "peers": lambda r: r["peers"],
        "coverage": lambda r: f"{r['pages'] / r['expected']:.2%}",
        "repeats": lambda r: r["repeats"],
        "pages/s": lambda r: f"{0.9 * r['pages'] / r['seconds_for_most']:.0f}",
        "seconds for 90 %": lambda r: f"{r['seconds_for_most']:.0f}",
        "URLs sent per page": lambda r: f"{r['urls_per_page']:.2f}",
        "batches per page": lambda r: f"{r['batches_per_page']:.2f}",
        "bytes of URLs per page": lambda r: f"{r['bytes_per_page']:.0f}",
        "most hosts ÷ mean": lambda r: f"{r['most_hosts']:.1f}",
        "most pages ÷ mean": lambda r: f"{r['most_pages']:.1f}",
        "peers without work": lambda r: r["idle"],
    }
    return table_of(columns, crawls)


def load(by_load):
    rows = [
        (f"{share:.0%}", f"{r.pages_per_second:.0f}", f"{r.cpu_ms_per_page:.2f}")
        for share, r in by_load.items()
    ]
    return table(["load on every core", "pages/s", "CPU ms per page"], rows)


def worst(crawls):
    coverage, overlap = min(r.coverage for r in crawls), max(r.overlap for r in crawls)
    return f"coverage {coverage:.2%}, overlap {overlap:.2%}"


def table_of(columns, results):
    """A table with a row for each result and a function for each column."""
    return table(list(columns), [[cell(r) for cell in columns.values()] for r in results])
