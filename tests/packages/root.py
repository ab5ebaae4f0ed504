"""A Debian system in a folder: made once, copied for each use, without anything of ours in it."""

import os
import pathlib
import shutil
import subprocess

import shell

MIRROR = "http://deb.debian.org/debian"
SUITE = "bookworm"
# What every use needs; the rest comes with the packages.
INCLUDE = "ca-certificates,systemd"
# Left behind by apt and dpkg themselves, whatever they install.
OF_THE_SYSTEM = (
    "var/cache/",
    "var/lib/apt/",
    "var/lib/dpkg/",
    "var/log/",
    "etc/ld.so.cache",
    "proc/",
    "sys/",
    "dev/",
    "tmp/",
    "run/",
)


def base():
    """The system that copies are made of."""
    folder = (
        pathlib.Path(
            os.environ.get("APOIDEA_CACHE", pathlib.Path.home() / ".cache/apoidea-packages")
        )
        / SUITE
    )
    if not (folder / "etc/debian_version").exists() or (folder / "debootstrap").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        shell.run("debootstrap", "--variant=minbase", f"--include={INCLUDE}", SUITE, folder, MIRROR)
    return folder


class Root:
    """A fresh copy."""

    def __init__(self, folder):
        self.folder = folder
        shell.run("cp", "--archive", "--reflink=auto", base(), folder)
        shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
        # No service starts inside a folder.
        (folder / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n")
        (folder / "usr/sbin/policy-rc.d").chmod(0o755)
        self.run("apt-get", "update", "--quiet=2")

    def command(self, *words, binds=()):
        """A command inside, with mounts that go away with it."""
        mounts = "mount -t proc proc $0/proc && mount --rbind /dev $0/dev"
        for bind in binds:
            (self.folder / str(bind).lstrip("/")).mkdir(parents=True, exist_ok=True)
            mounts += f" && mount --bind {bind} $0{bind}"
        script = f'{mounts} && exec chroot "$0" "$@"'
        return ["unshare", "--mount", "sh", "-c", script, str(self.folder), *map(str, words)]

    def run(self, *words):
        return shell.run(
            *self.command(*words),
            env={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "DEBIAN_FRONTEND": "noninteractive",
                "HOME": "/root",
            },
        )

    def start(self, *words, binds=(), **options):
        """Starts a program inside that is ended by its caller."""
        return subprocess.Popen(self.command(*words, binds=binds), **options)

    def install(self, package):
        """Installs a package file, with what it depends on."""
        shutil.copy(package, self.folder / "srv" / package.name)
        self.run(
            "apt-get",
            "install",
            "--yes",
            "--quiet=2",
            "--no-install-recommends",
            f"/srv/{package.name}",
        )
        (self.folder / "srv" / package.name).unlink()

    def files(self):
        """All files and folders but those that the system keeps about itself."""
        found = set()
        for path, folders, files in os.walk(self.folder):
            for name in folders + files:
                relative = os.path.relpath(os.path.join(path, name), self.folder)
                if not f"{relative}/".startswith(OF_THE_SYSTEM) and not relative.startswith(
                    OF_THE_SYSTEM
                ):
                    found.add(relative)
        return found
