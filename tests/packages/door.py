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
        except AssertionError:
            self._show()
            raise
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

    def _show(self):
        """Keeps what there was to see when something went wrong."""
        for number, window in enumerate(self.windows):
            keep(window, f"failed-{number}")
            status = window.ask("/api/status") or {}
            names = ("state", "reason", "network", "missing", "entry", "queued", "totals")
            print({name: status.get(name) for name in names}, flush=True)

    def serve_dht(self):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        dht = self.internet.middle.start(of_others("dht"), DHT, **pipes)
        self.nodes = dht.stdout.readline().split()

    def open(self, home, link=None):
        """Starts the app on a new computer, by a link or by its icon. The settings say how this
        Internet differs from the real one: its web, its certificates, where its DHT begins. And
        that other programs, which are tests here, may use the processor without the app making way
        for them."""
        settings = options(
            {
                "crawl.seeds": self.web["seeds"],
                "crawl.trusted_certificates": ["/srv/ca.pem"],
                "network.rendezvous_nodes": self.nodes,
                "preferences.other_cpu_percent": 0,
                "preferences.priority": "normal",
                "archive.keep_free_mib": 0,
            }
        )
        network = self.internet.homes[home]
        window = Window(self.root, network, self.folder / f"home-{home}", settings, link)
        self.windows.append(window)
        window.see("//h1[text()='Welcome to Apoidea']")
        return window


def of_others(name):
    """A program by the hand of others."""
    folder = f"{crawl.target_folder()}/outside"
    shell.run(
        *("cargo", "build", "--quiet", "--locked", "--target-dir", folder),
        *("--manifest-path", shell.TOP / "tests/outside/Cargo.toml"),
    )
    return f"{folder}/debug/{name}"


def keep(window, name):
    """Keeps a picture of a window; gives its file."""
    file = pathlib.Path(crawl.target_folder()) / f"artefacts/door/{name}.png"
    window.picture(file)
    return file


def read_code(picture):
    """The text of the QR code in a picture."""
    words = ("convert", picture, "-threshold", "50%", "-compress", "none", "pbm:-")
    _, width, _, *dots = shell.run(*words).split()
    dots, width = "".join(dots), int(width)
    rows = "\n".join(dots[at : at + width] for at in range(0, len(dots), width))
    return shell.run(of_others("qr"), "1", input=rows).strip()


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
    used = [window.ask("/api/status")["rendezvous_bytes"] for window in windows]
    seconds = time.monotonic() - begun
    print(
        f"one network of {len(windows)} with pages after {seconds:.0f} s; rendezvous: {used} bytes"
    )


def strangers(world):
    """Three that know nothing of each other meet in the DHT."""
    world.serve_dht()
    windows = [world.open(home) for home in range(HOMES)]
    keep(windows[0], "welcome")
    begun = time.monotonic()
    for window in windows:
        window.click(BEGIN)
    become_one(windows, begun)
    for home, window in enumerate(windows):
        keep(window, f"strangers-{home}")


def by_invite(world):
    """With a DHT that nobody reaches, by an invite of the first: the second opens the link, the
    third begins with the QR code."""
    world.serve_dht()
    world.internet.block(f"ip daddr {DHT}")
    windows = [world.open(home) for home in (0, 1)]
    for window in windows:
        window.click(BEGIN)
    for window in windows:
        wait("a page", lambda window=window: pages(window), MINUTE)
        window.read("nobody found yet")
    assert [peers(window) for window in windows] == [0, 0]
    keep(windows[0], "alone")
    link = windows[0].ask("/api/invite")["link"]
    windows[0].click("//nav//a[@href='#/peers']")
    windows[0].click("//button[text()='Invite somebody']")
    windows[0].see("//*[@aria-label='The invite as a QR code']")
    scanned = read_code(keep(windows[0], "invite"))
    assert scanned.lower() == link, (scanned, link)

    windows.append(world.open(2, scanned))
    windows[2].read("You were invited")
    keep(windows[2], "welcome-invited")
    begun = time.monotonic()
    windows[1].open_link(link)
    windows[2].click(BEGIN)
    for window in windows[1:]:
        window.click("//button[text()='Join']")
    become_one(windows, begun)
    keep(windows[1], "invited")


def without_a_line(world):
    """Nothing is reachable: the window says so, and goes on by itself."""
    home = world.internet.homes[0]
    home.unplug()
    window = world.open(0)
    window.click(BEGIN)
    window.read("No Internet connection")
    keep(window, "no-line")
    world.internet.block("udp dport 53")
    home.plug_in()
    window.read("name servers do not answer")
    keep(window, "no-name-server")
    assert not pages(window)
    world.internet.unblock()
    begun = time.monotonic()
    wait("a page once the line is back", lambda: pages(window), MINUTE)
    print(f"a page {time.monotonic() - begun:.0f} s after the line came back")
    keep(window, "line-is-back")
