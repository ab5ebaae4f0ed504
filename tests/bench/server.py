"""nginx on loopback, serving the corpus, and its log, which says what each contestant was given and when.

The log is the one measure of coverage and speed that is the same for all contestants.
"""

import pathlib
import subprocess
import time

import corpus

CONFIG = """
daemon off;
worker_processes 2;
pid {folder}/nginx.pid;
error_log {folder}/error.log error;
events {{ worker_connections 1024; }}
http {{
    types {{ text/html html; text/plain txt; }}
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_requests 1000000;
    keepalive_timeout 65;
    open_file_cache max=20000 inactive=600s;
    log_format lean '$msec $status $server_addr$uri';
    access_log {folder}/access.log lean buffer=64k flush=500ms;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
{servers}
}}
"""

SERVER = "    server {{ listen {host}:{port}; root {root}; charset utf-8; location = /robots.txt {{ default_type text/plain; }} }}"

# The log is written within half a second; this is safely after.
LOG_SETTLES = 1.5


class Server:
    """A running nginx."""

    def __init__(self, folder, pages):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        servers = "\n".join(SERVER.format(host=h, port=corpus.PORT, root=pages / h) for h in corpus.HOSTS)
        config = self.folder / "nginx.conf"
        config.write_text(CONFIG.format(folder=self.folder, servers=servers))
        self.log = self.folder / "access.log"
        self.log.write_text("")
        self.position = 0
        self.process = subprocess.Popen(["nginx", "-c", config, "-e", self.folder / "error.log"])
        self._wait()

    def _wait(self):
        deadline = time.monotonic() + 10
        while subprocess.run(["bash", "-c", f"exec 3<>/dev/tcp/{corpus.HOSTS[-1]}/{corpus.PORT}"],
                             stderr=subprocess.DEVNULL).returncode:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"nginx does not start; see {self.folder}/error.log")
            time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def size(self):
        """Bytes of the log so far: grows while somebody asks."""
        return self.log.stat().st_size

    def served(self):
        """What was served since the last call: time, status, address and path of each request."""
        time.sleep(LOG_SETTLES)
        with self.log.open() as log:
            log.seek(self.position)
            lines = log.readlines()
            self.position = log.tell()
        return [(float(at), int(status), page) for at, status, page in (line.rstrip("\n").split(" ", 2) for line in lines)]
