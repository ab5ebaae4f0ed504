"""A web that costs its server nothing: nginx answers /123 with links to /1230 … /1239, down to a depth, on several addresses."""

import pathlib
import shutil
import subprocess
import time

HOSTS = [f"127.0.13.{n}" for n in range(1, 17)]
PORT = 8713

CONFIG = """
daemon off; worker_processes 1; error_log {folder}/error.log; pid {folder}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    log_format size '$msec $bytes_sent $request_length';
    access_log {folder}/access.log size buffer=4k flush=100ms;
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder}; scgi_temp_path {folder};
    keepalive_requests 1000000; default_type text/html;
    server {{
        {listen}
        location = /robots.txt {{ return 404; }}
        location ~ "^/([0-9]{{0,{depth}}})$" {{
            return 200 "<!doctype html><title>$host $1</title><h1>$host $1</h1>{links}<p>{filler}";
        }}
        location / {{ return 404; }}
    }}
}}
"""


class Site:
    """The web, while it runs. `size` is about the bytes of a page, `depth` the digits of its longest paths."""

    def __init__(self, folder, size, depth):
        self.folder = pathlib.Path(folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        links = "".join(f"<a href='/$1{digit}'>{digit}</a> " for digit in range(10))
        words = "the quick brown fox jumps over the lazy dog and runs away from it again, "
        filler = (words * (size // len(words) + 1))[:size]
        # nginx takes no parameter longer than its buffer of 4 KiB.
        pieces = [filler[at : at + 2000] for at in range(0, len(filler), 2000)]
        sets = "".join(f"set $f{n} '{piece}'; " for n, piece in enumerate(pieces))
        filler = "".join(f"$f{n}" for n in range(len(pieces)))
        listen = sets + " ".join(f"listen {host}:{PORT};" for host in HOSTS)
        text = CONFIG.format(folder=self.folder, listen=listen, links=links, filler=filler, depth=depth)
        (self.folder / "nginx.conf").write_text(text)
        self.process = subprocess.Popen(["nginx", "-c", self.folder / "nginx.conf", "-p", self.folder])
        time.sleep(0.5)
        assert self.process.poll() is None, (self.folder / "error.log").read_text()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def transfers(self):
        """Of each answer: when, bytes sent by the server, bytes sent by the peer."""
        lines = (self.folder / "access.log").read_text().splitlines()
        return [(float(at), int(down), int(up)) for at, down, up in (line.split() for line in lines)]
