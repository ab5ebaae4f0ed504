"""Webs that cost their server next to nothing: an nginx that answers on every address of
127.13.0.0/16."""

import pathlib
import shutil

from kit.nginx import Nginx

PORT = 8713
NETWORK = "127.13.0.0/16"

HTTP = """
    default_type text/html;
    server {{
        listen 0.0.0.0:{port} backlog=4096;
        location = /robots.txt {{ return 404; }}
        {locations}
        location / {{ return 404; }}
    }}
"""
WORDS = "the quick brown fox jumps over the lazy dog and runs away from it again, "


def hosts(count):
    """So many addresses, each a host of its own."""
    return [f"127.13.{n // 250}.{n % 250 + 1}" for n in range(count)]


def tree(size, depth):
    """Made-up pages of about `size` bytes: /123 links to /1230 … /1239, down to `depth` digits."""
    links = "".join(f"<a href='/$1{digit}'>{digit}</a> " for digit in range(10))
    filler = (WORDS * (size // len(WORDS) + 1))[:size]
    # nginx takes no parameter longer than its buffer of 4 KiB.
    pieces = [filler[at : at + 2000] for at in range(0, len(filler), 2000)]
    sets = "".join(f"set $f{n} '{piece}'; " for n, piece in enumerate(pieces))
    filler = "".join(f"$f{n}" for n in range(len(pieces)))
    page = f"<!doctype html><title>$host $1</title><h1>$host $1</h1>{links}<p>{filler}"
    return f"""{sets} location ~ "^/([0-9]{{0,{depth}}})$" {{ return 200 "{page}"; }}"""


def heavy(folder, size, pages, rate_kib):
    """`pages` pages on each host, of `size` bytes and each different, that come at `rate_kib` KiB/s
    per connection."""
    head = "<!doctype html><title><!--#echo var='host' --><!--#echo var='request_uri' --></title>"
    links = "".join(f"<a href='/heavy/{n}'>{n}</a> " for n in range(pages - 1))
    text = head + links + "".join(f"<p>{n} {WORDS}" for n in range(size // (len(WORDS) + 8)))
    (folder / "heavy.html").write_text(text)
    serve = f"root {folder}; ssi on; limit_rate {rate_kib}k; try_files /heavy.html =404;"
    return f"location = / {{ {serve} }} location /heavy/ {{ {serve} }}"


class Site:
    """A web, while it runs. `locations` makes nginx's, given a folder for files; `prefix` goes
    before the command."""

    def __init__(self, folder, locations, prefix=()):
        files = pathlib.Path(folder) / "files"
        shutil.rmtree(folder, ignore_errors=True)
        files.mkdir(parents=True)
        http = HTTP.format(port=PORT, locations=locations(files))
        log = "$msec $bytes_sent $request_length"
        place = pathlib.Path(folder) / "nginx"
        self.nginx = Nginx(place, (hosts(1)[0], PORT), http, log, prefix=prefix)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        self.nginx.stop()

    def transfers(self):
        """Of each answer: when, bytes sent by the server, bytes sent by the peer."""
        return [(float(at), int(down), int(up)) for at, down, up in self.nginx.lines()]
