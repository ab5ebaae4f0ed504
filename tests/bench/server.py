"""nginx on loopback, serving the corpus, and its log, which says what each contestant was given and
when.

The log is the one measure of coverage and speed that is the same for all contestants.
"""

import time

import corpus
from kit.nginx import Nginx

HTTP = """
    types {{ text/html html; text/plain txt; }}
    default_type application/octet-stream;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 65;
    open_file_cache max=20000 inactive=600s;
{servers}
"""

SERVER = """
    server {{
        listen {host}:{port};
        root {root};
        charset utf-8;
        location = /robots.txt {{ default_type text/plain; }}
    }}
"""

# Milliseconds until a line of the log is written, and seconds that are safely after.
FLUSH_MS = 500
LOG_SETTLES = 1.5


class Server:
    """A running nginx."""

    def __init__(self, folder, pages):
        servers = [SERVER.format(host=h, port=corpus.PORT, root=pages / h) for h in corpus.HOSTS]
        self.position = 0
        self.nginx = Nginx(
            folder,
            (corpus.HOSTS[-1], corpus.PORT),
            HTTP.format(servers="".join(servers)),
            log="$msec $status $server_addr$uri",
            workers=2,
            flush_ms=FLUSH_MS,
        )

    def stop(self):
        self.nginx.stop()

    def size(self):
        """Bytes of the log so far: grows while somebody asks."""
        return self.nginx.log.stat().st_size

    def served(self):
        """What was served since the last call: time, status, address and path of each request."""
        time.sleep(LOG_SETTLES)
        with self.nginx.log.open() as log:
            log.seek(self.position)
            lines = log.read().splitlines()
            self.position = log.tell()
        parts = (line.split(" ", 2) for line in lines)
        return [(float(at), int(status), page) for at, status, page in parts]
