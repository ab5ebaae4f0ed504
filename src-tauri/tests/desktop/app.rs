//! The app as a process of its own on a screen, with a home of its own.

use crate::{
    api::Api,
    screen::{Screen, wait},
};
use std::{
    env,
    ffi::OsStr,
    fs::{self, File},
    ops::Deref,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};
use tempfile::TempDir;

/// Names the program to test instead of the one just built: that of an installed package.
const INSTALLED: &str = "APOIDEA_DESKTOP";
/// The program just built.
const BUILT: &str = env!("CARGO_BIN_EXE_apoidea-desktop");

/// A running app, and its peer's API; dropping it kills it.
pub struct App {
    child: Child,
    home: TempDir,
    api: Api,
}

impl Deref for App {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl App {
    /// Starts the app with a new home, and waits until its peer answers.
    pub fn start(screen: &Screen) -> Self {
        let mut app = App::begin(screen, home(), &[]);
        app.wait_for_peer();
        app
    }

    /// Starts the app into the tray, as one whose volunteer has agreed before.
    pub fn start_agreed(screen: &Screen) -> Self {
        let home = home();
        agree(home.path());
        App::start_in(screen, home)
    }

    /// Starts the app into the tray, in this home.
    pub fn start_in(screen: &Screen, home: TempDir) -> Self {
        let mut app = App::begin(screen, home, &["--hidden"]);
        app.wait_for_peer();
        app
    }

    /// Starts another copy of the app into the tray, in this home.
    pub fn start_as(screen: &Screen, program: &Path, home: TempDir) -> Self {
        let child = at_home(screen, program, home.path())
            .args(words(home.path()))
            .arg("--hidden")
            .spawn();
        let mut app = App {
            child: child.unwrap(),
            api: Api::of(home.path()),
            home,
        };
        app.wait_for_peer();
        app
    }

    /// Starts the app in this home, with more words on its command line.
    pub fn begin(screen: &Screen, home: TempDir, words: &[&str]) -> Self {
        let child = command(screen, home.path()).args(words).spawn().unwrap();
        App {
            child,
            api: Api::of(home.path()),
            home,
        }
    }

    fn wait_for_peer(&mut self) {
        wait("the peer to answer", || {
            assert!(
                self.child.try_wait().unwrap().is_none(),
                "the app ended:\n{}",
                self.words()
            );
            self.api.send("GET", "/api/status", None)
        });
    }

    /// The app's home.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// What the app printed.
    pub fn words(&self) -> String {
        fs::read_to_string(self.home().join("words")).unwrap_or_default()
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the app's end.
    pub fn ended(&mut self) -> ExitStatus {
        wait("the app to end", || self.child.try_wait().unwrap())
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that is tested.
pub fn program() -> PathBuf {
    env::var_os(INSTALLED).map_or_else(|| PathBuf::from(BUILT), PathBuf::from)
}

/// Where files are kept for people to look at, beside what was built.
pub fn artefacts() -> PathBuf {
    Path::new(BUILT)
        .ancestors()
        .nth(2)
        .unwrap()
        .join("artefacts/desktop")
}

/// A home of its own.
pub fn home() -> TempDir {
    tempfile::Builder::new()
        .prefix("apoidea-desktop-")
        .tempdir()
        .unwrap()
}

/// Makes a home that of a volunteer who has agreed.
pub fn agree(home: &Path) {
    fs::create_dir_all(home.join("data")).unwrap();
    fs::write(home.join("data/welcomed"), "").unwrap();
}

/// The command that starts the app in this home.
pub fn command(screen: &Screen, home: &Path) -> Command {
    let mut command = at_home(screen, program(), home);
    command.args(words(home));
    command
}

/// Any program in this home; what it prints is kept there.
pub fn at_home(screen: &Screen, program: impl AsRef<OsStr>, home: &Path) -> Command {
    let mut command = screen.command(program);
    for name in [
        "HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
    ] {
        command.env(name, home);
    }
    // There is no graphics card behind this screen.
    command
        .env("WEBKIT_DISABLE_COMPOSITING_MODE", "1")
        .env("LIBGL_ALWAYS_SOFTWARE", "1");
    let log = File::options()
        .create(true)
        .append(true)
        .open(home.join("words"))
        .unwrap();
    command
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log);
    command
}

/// The words of the app's command line: this home, and a peer that keeps to itself.
pub fn words(home: &Path) -> Vec<String> {
    let place = |name: &str| home.join(name).display().to_string();
    let mut words = vec![
        "--data".to_owned(),
        place("data"),
        "--config".to_owned(),
        place("apoidea.toml"),
    ];
    for setting in [
        "api.port=0",
        "archive.keep_free_mib=0",
        "network.port=0",
        "network.listen=[\"127.0.0.1\"]",
        "network.local_network=off",
        "network.rendezvous=off",
        "crawl.seeds=[]",
        // Whatever else the machine does, and though nobody is away from this screen.
        "preferences.run=always",
        "preferences.other_cpu_percent=0",
    ] {
        words.extend(["--set".to_owned(), setting.to_owned()]);
    }
    words
}
