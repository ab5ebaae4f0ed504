"""The services under a systemd of their own: they crawl within their walls, go on in the new
version, and are gone when purged."""

import pathlib
import shutil
import signal
import subprocess
import time

import crawl
import debian
import shell
from kit.patience import PATIENCE, wait
from kit.peer import Peer, toml
from root import Root

# What brings a user's own services with it.
SESSIONS = ("dbus", "dbus-user-session", "libpam-systemd")
USER = "volunteer"


def check(dist, work):
    package = shell.only(dist, f"apoidea-headless_{shell.version()}_amd64.deb")
    root = Root(work / "root")
    root.run("apt-get", "install", "--yes", "--quiet=2", "--no-install-recommends", *SESSIONS)
    root.install(debian.previous("headless", work))
    root.run("useradd", "--create-home", USER)
    machine = Machine(root.folder)
    if not machine.is_up():
        print("not shown: systemd does not start inside a folder here")
        return
    try:
        web = crawl.toyweb(work)
        try:
            check_system(machine, root.folder, package, web)
            check_user(machine, root.folder, web)
        finally:
            web.stop()
        machine.run("dpkg", "--purge", "apoidea-headless")
        assert machine.says("systemctl", "is-active", "apoidea") == "inactive"
        left = [path for path in root.files() if "apoidea" in path and not path.startswith("home/")]
        assert not left, f"purging left {left}"
    finally:
        machine.stop()


class Machine:
    """A system that has been started, in a folder; it shares this computer's network."""

    def __init__(self, folder):
        (folder / "usr/sbin/policy-rc.d").unlink()
        command = [
            "systemd-nspawn",
            "--quiet",
            "--register=no",
            "--keep-unit",
            "--boot",
            "--console=pipe",
            f"--directory={folder}",
        ]
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self.folder = folder

    def command(self, *words):
        of = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        first = of.read_text().split()[0]
        return [
            "nsenter",
            f"--target={first}",
            "--all",
            "env",
            "-i",
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME=/root",
            *map(str, words),
        ]

    def run(self, *words):
        return shell.run(*self.command(*words))

    def says(self, *words):
        """The answer of a program, which need not succeed."""
        command = self.command(*words)
        done = subprocess.run(command, check=False, text=True, capture_output=True)
        return done.stdout.strip()

    def is_up(self):
        """Has it started all that it starts? Where there is no place for a second systemd, it gives
        up."""
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            try:
                if self.says("systemctl", "is-system-running") in ("running", "degraded"):
                    return True
            except (OSError, IndexError):
                pass
            time.sleep(0.2)
        self.process.kill()
        self.process.wait()
        return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)


def configure(folder, web, file):
    """Writes the settings with which a service knows the toy web and nothing else."""
    shutil.copy(web.certificate, folder / "srv/ca.pem")
    settings = crawl.settings(web, "/srv/ca.pem")
    lines = [f"{name} = {toml(value)}\n" for name, value in settings.items()]
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    (folder / file).write_text("".join(lines))


def check_system(machine, folder, package, web):
    """A crawl that the service of the older version began is ended by that of the newer one, and no
    page is fetched twice."""
    configure(folder, web, "etc/apoidea/apoidea.toml")
    machine.run("systemctl", "enable", "--now", "apoidea")
    peer = Peer(machine.process, folder / "var/lib/apoidea")
    check_walls(machine)
    peer.api.seed(web.seeds)
    crawl.wait_until_half_done(peer)
    identity = (peer.data / "identity").read_bytes()
    before = main_process(machine)
    shutil.copy(package, folder / "srv")
    machine.run("dpkg", "--install", f"/srv/{package.name}")
    (folder / "srv" / package.name).unlink()
    assert shell.version() in machine.run("apoidea", "--version")
    assert main_process(machine) not in (before, "0"), "the upgrade did not restart the service"
    wait("the new version", peer.try_status)
    crawl.wait_until_done([peer])
    assert (peer.data / "identity").read_bytes() == identity
    crawl.check_fetched(web)
    assert "pages" in machine.run("apoidea", "--data", "/var/lib/apoidea", "status")
    print("the computer's service crawled, was upgraded, and ended the crawl")


def main_process(machine):
    return machine.run("systemctl", "show", "--property=MainPID", "--value", "apoidea").strip()


def check_walls(machine):
    """That those which the unit asks for are there."""
    status = dict(
        line.split(":\t", 1)
        for line in machine.run("cat", f"/proc/{main_process(machine)}/status").splitlines()
        if ":\t" in line
    )
    assert "0" not in status["Uid"].split(), status["Uid"]
    assert (status["NoNewPrivs"], status["Seccomp"], int(status["CapBnd"], 16)) == ("1", "2", 0), (
        status
    )


def check_user(machine, folder, web):
    """One of a user, who need not be logged in."""
    configure(folder, web, f"home/{USER}/.config/apoidea/apoidea.toml")
    machine.run("chown", "--recursive", f"{USER}:", f"/home/{USER}")
    machine.run("loginctl", "enable-linger", USER)
    session = ("systemctl", "--user", f"--machine={USER}@")
    wait(
        "the user's services",
        lambda: machine.says(*session, "is-system-running") in ("running", "degraded"),
    )
    machine.run(*session, "enable", "--now", "apoidea")
    peer = Peer(machine.process, folder / f"home/{USER}/.local/share/apoidea")
    assert peer.api.status()
    machine.run(*session, "disable", "--now", "apoidea")
    assert machine.says(*session, "show", "--property=Result", "--value", "apoidea") == "success"
    print("a user's service ran and was stopped")
