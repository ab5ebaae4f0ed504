//! A desktop of its own: X server, session bus, window manager and tray, seen by nobody.

use std::{
    error::Error,
    ffi::OsStr,
    io::{BufRead, BufReader},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};
use x11rb::{
    connection::Connection,
    protocol::xproto::{AtomEnum, ClientMessageEvent, ConnectionExt, EventMask, MapState},
};

/// One desktop at a time: what people look at needs a processor of its own.
static TURN: Mutex<()> = Mutex::new(());
/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(100);
/// How long a menu may take to do what was chosen before it is taken for not having been open.
pub const SOON: Duration = Duration::from_secs(8);
/// Letters with their soft edges have more.
const COLOURS_WITHOUT_PAGE: u32 = 20;
/// What the app calls the windows that have no title: its menus, and the icon.
const PROGRAM: &str = "apoidea-desktop";
/// The icon and its tooltip are less high.
const SMALLEST_MENU: i32 = 60;
/// The tray is in the left upper corner, and the app's icon is the only one in it.
const ICON: (&str, &str) = ("14", "14");

/// A menu on the screen, in pixels.
#[derive(Debug, Clone, Copy)]
pub struct Menu {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

/// A desktop that is gone when it is dropped.
pub struct Screen {
    display: String,
    server_id: u32,
    bus: String,
    parts: Vec<Child>,
    _turn: MutexGuard<'static, ()>,
}

impl Screen {
    /// Starts one; `None` where there is no X server to start.
    pub fn start() -> Option<Self> {
        Screen::of_size(1280, 900)
    }

    /// Starts one of this size.
    pub fn of_size(width: u32, height: u32) -> Option<Self> {
        let size = format!("{width}x{height}x24");
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-screen", "0", &size, "-nolisten", "tcp"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let (display, server_id) = (format!(":{}", first_line(&mut server)), server.id());
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let address = first_line(&mut bus);
        let mut screen = Screen {
            display,
            server_id,
            bus: address,
            parts: vec![bus, server],
            _turn: turn,
        };
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

    /// What the X server is called.
    pub fn display(&self) -> &str {
        &self.display
    }

    /// Where the session bus is.
    pub fn bus(&self) -> &str {
        &self.bus
    }

    /// The X server's process.
    pub fn server_id(&self) -> u32 {
        self.server_id
    }

    /// A program on this desktop.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .env("DISPLAY", &self.display)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus);
        command
            .env("GTK_THEME", "Adwaita")
            .env_remove("WAYLAND_DISPLAY")
            .env("NO_AT_BRIDGE", "1")
            .env("GDK_BACKEND", "x11");
        command
    }

    fn run(&mut self, program: &str, arguments: &[&str]) {
        let part = self
            .command(program)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        self.parts.insert(0, part.unwrap());
    }

    fn xdotool(&self, arguments: &[&str]) -> Option<String> {
        let output = self.command("xdotool").args(arguments).output().unwrap();
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Keeps a picture of the whole screen.
    pub fn picture(&self, name: &str) -> PathBuf {
        let file = artefact(&format!("{name}.png"));
        assert!(
            self.command("import")
                .args(["-window", "root"])
                .arg(&file)
                .status()
                .unwrap()
                .success()
        );
        file
    }

    /// Keeps a picture of the whole screen once a window's page is drawn: an empty window has one
    /// colour.
    pub fn picture_of_page(&self, name: &str, window: &str) {
        wait("a page to be drawn", || {
            (self.colours_of(window) > COLOURS_WITHOUT_PAGE).then_some(())
        });
        self.picture(name);
    }

    fn colours_of(&self, window: &str) -> u32 {
        let file = artefact("window.png");
        let taken = self
            .command("import")
            .args(["-window", window])
            .arg(&file)
            .status()
            .unwrap();
        let counted = Command::new("identify")
            .args(["-format", "%k"])
            .arg(&file)
            .output()
            .unwrap();
        let colours = String::from_utf8_lossy(&counted.stdout)
            .trim()
            .parse()
            .unwrap_or_default();
        if taken.success() { colours } else { 0 }
    }

    /// Opens the tray's menu with the mouse.
    pub fn open_menu(&self) -> Option<Menu> {
        self.xdotool(&["mousemove", ICON.0, ICON.1]);
        self.click();
        look(SOON, || self.menus().pop())
    }

    /// Points at the icon in the tray; do words appear beside the pointer?
    pub fn has_tooltip(&self) -> bool {
        self.point(600, 600);
        self.xdotool(&["mousemove", ICON.0, ICON.1]);
        look(SOON, || self.shows_tooltip().unwrap().then_some(())).is_some()
    }

    fn shows_tooltip(&self) -> Result<bool, Box<dyn Error>> {
        let (connection, number) = x11rb::connect(Some(&self.display))?;
        let atom = |name: &str| {
            Ok::<_, Box<dyn Error>>(
                connection
                    .intern_atom(false, name.as_bytes())?
                    .reply()?
                    .atom,
            )
        };
        let (kind, tooltip) = (
            atom("_NET_WM_WINDOW_TYPE")?,
            atom("_NET_WM_WINDOW_TYPE_TOOLTIP")?,
        );
        let all = connection
            .query_tree(connection.setup().roots[number].root)?
            .reply()?
            .children;
        let shown = all.into_iter().filter(|window| {
            let is_tooltip = connection
                .get_property(false, *window, kind, AtomEnum::ATOM, 0, 8)
                .ok();
            let is_tooltip = is_tooltip
                .and_then(|asked| Some(asked.reply().ok()?.value32()?.any(|one| one == tooltip)));
            let looks = connection
                .get_window_attributes(*window)
                .ok()
                .and_then(|asked| asked.reply().ok());
            is_tooltip == Some(true)
                && looks.is_some_and(|looks| looks.map_state == MapState::VIEWABLE)
        });
        Ok(shown.count() > 0)
    }

    /// The menus that are open.
    pub fn menus(&self) -> Vec<Menu> {
        let found = self.xdotool(&["search", "--onlyvisible", "--name", &format!("^{PROGRAM}$")]);
        let menus = found
            .iter()
            .flat_map(|found| found.lines())
            .filter_map(|window| self.menu(window));
        menus.filter(|menu| menu.height > SMALLEST_MENU).collect()
    }

    fn menu(&self, window: &str) -> Option<Menu> {
        let said = self.xdotool(&["getwindowgeometry", "--shell", window])?;
        let value = |name: &str| {
            said.lines()
                .find_map(|line| line.strip_prefix(name)?.parse().ok())
        };
        Some(Menu {
            x: value("X=")?,
            y: value("Y=")?,
            width: value("WIDTH=")?,
            height: value("HEIGHT=")?,
        })
    }

    /// Moves the mouse.
    pub fn point(&self, x: i32, y: i32) {
        self.xdotool(&["mousemove", "--sync", &(x - 1).to_string(), &y.to_string()]);
        self.xdotool(&["mousemove", "--sync", &x.to_string(), &y.to_string()]);
    }

    /// Presses the mouse where it is.
    pub fn click(&self) {
        self.xdotool(&["click", "1"]);
    }

    /// Presses keys, one after the other.
    pub fn press(&self, keys: &[&str]) {
        for key in keys {
            self.xdotool(&["key", "--clearmodifiers", key]);
        }
    }

    /// Waits for a window with this title.
    pub fn wait_for_window(&self, title: &str) -> String {
        wait(&format!("a window {title:?}"), || self.window(title))
    }

    /// Gives a window the focus.
    pub fn activate(&self, window: u32) {
        self.xdotool(&["windowactivate", &window.to_string()]);
    }

    /// Waits until no window has this title.
    pub fn wait_for_no_window(&self, title: &str) {
        wait(&format!("the window {title:?} to go"), || {
            self.window(title).is_none().then_some(())
        });
    }

    /// A window with this title that can be seen.
    pub fn window(&self, title: &str) -> Option<String> {
        let found = self.xdotool(&["search", "--onlyvisible", "--name", &format!("^{title}$")])?;
        found.lines().next().map(str::to_owned)
    }

    /// Closes a window as its owner does, and waits until it is gone.
    pub fn close_window(&self, title: &str) {
        let window = self.wait_for_window(title);
        self.ask_to_close(window.parse().unwrap()).unwrap();
        self.wait_for_no_window(title);
    }

    /// Asks the window manager to close a window, as a click on its cross does.
    fn ask_to_close(&self, window: u32) -> Result<(), Box<dyn Error>> {
        let (connection, number) = x11rb::connect(Some(&self.display))?;
        let root = connection.setup().roots[number].root;
        let close = connection
            .intern_atom(false, b"_NET_CLOSE_WINDOW")?
            .reply()?
            .atom;
        let wish = ClientMessageEvent::new(32, window, close, [0; 5]);
        let listeners = EventMask::SUBSTRUCTURE_NOTIFY | EventMask::SUBSTRUCTURE_REDIRECT;
        connection
            .send_event(false, root, listeners, wish)?
            .check()?;
        Ok(())
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

/// Where a file is kept for people to look at.
pub fn artefact(name: &str) -> PathBuf {
    let folder = crate::app::artefacts();
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    line.trim().to_owned()
}
