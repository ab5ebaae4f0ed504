"""The pages that every contestant crawls: the toolchain's own HTML documentation, spread over
several hosts.

Links between pages of different hosts are made absolute, and links to what is not served here point
to the public copy of the documentation, which is out of scope for all. So every page is one of the
corpus, every link in scope leads to a page, and no contestant spends time on errors or assets. The
pages that can be reached are found by a walk of our own; coverage is measured against it.
"""

import collections
import hashlib
import json
import os
import pathlib
import posixpath
import re
import shutil
import subprocess

HOSTS = [f"127.0.1.{n}" for n in range(1, 9)]
PORT = 18080
PAGES = 11_200
START = "index.html"
# Folders of many small pages that fill the corpus up, in this order.
FILLERS = [
    f"core/arch/{name}/" for name in ("wasm32", "powerpc64", "s390x", "riscv64", "loongarch64")
]
# A folder with more pages than this is spread over several hosts.
FOLDER_PAGES = 400

# Pages that are not pages: error and print versions of the books, frames.
NOT_PAGES = {"404.html", "print.html", "toc.html"}
# A crawler may stop reading at 2 MiB, as ours does, so no page comes close.
MAX_BYTES = 1 << 20
# Counted when the way in which the corpus is made changes, so that a stored one is made anew.
VERSION = 1

LINK = re.compile(r'(<a\b[^>]*?\bhref=")([^"]*)(")')


def toolchain_docs():
    """The HTML documentation of the Rust toolchain in use."""
    root = subprocess.run(
        ["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True
    ).stdout.strip()
    docs = pathlib.Path(root, "share/doc/rust/html")
    if not docs.is_dir():
        raise SystemExit(
            "The toolchain has no documentation; get it with: rustup component add rust-docs"
        )
    return docs


def usable(path):
    """The text of a page, or nothing if it only redirects, asks not to be indexed, or is too
    big."""
    text = path.read_text(encoding="utf-8")
    head = text[:3000]
    if (
        'http-equiv="refresh"' in head
        or '<meta name="robots"' in head
        or len(text.encode()) > MAX_BYTES
    ):
        return None
    return text


def chosen(docs):
    """The chosen pages by path: all but the processor intrinsics first, some of those to fill
    up."""
    paths = sorted(p for p in docs.rglob("*.html") if p.name not in NOT_PAGES)
    names = [p.relative_to(docs).as_posix() for p in paths]
    first = [n for n in names if "arch/" not in n] + ["core/arch/index.html"]
    rest = [n for filler in FILLERS for n in names if n.startswith(filler)]
    pages, contents = {}, set()
    for name in first + rest:
        text = usable(docs / name)
        digest = text and hashlib.sha256(text.encode()).digest()
        if text and digest not in contents:
            contents.add(digest)
            pages[name] = text
        if len(pages) == PAGES:
            break
    return pages


def spread(names):
    """A host for each folder, biggest first, always to the host with the fewest pages so far."""
    folders = collections.defaultdict(list)
    for name in names:
        folders[posixpath.dirname(name)].append(name)
    shelves = [
        f[i : i + FOLDER_PAGES] for f in folders.values() for i in range(0, len(f), FOLDER_PAGES)
    ]
    load, hosts = dict.fromkeys(HOSTS, 0), {}
    for shelf in sorted(shelves, key=len, reverse=True):
        host = min(HOSTS, key=lambda host: load[host])
        load[host] += len(shelf)
        hosts |= dict.fromkeys(shelf, host)
    return hosts


def target(name, href):
    """Where a link of a page leads, as a path of the documentation with its fragment; nothing if
    elsewhere."""
    if re.match(r"[a-z][a-z0-9+.-]*:|//|#|$", href, re.IGNORECASE):
        return None
    path, hash_sign, fragment = href.partition("#")
    path = posixpath.normpath(
        posixpath.join("/", posixpath.dirname(name), path.partition("?")[0])
    ).lstrip("/")
    return path, hash_sign + fragment


def rewritten(name, text, hosts):
    """The page with its links made right for where it is served, and the pages it links to."""
    found = set()

    def replace(match):
        leads_to = target(name, match[2])
        if leads_to is None:
            return match[0]
        path, fragment = leads_to
        path = path if path in hosts else posixpath.join(path, "index.html")
        if path not in hosts:
            return f"{match[1]}https://doc.rust-lang.org/{leads_to[0]}{fragment}{match[3]}"
        found.add(path)
        if hosts[path] == hosts[name]:
            relative = posixpath.relpath(path, posixpath.dirname(name) or ".")
            return f"{match[1]}{relative}{fragment}{match[3]}"
        return f"{match[1]}http://{hosts[path]}:{PORT}/{path}{fragment}{match[3]}"

    return LINK.sub(replace, text), found


def reachable(links):
    """All pages that links lead to from the start page."""
    seen, waiting = {START}, [START]
    while waiting:
        for name in links[waiting.pop()] - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def make(folder):
    """Makes the corpus in `folder` unless it is there; returns what is known about it."""
    docs = toolchain_docs()
    compiler = subprocess.run(
        ["rustc", "--version"], check=True, capture_output=True, text=True
    ).stdout.strip()
    origin = f"{VERSION} {compiler} {PAGES} {PORT} {len(HOSTS)}"
    description = folder / "corpus.json"
    if description.exists():
        known = json.loads(description.read_text())
        if known["origin"] == origin:
            return known
    print("Making the corpus …", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    pages = chosen(docs)
    hosts = spread(pages)
    links = {}
    texts = {}
    for name, text in pages.items():
        texts[name], links[name] = rewritten(name, text, hosts)
    served = reachable(links)
    for host in HOSTS:
        (folder / host).mkdir(parents=True)
        (folder / host / "robots.txt").write_text("User-agent: *\nDisallow: /private/\nAllow: /\n")
    for name in served:
        file = folder / hosts[name] / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[name], encoding="utf-8")
    known = {
        "origin": origin,
        "compiler": compiler,
        "pages": sorted(f"{hosts[n]}/{n}" for n in served),
        "bytes": sum(os.path.getsize(folder / hosts[n] / n) for n in served),
        "links": sum(len(links[n]) for n in served),
        "per_host": collections.Counter(hosts[n] for n in served),
        "start": f"http://{hosts[START]}:{PORT}/{START}",
    }
    description.write_text(json.dumps(known))
    return known
