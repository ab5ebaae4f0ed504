"""The toy web as a process of its own: a made-up web on loopback, with a log of all visits."""

import json
import pathlib
import signal
import subprocess

from kit.api import fetch

# Seconds for the web to end after it was asked to.
STOP = 20


class Web:
    """A toy web with so many hosts and pages, each of which answers after some milliseconds."""

    def __init__(self, program, folder, hosts, pages, answers_after=0):
        numbers = {
            "hosts": hosts,
            "pages": pages,
            "mean-bytes": 6000,
            "addresses": 32,
            "answers-after-ms": answers_after,
        }
        command = [program, "--print-config"]
        command += [word for name, value in numbers.items() for word in (f"--{name}", str(value))]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.config = json.loads(self.process.stdout.readline())
        self.certificate = pathlib.Path(folder) / "ca.pem"
        self.certificate.write_text(self.config["ca_pem"])

    @property
    def seeds(self):
        return self.config["seeds"]

    def settings(self, delay, certificate=None):
        """The settings with which a peer crawls this web, `delay` ms apart on a host."""
        return {
            "crawl.ports": [self.config["http_port"], self.config["https_port"]],
            "crawl.private_networks": ["127.0.0.0/8"],
            "crawl.private_delay_ms": delay,
            "crawl.private_address_delay_ms": 0,
            "crawl.dns": [self.config["dns_address"]],
            "crawl.trusted_certificates": [str(certificate or self.certificate)],
        }

    def due(self):
        """The URLs that a crawl must fetch, each once."""
        return self._control("must-fetch").decode().split()

    def visits(self):
        """Every request so far."""
        return [Visit(visit) for visit in json.loads(self._control("log"))["visits"]]

    def _control(self, path):
        return fetch(f"http://{self.config['control_address']}/.toyweb/{path}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=STOP)


class Visit:
    """One request: when it was received, and of which page."""

    def __init__(self, logged):
        received = logged["received"]
        port = logged["server"].rsplit(":", 1)[1]
        self.at = received["secs"] + received["nanos"] / 1e9
        self.url = f"{logged['scheme']}://{logged['host']}:{port}{logged['path']}"
