"""The window of the installed app on a screen that nobody sees, driven by WebKit's own driver."""

import json
import os
import shlex
import subprocess

import shell
from kit.patience import wait

DRIVER = "/usr/bin/WebKitWebDriver"
PORT = 4444


class Desktop:
    """An X server and a session bus, which a container of the app may share through `/tmp`."""

    def __init__(self, folder):
        read, write = os.pipe()
        self.parts = [
            subprocess.Popen(
                ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x900x24"],
                pass_fds=[write],
                stderr=subprocess.DEVNULL,
            )
        ]
        os.close(write)
        with os.fdopen(read) as line:
            display = f":{line.readline().strip()}"
        bus = f"unix:path={folder}/bus"
        self.parts.append(
            subprocess.Popen(["dbus-daemon", "--session", "--nofork", f"--address={bus}"])
        )
        self.variables = {"DISPLAY": display, "DBUS_SESSION_BUS_ADDRESS": bus}

    def close(self):
        for part in reversed(self.parts):
            part.terminate()
            part.wait()


class Window:
    """The app that is installed in a root, started in a home, with its window under control."""

    def __init__(self, root, network, home, settings, link=None):
        home.mkdir()
        self.home, self.network, self.root = home, network, root
        self.desktop = Desktop(home)
        self.data = home / "data"
        self.words = ["--data", self.data, *settings]
        self.app = home / "apoidea-desktop"
        inside = root.command("/usr/bin/apoidea-desktop", binds=("/tmp",))
        self.app.write_text(f'#!/bin/sh\nexec {shlex.join(inside)} "$@"\n')
        self.app.chmod(0o755)
        network.start(
            *(DRIVER, "--host=127.0.0.1", f"--port={PORT}"),
            env=self.environment(),
            stderr=subprocess.DEVNULL,
        )
        words = [*self.words, link] if link else self.words
        options = {"binary": str(self.app), "args": [str(word) for word in words]}
        wanted = {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": options}}}
        driver = f"http://127.0.0.1:{PORT}/session"
        answer = wait("the window", lambda: network.fetch(driver, "POST", wanted))
        self.session = f"{driver}/{answer['value']['sessionId']}"

    def environment(self):
        names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR")
        return (
            os.environ
            | self.desktop.variables
            | {name: str(self.home) for name in names}
            # There is no graphics card behind this screen.
            | {"WEBKIT_DISABLE_COMPOSITING_MODE": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
            | {"TAURI_WEBVIEW_AUTOMATION": "true"}
        )

    def open_link(self, link):
        """Opens a link as the desktop does, by the line that the package has registered."""
        entry = self.root.folder / "usr/share/applications/org.apoidea.desktop.desktop"
        lines = entry.read_text().splitlines()
        assert "MimeType=x-scheme-handler/apoidea;" in lines
        assert "Exec=apoidea-desktop %u" in lines
        words = self.network.command(self.app, *self.words, link)
        subprocess.run(words, env=self.environment(), check=True, timeout=60)

    def _element(self, xpath):
        found = self.network.fetch(
            f"{self.session}/element", "POST", {"using": "xpath", "value": xpath}
        )
        return found and next(iter(found["value"].values()))

    def see(self, xpath, patience=60):
        """Waits until something is in the window."""
        return wait(xpath, lambda: self._element(xpath), patience)

    def read(self, text, patience=60):
        return self.see(f"//*[contains(text(), {json.dumps(text)})]", patience)

    def click(self, xpath):
        element = self.see(xpath)
        clicked = self.network.fetch(f"{self.session}/element/{element}/click", "POST", {})
        assert clicked is not None, xpath

    def picture(self, path):
        """Takes a picture of the screen. The driver's own waits for the page to be drawn again."""
        path.parent.mkdir(parents=True, exist_ok=True)
        shell.run("import", "-window", "root", path, env=self.environment())

    def ask(self, path):
        """An answer of the peer in the app."""
        try:
            address = (self.data / "api-address").read_text().strip()
            token = (self.data / "api-token").read_text().strip()
        except FileNotFoundError:
            return None
        return self.network.fetch(address + path, token=token)

    def close(self):
        self.network.fetch(self.session, "DELETE")
        self.desktop.close()
