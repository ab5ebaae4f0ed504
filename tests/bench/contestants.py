"""The contestants, and how each is told to do the same: one start page, eight hosts, eight
connections in all, robots honoured, no delay, only pages, no assets.

A contestant that keeps pages by nature (the two mirrors, and ours) does so; the two libraries keep
nothing.
"""

import dataclasses
import os
import pathlib
import subprocess

import corpus
from kit import peer

HERE = pathlib.Path(__file__).resolve().parent
CONNECTIONS = len(corpus.HOSTS)
# Scrapy compares hosts with their ports, spider without.
HOSTS_AND_PORTS = [f"{host}:{corpus.PORT}" for host in corpus.HOSTS]
SITES = [f"http://{host}" for host in corpus.HOSTS]
ASSETS = "css,js,svg,png,ico,woff2,woff,ttf,json,txt"


@dataclasses.dataclass
class Contestant:
    """A crawler: its name, what it keeps, its version, and its command for a start page and an
    empty folder."""

    name: str
    keeps: str
    version: str
    command: object
    ends: bool = True


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def apoidea(binary, more=None):
    def command(start, folder):
        settings = peer.ALONE | {
            "crawl.ports": [corpus.PORT],
            "crawl.only": corpus.HOSTS,
            "crawl.private_networks": ["127.0.0.0/8"],
            "crawl.private_delay_ms": 0,
            "crawl.private_address_delay_ms": 0,
            "crawl.depth": 10_000,
            "crawl.fetches": CONNECTIONS,
            **(more or {}),
        }
        return peer.command(binary, folder / "data", settings, [start])

    return command


def wget2(start, folder):
    return [
        "wget2",
        "--recursive",
        "--level=0",
        "--span-hosts",
        f"--domains={','.join(corpus.HOSTS)}",
        f"--max-threads={CONNECTIONS}",
        f"--reject={ASSETS}",
        "--filter-urls",
        "--robots=on",
        "--no-verbose",
        "--quiet",
        "--no-hsts",
        "--tries=1",
        f"--directory-prefix={folder}",
        start,
    ]


def httrack(start, folder):
    inside = [f"+{host}:{corpus.PORT}/*.html" for host in corpus.HOSTS]
    return [
        "httrack",
        start,
        "-O",
        folder,
        "-*",
        *inside,
        f"-c{CONNECTIONS}",
        "-%c10000",
        "-A0",
        "-r9999",
        "-s2",
        "-p1",
        "-%P0",
        "-I0",
        "-C0",
        "-q",
        "-Q",
        "-%!",
        "-%k",
        "-o0",
        "-j0",
        "-u0",
        "-N0",
        "-K4",
    ]


def scrapy_interpreter(work):
    """A venv with Scrapy, made when it is missing."""
    venv = work / "scrapy"
    if not (venv / "bin/scrapy").exists():
        print("Getting Scrapy …", flush=True)
        subprocess.run(["python3", "-m", "venv", venv], check=True)
        subprocess.run([venv / "bin/pip", "install", "--quiet", "scrapy==2.*"], check=True)
    return venv / "bin/python"


def scrapy(interpreter):
    return lambda start, folder: [
        interpreter,
        HERE / "scrapy_contestant.py",
        start,
        str(CONNECTIONS),
        *HOSTS_AND_PORTS,
    ]


def spider_binary(work):
    """The program around the `spider` crate, built when it is missing or old."""
    target = work / "spider"
    command = [
        "cargo",
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--manifest-path",
        HERE / "spider/Cargo.toml",
    ]
    subprocess.run(command, check=True, env=os.environ | {"CARGO_TARGET_DIR": str(target)})
    return target / "release/spider-contestant"


def spider(binary):
    return lambda start, folder: [binary, start, str(CONNECTIONS), *SITES]


def spider_version():
    lines = (HERE / "spider/Cargo.lock").read_text().splitlines()
    return lines[lines.index('name = "spider"') + 1].split('"')[1]


def all_of_them(work, binary):
    """Everybody, ours first."""
    interpreter = scrapy_interpreter(work)
    ours = output(binary, "--version").split()[-1]
    return [
        Contestant("Apoidea", "WARC, durable", ours, apoidea(binary), ends=False),
        Contestant(
            "Apoidea without archive",
            "durable state",
            ours,
            apoidea(binary, {"archive.keep": False}),
            ends=False,
        ),
        Contestant("wget2", "files", output("wget2", "--version").split()[2], wget2),
        Contestant("spider", "nothing", spider_version(), spider(spider_binary(work))),
        Contestant(
            "Scrapy",
            "nothing",
            output(interpreter, "-m", "scrapy", "version").split()[-1],
            scrapy(interpreter),
        ),
        Contestant(
            "HTTrack", "files", output("httrack", "--version").split()[2].split("+")[0], httrack
        ),
    ]
