"""A crawl of the toy web by peers of any packaging: what they were given, what they fetched, what they kept."""

import collections
import json
import sys
import urllib.error

import shell

sys.path.append(str(shell.TOP / "tests/evaluate"))
import swarm  # noqa: E402  The toy web as the experiments use it.

Web, url = swarm.Web, swarm.url


def settings(web, certificate, entries=(), delay=20):
    """The options that let a peer crawl the toy web with others on this computer, and nothing else."""
    config = web.config
    values = {
        "api.port": 0, "archive.keep_free_mib": 0, "network.port": 0, "network.listen": '["127.0.0.1"]',
        "network.local_network": "off", "network.is_private": "true", "network.entry_points": json.dumps(list(entries)),
        "crawl.ports": json.dumps([config["http_port"], config["https_port"]]),
        "crawl.private_networks": '["127.0.0.0/8"]', "crawl.private_delay_ms": delay, "crawl.private_address_delay_ms": 0,
        "crawl.dns": json.dumps([config["dns_address"]]), "crawl.trusted_certificates": json.dumps([str(certificate)]),
    }
    return [word for name, value in values.items() for word in ("--set", f"{name}={value}")]


class Peer:
    """A running peer, whose data folder can be read here."""

    def __init__(self, process, data):
        self.process, self.data = process, data
        shell.wait(f"the peer in {data} to answer", lambda: self.try_status())

    def ask(self, path, body=None):
        read = lambda name: (self.data / name).read_text().strip()
        return json.loads(swarm.ask(read("api-address") + path, read("api-token"), body))

    def try_status(self):
        assert self.process.poll() is None, "the peer ended"
        try:
            return self.ask("/api/status")
        except (OSError, urllib.error.URLError):
            return None

    def seed(self, web):
        self.ask("/api/seeds", {"urls": web.config["seeds"]})

    def kill(self):
        self.process.kill()
        self.process.wait()


def wait_until_done(peers, seconds=400):
    """Waits until no peer has anything left, in three reports of each in a row after the first page."""
    quiet = {}

    def done():
        statuses = [peer.ask("/api/status") for peer in peers]
        is_done = any(status["totals"]["pages"] for status in statuses) and all(map(swarm.is_done, statuses))
        for peer, status in zip(peers, statuses):
            quiet[peer] = quiet.get(peer, set()) | {status["at"]} if is_done else set()
        return min(map(len, quiet.values())) >= 3

    shell.wait("the crawl to end", done, seconds)


def check_fetched(web):
    """That each page that is due was asked for exactly once."""
    due = set(web.control("must-fetch").decode().split())
    counts = collections.Counter(url(visit) for visit in json.loads(web.control("log"))["visits"])
    wrong = {page: counts[page] for page in due if counts[page] != 1}
    assert not wrong, f"{len(wrong)} of {len(due)} pages were not fetched exactly once, as {list(wrong.items())[:10]}"


def target_folder():
    """Where cargo builds."""
    metadata = shell.run("cargo", "metadata", "--no-deps", "--format-version=1", cwd=shell.TOP)
    return json.loads(metadata)["target_directory"]


def toyweb(folder, hosts=8, pages=300):
    """The toy web, of this build."""
    return Web(f"{target_folder()}/release/examples/toyweb", hosts, pages, answers_after=0, folder=folder)
