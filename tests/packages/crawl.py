"""A crawl of the toy web by peers of any packaging, and what they fetched."""

import collections
import json

import shell
from kit import peer
from kit.api import is_done
from kit.patience import wait
from kit.web import Web

# Seconds for a whole crawl.
PATIENCE = 400
# A crawl has ended when nobody had anything left in so many reports of each peer.
QUIET_REPORTS = 3
# Milliseconds between two requests to one host.
DELAY = 20


def settings(web, certificate, entries=()):
    """The settings of a peer that crawls the toy web with others on this computer, and nothing
    else. `certificate` is where the peer finds it."""
    return peer.in_swarm(entries) | web.settings(DELAY, certificate)


def wait_until_half_done(one):
    """Waits until a crawl has begun and is far from its end."""
    wait("half of the crawl", lambda: one.api.pages() > 100)


def wait_until_done(peers):
    """Waits until no peer has anything left, in several reports of each in a row after the first
    page."""
    quiet = {}

    def done():
        statuses = [one.api.status() for one in peers]
        has_begun = any(status["totals"]["pages"] for status in statuses)
        is_quiet = has_begun and all(map(is_done, statuses))
        for one, status in zip(peers, statuses, strict=True):
            quiet[one] = quiet.get(one, set()) | {status["at"]} if is_quiet else set()
        return min(map(len, quiet.values())) >= QUIET_REPORTS

    wait("the crawl to end", done, PATIENCE)


def check_fetched(web):
    """That each page that is due was asked for exactly once."""
    due = set(web.due())
    counts = collections.Counter(visit.url for visit in web.visits())
    wrong = {page: counts[page] for page in due if counts[page] != 1}
    some = list(wrong.items())[:10]
    assert not wrong, f"{len(wrong)} of {len(due)} pages were not fetched exactly once, as {some}"


def target_folder():
    """Where cargo builds."""
    metadata = shell.run("cargo", "metadata", "--no-deps", "--format-version=1", cwd=shell.TOP)
    return json.loads(metadata)["target_directory"]


def toyweb(folder, hosts=8, pages=300):
    """The toy web, of this build."""
    return Web(f"{target_folder()}/release/examples/toyweb", folder, hosts, pages)
