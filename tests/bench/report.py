"""The figures as text: a line for each crawl, a table of medians for the document, between two marks in it."""

import os
import pathlib
import platform
import re
import statistics
import subprocess

BEGIN, END = "<!-- measured: written by tests/bench/run -->", "<!-- /measured -->"


def line(contestant, result):
    return (
        f"{contestant.name:20} {result.pages_per_cpu_second:7.0f} pages/CPU-s {result.pages_per_second:6.0f} pages/s "
        f"{result.cpu_seconds:7.2f} CPU-s {result.peak_mib:6.0f} MiB {result.coverage:7.1%} {result.requests} requests"
    )


def spread(values, form):
    """The median, and the least and the greatest in brackets."""
    return f"{statistics.median(values):{form}} ({min(values):{form}}–{max(values):{form}})"


def machine():
    """The machine, without what would tell which one."""
    cpu = next((l.split(":")[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "unknown")
    memory = int(next(l.split()[1] for l in open("/proc/meminfo") if l.startswith("MemTotal"))) / (1 << 20)
    kernel = re.match(r"[\d.]+", platform.release())[0].rstrip(".")
    return f"{os.cpu_count()} cores ({cpu}), {memory:.0f} GiB of memory, Linux {kernel}"


def nginx_version():
    return subprocess.run(["nginx", "-v"], capture_output=True, text=True).stderr.strip().split("/")[-1]


def table(contestants, results, known, rounds, seconds):
    """Everything measured, as Markdown."""
    rows = ["| crawler | keeps | pages per CPU-second | pages per second | peak memory, MiB | coverage |",
            "|---|---|---|---|---|---|"]
    for c in contestants:
        of = results[c.name]
        rows.append(
            f"| {c.name} {c.version} | {c.keeps} | {spread([r.pages_per_cpu_second for r in of], '.0f')} "
            f"| {spread([r.pages_per_second for r in of], '.0f')} | {spread([r.peak_mib for r in of], '.0f')} "
            f"| {spread([r.coverage * 100 for r in of], '.1f')} % |"
        )
    pages = len(known["pages"])
    facts = [
        f"- Machine: {machine()}; nginx {nginx_version()} and the crawler share it.",
        f"- Corpus: documentation of {known['compiler']}: {pages:,} pages, {known['bytes'] / pages / 1000:.1f} kB in the mean, "
        f"{known['links'] / pages:.1f} different pages linked from each, {len(known['per_host'])} hosts.",
        f"- {rounds} rounds; medians, in brackets the least and the greatest. Who had not finished after {seconds:.0f} seconds was stopped.",
    ]
    return "\n".join([*facts, "", *rows, "", *ratios(contestants, results)])


def ratios(contestants, results):
    """Ours against the best of the others."""
    median = {n: statistics.median(r.pages_per_cpu_second for r in of) for n, of in results.items()}
    others = [c.name for c in contestants if not c.name.startswith("Apoidea")]
    if not others:
        return []
    best = max(others, key=median.get)
    said = [f"- {c.name}: {median[c.name] / median[best]:.2f} × the pages per CPU-second of {best}, the best of the others."
            for c in contestants if c.name.startswith("Apoidea")]
    return said


def write(path, text):
    """Puts the figures between the marks of the document."""
    path = pathlib.Path(path)
    old = path.read_text(encoding="utf-8") if path.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
