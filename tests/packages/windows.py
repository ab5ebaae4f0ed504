"""The Windows installer under wine: installed, one network with peers of Linux, upgraded, removed.

Wine has no web view: the tray app is installed and looked at, but only the headless peer runs.
"""

import json
import os
import re
import shutil
import subprocess
import urllib.parse

import crawl
import licences
import shell
from kit import peer
from kit.api import is_one_ring
from kit.patience import wait

PREVIOUS = "0.0.9"
PROGRAMS = {"apoidea.exe", "apoidea-desktop.exe"}
INSTALLED = PROGRAMS | {
    "Apoidea.scr",
    "WebView2Loader.dll",
    "third-party-licences.txt",
    "LICENSE-MIT.txt",
    "LICENSE-APACHE.txt",
    "uninstall.exe",
}
# Libraries that must be on no list: they come with the compiler, not with Windows.
FOREIGN = re.compile(r"(?i)libgcc|libstdc|winpthread|msvcr1|vcruntime")
UNINSTALL = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Uninstall\Apoidea"
# Where a new peer lands on the ring is chance: in one of four trials somebody gets none of the
# domains.
TRIALS = 12
RUN = r"HKCU\Software\Microsoft\Windows\CurrentVersion\Run"
# Links that begin with apoidea: are invites.
SCHEME = r"HKCU\Software\Classes\apoidea"
NOTIFIER = r"HKCU\Software\Classes\AppUserModelId\org.apoidea.desktop"
SCREENSAVER = r"HKCU\Control Panel\Desktop"


def check(dist, work):
    installer = shell.only(dist, f"apoidea_{shell.version()}_x64-setup.exe")
    system = Wine(work)
    system.install(previous(work), "/AUTOSTART=1", "/SCREENSAVER=1")
    check_installed(system, PREVIOUS)
    check_firewall(system.firewall())
    assert system.knows(SCREENSAVER, r"\Apoidea.scr")
    for program in PROGRAMS:
        check_program(system.folder / program)
    assert "--hidden" in system.registry(RUN, "Apoidea")
    check_one_network(system, work)
    data = system.data
    identity = (data / "identity").read_bytes()
    system.install(installer)
    check_installed(system, shell.version())
    check_firewall(system.firewall())
    assert "--hidden" in system.registry(RUN, "Apoidea"), "the upgrade forgot a choice"
    licences.check((system.folder / "third-party-licences.txt").read_text(), dist, "windows")
    assert (data / "identity").read_bytes() == identity, "the upgrade touched the data"
    check_removal(system, installer, data)


def previous(work):
    """An installer of the version before this one, from the same source."""
    folder = work / "previous"
    shell.run(
        shell.TOP / "installer/windows/package",
        folder,
        env=os.environ | {"APOIDEA_VERSION": PREVIOUS},
    )
    return shell.only(folder, f"*_{PREVIOUS}_x64-setup.exe")


class Wine:
    """A Windows of its own."""

    def __init__(self, work):
        self.prefix = work / "wine"
        self.environment = os.environ | {
            "WINEPREFIX": str(self.prefix),
            "WINEDEBUG": "-all",
            "WINEDLLOVERRIDES": "netsh.exe=n",
            "USER": "volunteer",
            "DISPLAY": "",
        }
        self.run("wineboot", "--init")
        self.profile = shell.only(self.prefix / "drive_c/users", "[!P]*")
        self.folder = self.profile / "AppData/Local/Programs/Apoidea"
        self.data = self.profile / "AppData/Local/apoidea/data"
        self.shim = work / "bcryptprimitives.dll"
        build("process_prng.c", self.shim, "-shared", "-ladvapi32")
        build("netsh.c", self.prefix / "drive_c/windows/system32/netsh.exe")

    def run(self, *command):
        return shell.run(*command, env=self.environment)

    def install(self, installer, *options):
        self.run("wine", installer, "/S", *options)

    def registry(self, key, name):
        return self.run("wine", "reg", "query", key, "/v", name)

    def knows(self, key, word):
        """Does the registry say this word about the key? There need not be such a key."""
        said = subprocess.run(
            ["wine", "reg", "query", key],
            check=False,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        return word in said.stdout.replace(key, "")

    def firewall(self):
        """What the firewall was asked for since the last look."""
        asked = self.prefix / "drive_c/netsh.txt"
        words = asked.read_text().splitlines() if asked.exists() else []
        asked.unlink(missing_ok=True)
        return [line.removeprefix("netsh advfirewall firewall ") for line in words]

    def start(self, *words):
        """Starts the installed peer; with the shim beside it, and not in its folder."""
        environment = self.environment | {"WINEPATH": f"Z:{self.shim.parent}".replace("/", "\\")}
        return subprocess.Popen(
            ["wine", self.folder / "apoidea.exe", *words],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def end(self):
        """Ends every program."""
        self.run("wineserver", "--kill")
        self.run("wineserver", "--wait")


def build(source, program, *options):
    # The old file goes first: wine's own is a link into its installation.
    program.unlink(missing_ok=True)
    shell.run(
        "x86_64-w64-mingw32-gcc",
        "-O2",
        "-o",
        program,
        shell.TOP / "tests/packages" / source,
        *options,
    )


def check_firewall(asked):
    """Each program may be called by others over UDP, which is what QUIC uses; a rule of an older
    version is gone. Under wine one is an administrator."""
    removed, *added = asked
    assert removed == 'delete rule name="Apoidea"'
    assert len(added) == len(PROGRAMS)
    for program in PROGRAMS:
        assert any(
            line.startswith('add rule name="Apoidea" dir=in action=allow protocol=UDP')
            and f'\\{program}"' in line
            for line in added
        ), asked


def check_installed(system, version):
    found = {file.name for file in system.folder.iterdir()}
    assert found == INSTALLED, found ^ INSTALLED
    assert version in system.registry(UNINSTALL, "DisplayVersion")
    assert system.knows(NOTIFIER, "Apoidea")
    assert system.knows(rf"{SCHEME}\shell\open\command", r'\apoidea-desktop.exe" "%1"')
    menu = system.profile / "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Apoidea"
    assert {file.name for file in menu.iterdir()} == {"Apoidea.lnk", "Uninstall Apoidea.lnk"}
    assert (system.folder / "Apoidea.scr").stat().st_size == (
        system.folder / "apoidea-desktop.exe"
    ).stat().st_size


def check_program(program):
    """What it needs is part of Windows, and it says which version it is."""
    table = shell.run("x86_64-w64-mingw32-objdump", "-p", program)
    libraries = set(re.findall(r"DLL Name: (\S+)", table))
    assert libraries and not any(FOREIGN.search(library) for library in libraries), libraries
    content = program.read_bytes()
    at = content.find("ProductVersion".encode("utf-16-le"))
    assert at >= 0 and shell.version().encode("utf-16-le") in content[at : at + 80], (
        f"{program.name} has no version"
    )


def check_one_network(system, work):
    """Two peers of Linux and one of Windows divide a web among them; every page is fetched once."""
    web = crawl.toyweb(work, hosts=24)
    peers = []
    try:
        for _ in range(TRIALS):
            peers = start_trio(system, web, work)
            if len(owners(peers[0], web)) == len(peers):
                break
            end_trio(system, peers)
            peers = []
        assert peers, f"in {TRIALS} trials some peer owned no host"
        peers[0].api.seed(web.seeds)
        crawl.wait_until_done(peers)
        crawl.check_fetched(web)
        shares = [one.api.pages() for one in peers]
        assert all(shares), f"a peer did nothing: {shares}"
        print(f"pages fetched by two peers of Linux and one of Windows: {json.dumps(shares)}")
    finally:
        if peers:
            end_trio(system, peers)
        web.stop()


def start_trio(system, web, work):
    """Two peers of Linux and one of Windows, all new, in one ring."""
    binaries = os.environ.get("APOIDEA_BINARIES") or f"{crawl.target_folder()}/release"
    peers = []
    for number in range(2):
        settings = crawl.settings(web, web.certificate, entries(peers))
        peers.append(peer.start(f"{binaries}/apoidea", work / f"linux-{number}", settings))
    shutil.rmtree(system.data, ignore_errors=True)
    settings = crawl.settings(web, f"Z:{web.certificate}", entries(peers))
    peers.append(peer.Peer(system.start("run", *peer.options(settings)), system.data))
    wait("one ring of three", lambda: is_one_ring(peers))
    return peers


def end_trio(system, peers):
    system.end()
    for one in peers:
        one.kill()


def entries(peers):
    return [peers[0].api.entry_point()] if peers else []


def owners(one, web):
    """The peers that own any of the web's domains."""
    hosts = {urllib.parse.urlsplit(page).hostname for page in web.due()}
    return {one.api.owners(host)[0] for host in hosts}


def check_removal(system, installer, data):
    """The programs go; the data stays unless told otherwise."""
    stranger = system.folder / "notes.txt"
    stranger.write_text("not Apoidea's\n")
    cache = system.profile / "AppData/Local/org.apoidea.desktop"
    (cache / "EBWebView").mkdir(parents=True)
    uninstall(system)
    assert system.firewall() == ['delete rule name="Apoidea"']
    assert {file.name for file in system.folder.iterdir()} == {"notes.txt"}, (
        "exactly ours is removed"
    )
    assert (data / "identity").exists() and not cache.exists()
    for key in (UNINSTALL, RUN, NOTIFIER, SCHEME, SCREENSAVER):
        assert not system.knows(key, "Apoidea"), f"left: {key}"
    assert not (
        system.profile / "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Apoidea"
    ).exists()
    stranger.unlink()
    system.install(installer, "/AUTOSTART=1")
    system.install(installer, "/AUTOSTART=0")
    assert not system.knows(RUN, "Apoidea"), "a choice cannot be taken back"
    uninstall(system, "/DATA=remove")
    assert not system.folder.exists() and not data.parent.exists()


def uninstall(system, *options):
    # The uninstaller works from a copy of itself and returns at once.
    system.run("wine", system.folder / "uninstall.exe", "/S", *options)
    wait("the uninstaller", lambda: not (system.folder / "uninstall.exe").exists())
    system.run("wineserver", "--wait")
