"""A toy web and peers that crawl it together, each a process of its own, and what they and the servers counted."""

import collections
import dataclasses
import gzip
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time
import urllib.request

TICKS = os.sysconf("SC_CLK_TCK")
# The number of messages with links, `wire::LINKS`.
LINKS = "16"


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
    shares: list
    # Pages that each peer fetched, for itself or for others.
    fetched: list
    # Fetches that owners left to their neighbours.
    lent: int
    # Seconds in which many hosts waited for a fetch.
    waiting: int
    # The share of them in which a peer had nothing under way while another had more than twice its share of them.
    uneven: float
    # The same, but with a peer that was at no fetch at this moment, be there pages on their way to the disk or not.
    pausing: float
    # How much of what all might fetch at a time they did in these seconds.
    used: float
    # Of the tenth of pages with the most links to them, the share among the first tenth fetched.
    quality: float

    @property
    def coverage(self):
        return self.pages / self.expected

    @property
    def overlap(self):
        return (self.requests - self.pages) / self.requests


def ask(url, token=None, body=None):
    request = urllib.request.Request(url, data=None if body is None else json.dumps(body).encode())
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    if body is not None:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return answer.read()


class Web:
    """The toy web in a process of its own."""

    def __init__(self, program, hosts, pages, answers_after, folder):
        command = [program, "--hosts", str(hosts), "--pages", str(pages), "--mean-bytes", "6000", "--addresses", "32", "--print-config"]
        command += ["--answers-after-ms", str(answers_after)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.config = json.loads(self.process.stdout.readline())
        self.certificate = folder / "ca.pem"
        self.certificate.write_text(self.config["ca_pem"])

    def control(self, what):
        return ask(f"http://{self.config['control_address']}/.toyweb/{what}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=20)


class Peer:
    """One peer."""

    def __init__(self, program, folder, number, web, delay, fetches, entries):
        self.data = folder / f"peer-{number}"
        config = web.config
        settings = {
            "api.port": 0, "archive.keep_free_mib": 0, "network.port": 0, "network.listen": '["127.0.0.1"]',
            "network.local_network": "off", "network.is_private": "true", "network.entry_points": json.dumps(entries),
            "crawl.ports": json.dumps([config["http_port"], config["https_port"]]),
            "crawl.private_networks": '["127.0.0.0/8"]', "crawl.private_delay_ms": delay,
            "crawl.private_address_delay_ms": 0, "crawl.fetches": fetches, "crawl.dns": json.dumps([config["dns_address"]]),
            "crawl.trusted_certificates": json.dumps([str(web.certificate)]),
        }
        options = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
        command = [program, "--data", self.data, "--config", self.data.with_suffix(".toml"), "run", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while True:
            try:
                self.address = (self.data / "api-address").read_text().strip()
                self.token = (self.data / "api-token").read_text().strip()
                self.status()
                return
            except (OSError, ValueError):
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def get(self, path):
        return json.loads(ask(self.address + path, self.token))

    def status(self):
        return self.get("/api/status")

    def cpu_seconds(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=20)


def is_done(status):
    return status["state"] == "idle" and status["queued"] + status["outbox"] + status["processing"] == 0


def has_waiting(look):
    """Do many hosts wait for a fetch?"""
    return sum(status["ready"] for status in look) >= 2 * len(look)


def is_uneven(look, work):
    """Is a peer without any of this work while another has more than twice its share of the hosts that wait for a fetch?"""
    ready = [status["ready"] for status in look]
    return any(sum(status[kind] for kind in work) == 0 for status in look) and max(ready) > 2 * sum(ready) / len(ready)


def crawl(programs, folder, peers, hosts, pages, delay, fetches=32, answers_after=0, seconds=300):
    """Lets a swarm crawl a web to the end; gives what was counted."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    web = Web(programs["toyweb"], hosts, pages, answers_after, folder)
    swarm = []
    try:
        for number in range(peers):
            entries = [swarm[0].get("/api/peers")["listens"][0]] if swarm else []
            swarm.append(Peer(programs["apoidea"], folder, number, web, delay, fetches, entries))
        until = time.monotonic() + 60
        while abs(sum(peer.get("/api/peers")["share"] for peer in swarm) - 1) > 1e-9 and time.monotonic() < until:
            time.sleep(0.5)
        before = sum(peer.cpu_seconds() for peer in swarm)
        ask(swarm[0].address + "/api/seeds", swarm[0].token, {"urls": web.config["seeds"]})
        until = time.monotonic() + seconds
        quiet, looks = 0, []
        while quiet < 3 and time.monotonic() < until:
            time.sleep(1)
            looks.append([peer.status() for peer in swarm])
            quiet = quiet + 1 if all(map(is_done, looks[-1])) else 0
        cpu = sum(peer.cpu_seconds() for peer in swarm) - before
        statuses = [peer.status() for peer in swarm]
        traffic = [peer.get("/api/peers")["traffic"]["kinds"] for peer in swarm]
        log = json.loads(web.control("log"))["visits"]
        due = web.control("must-fetch").decode().split()
        for peer in swarm:
            peer.stop()
        return count(peers, fetches, statuses, looks, traffic, log, due, cpu, [peer.data for peer in swarm])
    finally:
        for peer in swarm:
            peer.process.kill()
            peer.process.wait()
        web.stop()


def apart(programs, folder, peers, hosts, pages, delay, fetches=32, seconds=300):
    """As many peers that know nothing of each other, each with its part of the hosts and pages in a web of its own: milliseconds of CPU for a page."""
    shutil.rmtree(folder, ignore_errors=True)
    webs, alone = [], []
    try:
        for number in range(peers):
            place = folder / str(number)
            place.mkdir(parents=True)
            webs.append(Web(programs["toyweb"], hosts // peers, pages // peers, 0, place))
            alone.append(Peer(programs["apoidea"], place, number, webs[-1], delay, fetches, []))
        before = sum(peer.cpu_seconds() for peer in alone)
        for peer, web in zip(alone, webs):
            ask(peer.address + "/api/seeds", peer.token, {"urls": web.config["seeds"]})
        until = time.monotonic() + seconds
        quiet = 0
        while quiet < 3 and time.monotonic() < until:
            time.sleep(1)
            quiet = quiet + 1 if all(is_done(peer.status()) for peer in alone) else 0
        cpu = sum(peer.cpu_seconds() for peer in alone) - before
        return 1000 * cpu / sum(peer.status()["totals"]["pages"] for peer in alone)
    finally:
        for peer in alone:
            peer.process.kill()
            peer.process.wait()
        for web in webs:
            web.stop()


def moment(visit):
    received = visit["received"]
    return received["secs"] + received["nanos"] / 1e9


def url(visit):
    port = visit["server"].rsplit(":", 1)[1]
    return f"{visit['scheme']}://{visit['host']}:{port}{visit['path']}"


def count(peers, fetches, statuses, looks, traffic, log, due, cpu, folders):
    waiting = list(filter(has_waiting, looks))
    share = lambda is_so: sum(map(is_so, waiting)) / max(1, len(waiting))
    totals = [status["totals"] for status in statuses]
    visits = [visit for visit in log if visit["path"] != "/robots.txt"]
    first = {}
    for visit in visits:
        first.setdefault(url(visit), moment(visit))
    fetched = sorted((at, page) for page, at in first.items() if page in set(due))
    start, end = fetched[0][0], fetched[-1][0]
    timeline = [0] * (int(end - start) + 1)
    for at, _ in fetched:
        timeline[int(at - start)] += 1
    return Result(
        peers=peers, pages=len(fetched), expected=len(due), requests=len([v for v in visits if url(v) in set(due)]),
        seconds=end - start, timeline=timeline, received=sum(s["totals"]["received"] for s in statuses),
        batches=sum(kinds[LINKS]["asked"] for kinds in traffic if LINKS in kinds),
        overlay_bytes=sum(kind["bytes_out"] for kinds in traffic for kind in kinds.values()),
        web_bytes=sum(s["totals"]["bytes"] for s in statuses), cpu_seconds=cpu,
        shares=[s["totals"]["pages"] for s in statuses], lent=sum(t["lent"] for t in totals),
        fetched=[t["pages"] - t["lent"] + t["borrowed"] for t in totals],
        waiting=len(waiting), uneven=share(lambda look: is_uneven(look, ["fetching", "processing"])), pausing=share(lambda look: is_uneven(look, ["fetching"])),
        used=share(lambda look: sum(min(status["fetching"], fetches) for status in look) / (peers * fetches)),
        quality=quality([page for _, page in fetched], folders),
    )


def quality(order, folders):
    """Links are read from the archives; a page's own host counts like any other."""
    links = collections.Counter()
    for folder in folders:
        for file in sorted((folder / "archive").glob("*.warc.gz*")):
            with gzip.open(file, "rt", encoding="utf-8", errors="replace") as lines:
                for line in lines:
                    if line.startswith("outlink: "):
                        links[line.split()[1]] += 1
    tenth = max(1, len(order) // 10)
    important = {page for page, _ in links.most_common(tenth)}
    return len(important & set(order[:tenth])) / tenth
