"""The figures as text: a line for each crawl, and a table of medians for the document."""

import statistics

from kit import machine, nginx
from kit.document import table

HEAD = [
    "crawler",
    "keeps",
    "pages per CPU-second",
    "pages per second",
    "peak memory, MiB",
    "coverage",
]


def line(contestant, result):
    return (
        f"{contestant.name:20} {result.pages_per_cpu_second:7.0f} pages/CPU-s "
        f"{result.pages_per_second:6.0f} pages/s {result.cpu_seconds:7.2f} CPU-s "
        f"{result.peak_mib:6.0f} MiB {result.coverage:7.1%} {result.requests} requests"
    )


def spread(values, form):
    """The median, and the least and the greatest in brackets."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def row(contestant, results):
    speeds = (
        spread([r.pages_per_cpu_second for r in results], ".0f"),
        spread([r.pages_per_second for r in results], ".0f"),
    )
    peak = spread([r.peak_mib for r in results], ".0f")
    coverage = spread([r.coverage * 100 for r in results], ".1f")
    name = f"{contestant.name} {contestant.version}"
    return (name, contestant.keeps, *speeds, peak, f"{coverage} %")


def block(contestants, results, known, rounds, seconds):
    """Everything measured, as Markdown."""
    pages = len(known["pages"])
    corpus = (
        f"{pages:,} pages, {known['bytes'] / pages / 1000:.1f} kB in the mean, "
        f"{known['links'] / pages:.1f} different pages linked from each, "
        f"{len(known['per_host'])} hosts"
    )
    shared = f"nginx {nginx.version()} and the crawler share it"
    ended = f"A crawler that had not finished after {seconds:.0f} seconds was stopped."
    facts = [
        f"- Machine: {machine.description()}; {shared}.",
        f"- Corpus: documentation of {known['compiler']}: {corpus}.",
        f"- {rounds} rounds; medians, in brackets the least and the greatest. {ended}",
    ]
    rows = table(HEAD, [row(c, results[c.name]) for c in contestants])
    return "\n".join([*facts, "", rows, "", *ratios(contestants, results)])


def ratios(contestants, results):
    """Ours against the best of the others."""
    median = {n: statistics.median(r.pages_per_cpu_second for r in of) for n, of in results.items()}
    others = [c.name for c in contestants if not c.name.startswith("Apoidea")]
    if not others:
        return []
    best = max(others, key=median.get)
    compared = f"the pages per CPU-second of {best}, the best of the others"
    return [
        f"- {c.name}: {median[c.name] / median[best]:.2f} × {compared}."
        for c in contestants
        if c.name not in others
    ]
