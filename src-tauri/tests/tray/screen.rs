//! A desktop of its own: X server, session bus, window manager and tray, seen by nobody.

use std::{
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(100);
/// How long a menu may take to do what was chosen before it is taken for not having been open.
pub const SOON: Duration = Duration::from_secs(8);
/// The tray is in the left upper corner, and the app's icon is the only one in it.
const ICON: (&str, &str) = ("14", "14");

/// A desktop that is gone when it is dropped.
pub struct Screen {
    display: String,
    bus: String,
    parts: Vec<Child>,
}

impl Screen {
    /// Starts one; `None` where there is no X server to start.
    pub fn start() -> Option<Self> {
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let display = format!(":{}", first_line(&mut server));
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address=1"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let address = first_line(&mut bus);
        let mut screen = Screen { display, bus: address, parts: vec![bus, server] };
        screen.run("openbox", &[]);
        screen.run(
            "trayer",
            &[
                "--edge",
                "top",
                "--align",
                "left",
                "--widthtype",
                "request",
                "--height",
                "28",
                "--SetDockType",
                "true",
            ],
        );
        Some(screen)
    }

    /// A program on this desktop.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.display).env("DBUS_SESSION_BUS_ADDRESS", &self.bus);
        command.env_remove("WAYLAND_DISPLAY").env("NO_AT_BRIDGE", "1").env("GDK_BACKEND", "x11");
        command
    }

    fn run(&mut self, program: &str, arguments: &[&str]) {
        let part = self.command(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.parts.insert(0, part.unwrap());
    }

    fn xdotool(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command("xdotool").args(arguments).output().unwrap();
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Keeps a picture of the whole screen.
    pub fn picture(&self, name: &str) {
        let folder = artefacts();
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("{name}.png"));
        assert!(self.command("import").args(["-window", "root"]).arg(file).status().unwrap().success());
    }

    /// Opens the tray's menu with the mouse.
    pub fn open_menu(&self) {
        self.xdotool(&["mousemove", ICON.0, ICON.1]);
        self.xdotool(&["click", "1"]);
        // A menu is a window without a name; that it is there shows in what the keys do.
        thread::sleep(PERIOD * 8);
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &[&str]) {
        for key in keys {
            self.xdotool(&["key", "--clearmodifiers", key]);
            thread::sleep(PERIOD);
        }
    }

    /// Waits for a window with this title.
    pub fn wait_for_window(&self, title: &str) -> String {
        wait(&format!("a window {title:?}"), || self.window(title))
    }

    /// Is a window with this title there soon?
    pub fn sees_window(&self, title: &str) -> bool {
        look(SOON, || self.window(title)).is_some()
    }

    /// Presses a key until a window is gone: one that has only just appeared may not listen yet.
    pub fn press_until_gone(&self, key: &str, title: &str) {
        wait("the window to go", || {
            self.press(&[key]);
            thread::sleep(PERIOD * 5);
            self.window(title).is_none().then_some(())
        });
    }

    fn window(&self, title: &str) -> Option<String> {
        let found = self.xdotool(&["search", "--onlyvisible", "--name", &format!("^{title}$")])?;
        found.lines().next().map(str::to_owned)
    }

    /// Closes a window as its owner does, and waits until it is gone.
    pub fn close_window(&self, title: &str) {
        let window = self.wait_for_window(title);
        self.xdotool(&["windowactivate", "--sync", &window]);
        wait("the window to close", || {
            self.xdotool(&["key", "--clearmodifiers", "alt+F4"]);
            thread::sleep(PERIOD * 5);
            self.window(title).is_none().then_some(())
        });
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        for part in &mut self.parts {
            let _ = part.kill();
            let _ = part.wait();
        }
    }
}

/// Looks until there is something to see.
pub fn wait<T>(what: &str, saw: impl FnMut() -> Option<T>) -> T {
    look(PATIENCE, saw).unwrap_or_else(|| panic!("not in {PATIENCE:?}: {what}"))
}

/// Looks for a while.
pub fn look<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(seen) = look() {
            return Some(seen);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(PERIOD);
    }
}

fn artefacts() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_apoidea-desktop")).ancestors().nth(2).unwrap().join("artefacts/desktop")
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}
