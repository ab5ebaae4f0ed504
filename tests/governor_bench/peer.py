"""A peer under measurement: its CPU time and memory as the kernel counts them."""

import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

from site_nginx import NETWORK, PORT

TICK = os.sysconf("SC_CLK_TCK")


class Peer:
    """A peer that begins at these hosts, with preferences, until it is stopped."""

    def __init__(self, binary, folder, preferences, hosts=(), extra=()):
        self.folder = pathlib.Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        settings = {
            "api.port": 0,
            "archive.keep_free_mib": 0,
            "network.port": 0,
            "network.listen": '["127.0.0.1"]',
            "network.local_network": "off",
            "crawl.ports": f"[{PORT}]",
            "crawl.private_networks": f'["{NETWORK}"]',
            "crawl.private_delay_ms": 0,
            "crawl.private_address_delay_ms": 0,
            "crawl.depth": 100,
            "crawl.queue_per_domain": 10_000_000,
        }
        settings |= {f"preferences.{name}": value for name, value in preferences.items()}
        settings |= dict(extra)
        command = [binary, "--data", self.folder / "data", "--config", self.folder / "none.toml", "run"]
        command += [f"--set={name}={value}" for name, value in settings.items()]
        command += [f"--seed=http://{host}:{PORT}/" for host in hosts]
        self.process = subprocess.Popen(command, stdout=open(self.folder / "out", "w"), stderr=subprocess.STDOUT)
        deadline = time.time() + 30
        while not (self.folder / "data/api-address").exists():
            assert self.process.poll() is None and time.time() < deadline, (self.folder / "out").read_text()
            time.sleep(0.05)

    def ask(self, path, method="GET", body=None):
        read = lambda name: (self.folder / "data" / name).read_text().strip()
        request = urllib.request.Request(read("api-address") + path, method=method)
        request.add_header("Authorization", f"Bearer {read('api-token')}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def cpu(self):
        """Seconds of CPU time so far."""
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory(self):
        """Resident MiB."""
        pages = int(pathlib.Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def peak(self):
        """The largest resident set, in MiB."""
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
