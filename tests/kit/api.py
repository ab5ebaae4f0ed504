"""A client of a peer's API, and the reading of its answers."""

import json
import urllib.request

# Seconds for an answer.
PATIENCE = 30


def fetch(url, method=None, headers=None, body=None):
    """The bytes of an answer. With a body, the request is a POST of it as JSON."""
    data = None if body is None else json.dumps(body).encode()
    headers = dict(headers or {})
    if data is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
        return answer.read()


class Api:
    """The API of the peer with this data folder.

    Address and token are read anew for each request, since a peer that starts again has others.
    """

    def __init__(self, data):
        self.data = data

    @property
    def address(self):
        return (self.data / "api-address").read_text().strip()

    @property
    def token(self):
        return (self.data / "api-token").read_text().strip()

    def ask(self, path, method=None, body=None):
        headers = {"Authorization": f"Bearer {self.token}"}
        return json.loads(fetch(self.address + path, method, headers, body))

    def status(self):
        return self.ask("/api/status")

    def peers(self):
        """The peer's view of the network."""
        return self.ask("/api/peers")

    def pages(self):
        """Pages fetched so far."""
        return self.status()["totals"]["pages"]

    def traffic(self):
        """Requests and bytes of the overlay, by the number of their kind."""
        return self.peers()["traffic"]["kinds"]

    def entry_point(self):
        """The address at which other peers can join."""
        return self.peers()["listens"][0]

    def owners(self, domain):
        """The peers responsible for a domain, its owner first."""
        return self.ask(f"/api/owners?domain={domain}")

    def seed(self, urls):
        self.ask("/api/seeds", body={"urls": urls})

    def pause(self):
        self.ask("/api/pause", method="POST")


def is_done(status):
    """Has the peer nothing left, nor links for others?"""
    left = status["queued"] + status["outbox"] + status["processing"]
    return status["state"] == "idle" and left == 0


def is_one_ring(peers):
    """Do these peers share all keys among them?"""
    return abs(sum(peer.api.peers()["share"] for peer in peers) - 1) < 1e-9
