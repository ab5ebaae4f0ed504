"""The figures of an evaluation as pictures, which docs/evaluation.md shows."""

import itertools

import plot


def draw(folder, done):
    """Draws all of them into a folder."""
    folder.mkdir(parents=True, exist_ok=True)

    def chart(name, *words_and_lines):
        plot.chart(folder / f"{name}.svg", *words_and_lines)

    def by_peers(value):
        return [(r.peers, value(r)) for r in done.by_peers]

    def simulated(field):
        return [(r["peers"], r[field]) for r in done.simulated]

    growth = list(enumerate(itertools.accumulate(done.most.timeline, initial=0)))
    title = f"Pages over time, {done.most.peers} peers"
    chart("pages-over-time", title, "seconds", "pages", [("pages", growth)])
    together = by_peers(lambda r: r.pages_per_second)
    each = by_peers(lambda r: r.pages_per_second / r.peers)
    lines = [("all together", together), ("each", each)]
    chart("throughput", "Throughput and peers", "peers", "pages/s", lines)
    lines = [("all together", by_peers(lambda r: r.web_bytes / r.seconds / 1000))]
    chart("bytes", "Bytes from the web and peers", "peers", "kB/s", lines)
    lines = [("overlay", by_peers(lambda r: r.per_page("overlay_bytes")))]
    chart("overhead", "Overlay traffic and peers", "peers", "bytes per page", lines)
    lines = [("CPU", by_peers(lambda r: r.cpu_ms_per_page))]
    chart("work", "CPU and peers", "peers", "CPU ms per page", lines)
    lines = [("URLs", simulated("urls_per_page")), ("batches", simulated("batches_per_page"))]
    chart("simulated", "Links sent and simulated peers", "peers", "per page", lines)
    lines = [("pages/s", [(hosts, r.pages_per_second) for hosts, r in done.by_hosts.items()])]
    chart("hosts", "Throughput and hosts, 4 peers", "hosts", "pages/s", lines)
    lines = [("pages/s", [(100 * share, r.pages_per_second) for share, r in done.by_load.items()])]
    title = "Throughput and competing load, 4 peers"
    chart("load", title, "load, % of all cores", "pages/s", lines)
