"""An nginx in the foreground, in a folder of its own, and its log.

Its user says what is served; everything else about a short-lived server on loopback is here.
"""

import pathlib
import shutil
import socket
import subprocess

from kit.patience import wait

CONFIG = """
daemon off;
worker_processes {workers};
worker_rlimit_nofile 16384;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 8192; }}
http {{
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 1000000;
    log_format kit '{log}';
    access_log {folder}/access.log kit buffer=64k flush={flush_ms}ms;
{http}
}}
"""
# Seconds for nginx to listen after its start.
START = 10


def version():
    said = subprocess.run(["nginx", "-v"], check=True, capture_output=True, text=True).stderr
    return said.strip().split("/")[-1]


class Nginx:
    """A running nginx, which listens at `address`, a host and a port.

    `http` is what its configuration says of the servers, `log` the format of a line of its log, and
    `prefix` the words before its command.
    """

    def __init__(self, folder, address, http, log, workers=1, flush_ms=100, prefix=()):
        self.folder = pathlib.Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.log = self.folder / "access.log"
        self.log.touch()
        config, errors = self.folder / "nginx.conf", self.folder / "error.log"
        config.write_text(
            CONFIG.format(folder=folder, http=http, log=log, workers=workers, flush_ms=flush_ms)
        )
        command = [*prefix, "nginx", "-c", config, "-p", self.folder, "-e", errors]
        self.process = subprocess.Popen(command)
        try:
            wait("nginx to listen", lambda: self._listens(address), START, pause=0.05)
        except BaseException:
            self.stop()
            raise

    def _listens(self, address):
        assert self.process.poll() is None, (self.folder / "error.log").read_text()
        try:
            socket.create_connection(address, timeout=1).close()
        except OSError:
            return False
        return True

    def lines(self):
        """The lines of the log so far, each as its words."""
        return [line.split(" ") for line in self.log.read_text().splitlines()]

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
