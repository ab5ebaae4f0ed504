"""An Internet of its own: a namespace with a web, name servers and a DHT, and homes behind wires.

Nothing in it reaches this computer's network. All addresses are of the Internet, since a peer dials
no others.
"""

import json
import os
import subprocess

import shell
from kit.patience import wait

# Where the web and its name server are, and where the DHT is.
WEB = [f"11.0.0.{n}" for n in range(1, 9)]
DHT = "9.9.9.9"
NAME = f"apoidea{os.getpid()}"


class Internet:
    """Namespaces for the middle and for so many homes; they are gone after `close`."""

    def __init__(self, homes):
        self.parts = []
        self.middle = self._namespace(f"{NAME}-net")
        for address in [*WEB, DHT]:
            self.middle.run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.middle.run("sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.homes = [self._home(number) for number in range(1, homes + 1)]

    def _namespace(self, name):
        shell.run("ip", "netns", "add", name)
        made = Namespace(name)
        self.parts.append(made)
        made.run("ip", "link", "set", "lo", "up")
        return made

    def _home(self, number):
        home = self._namespace(f"{NAME}-{number}")
        wire = f"wire{number}"
        self.middle.run(
            *("ip", "link", "add", wire, "type", "veth", "peer", "name", "line"),
            *("netns", home.name),
        )
        self.middle.run("ip", "address", "add", f"5.{number}.0.254/16", "dev", wire)
        self.middle.run("ip", "link", "set", wire, "up")
        home.run("ip", "address", "add", f"5.{number}.0.1/16", "dev", "line")
        home.gateway = f"5.{number}.0.254"
        home.plug_in()
        return home

    def block(self, packets):
        """Lets none of these packets arrive."""
        chain = "add chain inet block arriving { type filter hook input priority 0; }"
        rule = f"add rule inet block arriving {packets} drop"
        self.middle.run("nft", f"add table inet block; {chain}; {rule}")

    def unblock(self):
        self.middle.run("nft", "delete table inet block")

    def close(self):
        for part in self.parts:
            part.close()


class Namespace:
    """A network of its own, and the programs in it."""

    def __init__(self, name):
        self.name, self.gateway, self.started = name, None, []

    def command(self, *words):
        return ["ip", "netns", "exec", self.name, *map(str, words)]

    def run(self, *words):
        return shell.run(*self.command(*words))

    def start(self, *words, **options):
        """Starts a program that ends with this network."""
        program = subprocess.Popen(self.command(*words), **options)
        self.started.append(program)
        return program

    def fetch(self, url, method="GET", body=None, token=None):
        """The answer of a server in this network, or nothing while there is none."""
        words = ["curl", "--silent", "--fail", "--max-time", "60", "--request", method, url]
        if body is not None:
            words += ["--header", "Content-Type: application/json", "--data", json.dumps(body)]
        if token is not None:
            words += ["--header", f"Authorization: Bearer {token}"]
        done = subprocess.run(self.command(*words), stdout=subprocess.PIPE, check=False)
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else None

    def plug_in(self):
        self.run("ip", "link", "set", "line", "up")
        self.run("ip", "route", "replace", "default", "via", self.gateway)

    def unplug(self):
        self.run("ip", "link", "set", "line", "down")

    def close(self):
        for program in reversed(self.started):
            program.terminate()
            try:
                program.wait(20)
            except subprocess.TimeoutExpired:
                program.kill()
                program.wait()
        wait("the namespace to go", self._is_gone, 30)

    def _is_gone(self):
        done = subprocess.run(["ip", "netns", "delete", self.name], check=False)
        return done.returncode == 0
