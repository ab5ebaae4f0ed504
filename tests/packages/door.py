"""The first minute: the package on three new computers, an Internet of their own, Begin clicked."""

import json
import pathlib
import subprocess
import tempfile
import time

import crawl
import shell
from internet import DHT, WEB, Internet
from kit.patience import wait
from kit.peer import options
from root import Root
from window import Window

MINUTE = 60
HOMES = 3
BEGIN = "//button[text()='Begin']"


def check(dist, work):
    root = Root(work / "root")
    root.install(shell.only(dist, f"apoidea_{shell.version()}_amd64.deb"))
    (root.folder / "etc/resolv.conf").write_text(f"nameserver {WEB[0]}\n")
    for scene in (strangers, by_invite, without_a_line):
        # The window's programs meet in `/tmp`.
        with tempfile.TemporaryDirectory(prefix="apoidea-door-") as folder:
            World(root, pathlib.Path(folder)).play(scene)


class World:
    """The Internet with a web, and the computers of volunteers."""

    def __init__(self, root, folder):
        self.root, self.folder, self.windows = root, folder, []
        self.internet = Internet(HOMES)
        self.nodes = []

    def play(self, scene):
        try:
            self._serve_web()
            scene(self)
            print(f"{scene.__name__.replace('_', ' ')}: good", flush=True)
        finally:
            for window in self.windows:
                window.close()
            self.internet.close()

    def _serve_web(self):
        words = [f"{crawl.target_folder()}/release/examples/toyweb", "--print-config"]
        words += ["--hosts", 30, "--pages", 1500, "--https-percent", 100]
        words += [word for address in WEB for word in ("--listening-at", address)]
        words += ["--ports", 80, 443, 53, 0]
        web = self.internet.middle.start(*words, stdout=subprocess.PIPE, text=True)
        self.web = json.loads(web.stdout.readline())
        # The certificates of this web are not those of the Internet.
        (self.root.folder / "srv/ca.pem").write_text(self.web["ca_pem"])

    def serve_dht(self):
        shell.run(
            *("cargo", "build", "--quiet", "--locked"),
            *("--manifest-path", shell.TOP / "tests/outside/Cargo.toml"),
            *("--target-dir", f"{crawl.target_folder()}/outside"),
        )
        program = f"{crawl.target_folder()}/outside/debug/dht"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        dht = self.internet.middle.start(program, DHT, **pipes)
        self.nodes = dht.stdout.readline().split()

    def open(self, home):
        """Starts the app on a new computer. The settings say how this Internet differs from the
        real one: its web, its certificates, where its DHT begins. And that other programs, which
        are tests here, may use the processor."""
        settings = options(
            {
                "crawl.seeds": self.web["seeds"],
                "crawl.trusted_certificates": ["/srv/ca.pem"],
                "network.rendezvous_nodes": self.nodes or [f"{DHT}:6881"],
                "preferences.other_cpu_percent": 0,
                "archive.keep_free_mib": 0,
            }
        )
        network = self.internet.homes[home]
        window = Window(self.root, network, self.folder / f"home-{home}", settings)
        self.windows.append(window)
        window.see("//h1[text()='Welcome to Apoidea']")
        return window


def keep(window, name):
    window.picture(pathlib.Path(crawl.target_folder()) / f"artefacts/door/{name}.png")


def pages(window):
    status = window.ask("/api/status")
    return status and status["totals"]["pages"]


def peers(window):
    status = window.ask("/api/status")
    network = status["network"] if status else {}
    return network.get("peers", 0) if network.get("kind") == "member" else 0


def become_one(windows, begun):
    for window in windows:
        left = max(1, MINUTE - (time.monotonic() - begun))
        wait("a page", lambda window=window: pages(window), left)
        left = max(1, MINUTE - (time.monotonic() - begun))
        wait("one network", lambda window=window: peers(window) == len(windows), left)
    print(f"one network of {len(windows)}, each with pages, {time.monotonic() - begun:.0f} s after")


def strangers(world):
    """Three that know nothing of each other meet in the DHT."""
    world.serve_dht()
    windows = [world.open(home) for home in range(HOMES)]
    begun = time.monotonic()
    for window in windows:
        window.click(BEGIN)
    become_one(windows, begun)
    for home, window in enumerate(windows):
        keep(window, f"strangers-{home}")


def by_invite(world):
    """Without a DHT, by a link that one gives to the others."""
    windows = [world.open(home) for home in range(HOMES)]
    for window in windows:
        window.click(BEGIN)
    for window in windows:
        wait("a page", lambda window=window: pages(window), MINUTE)
    assert [peers(window) for window in windows] == [0] * HOMES
    invite = windows[0].ask("/api/invite")
    begun = time.monotonic()
    for window in windows[1:]:
        window.open_link(invite["link"])
        window.click("//button[text()='Join']")
    become_one(windows, begun)
    keep(windows[1], "invited")


def without_a_line(world):
    """Nothing is reachable: the window says so, and goes on by itself."""
    home = world.internet.homes[0]
    home.unplug()
    window = world.open(0)
    window.click(BEGIN)
    window.read("no Internet connection")
    keep(window, "no-line")
    assert not pages(window)
    home.plug_in()
    wait("a page once the line is back", lambda: pages(window), MINUTE)
    keep(window, "line-is-back")
