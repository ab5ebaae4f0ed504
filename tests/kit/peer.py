"""A peer as a process of its own: started with settings, asked through its API, measured, ended.

Settings are a dictionary of Python values by the name that `--set` takes.
"""

import json
import pathlib
import shutil
import subprocess
import urllib.error

from kit import process
from kit.api import Api
from kit.patience import wait

# Seconds for a peer to answer after its start.
START = 120
# Seconds for a peer to end after it was asked to.
STOP = 60

# A peer that only its own test meets: free ports, loopback only, no announcement on the network.
ALONE = {
    "api.port": 0,
    "archive.keep_free_mib": 0,
    "network.port": 0,
    "network.listen": ["127.0.0.1"],
    "network.local_network": "off",
    "network.rendezvous": "off",
    "crawl.seeds": [],
}


def in_swarm(entries=()):
    """The settings of a peer in a private network that it joins at these entry points."""
    return ALONE | {"network.is_private": True, "network.entry_points": list(entries)}


def toml(value):
    """A setting as TOML, which is JSON but for tables."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {toml(part)}" for name, part in value.items()) + " }"
    return json.dumps(value)


def options(settings):
    """The settings as words of the command line."""
    return [word for name, value in settings.items() for word in ("--set", f"{name}={toml(value)}")]


def command(program, data, settings, seeds=()):
    """The command of a peer that reads no configuration of this computer."""
    config = pathlib.Path(data).with_suffix(".toml")
    words = [program, "--data", data, "--config", config, "run", *options(settings)]
    return words + [f"--seed={url}" for url in seeds]


def start(program, data, settings, seeds=()):
    """Starts a peer with an empty data folder; its output goes to a file beside that."""
    data = pathlib.Path(data)
    shutil.rmtree(data, ignore_errors=True)
    data.parent.mkdir(parents=True, exist_ok=True)
    log = data.with_suffix(".log")
    with log.open("wb") as out:
        words = command(program, data, settings, seeds)
        started = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT)
    try:
        return Peer(started, data, log)
    except BaseException:
        started.kill()
        started.wait()
        raise


class Peer:
    """A running peer. It may be started by anything, if its data folder can be read here."""

    def __init__(self, started, data, log=None):
        self.process, self.data, self.log = started, pathlib.Path(data), log
        self.api = Api(self.data)
        wait(f"the peer in {data} to answer", self.try_status, START, pause=0.05)

    def try_status(self):
        """The status, or nothing while the peer does not answer yet."""
        said = self.log.read_text(errors="replace") if self.log else ""
        assert self.process.poll() is None, f"the peer in {self.data} ended: {said}"
        try:
            return self.api.status()
        except (OSError, urllib.error.URLError, ValueError):
            return None

    def cpu_seconds(self):
        return process.cpu_seconds(self.process.pid)

    def resident_mib(self):
        return process.resident_mib(self.process.pid)

    def peak_mib(self):
        return process.peak_mib(self.process.pid)

    def stop(self):
        """Asks the peer to end, and kills it if it does not; gives its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(STOP)
        except subprocess.TimeoutExpired:
            return self.kill()

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
