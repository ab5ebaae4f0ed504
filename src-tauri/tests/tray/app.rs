//! The app as a process of its own on a screen, and its peer's API.

use crate::screen::{SOON, Screen, look, wait};
use serde_json::Value;
use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};
use tempfile::TempDir;

/// A running app; dropping it kills it.
pub struct App {
    child: Child,
    folder: TempDir,
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

impl App {
    /// Starts the app with a new home, and waits until its peer answers.
    pub fn start(screen: &Screen) -> Self {
        let folder = tempfile::Builder::new().prefix("apoidea-tray-").tempdir().unwrap();
        let child = Self::command(screen, folder.path()).spawn().unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder().no_proxy().timeout(SOON).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut app = App { child, folder, http, runtime };
        wait("the peer to answer", || {
            assert!(app.child.try_wait().unwrap().is_none(), "the app ended:\n{}", app.words());
            app.try_ask("GET", "/api/status")
        });
        app
    }

    /// The command that starts the app in this home.
    pub fn command(screen: &Screen, home: &Path) -> Command {
        let mut command = screen.command(env!("CARGO_BIN_EXE_apoidea-desktop"));
        let log = File::options().create(true).append(true).open(home.join("words")).unwrap();
        command.arg("--data").arg(home.join("data")).arg("--config").arg(home.join("apoidea.toml"));
        for setting in [
            "api.port=0",
            "archive.keep_free_mib=0",
            "network.port=0",
            "network.listen=[\"127.0.0.1\"]",
            "network.local_network=off",
            // Whatever else the machine does, and though nobody is away from this screen.
            "preferences.run=always",
            "preferences.other_cpu_percent=0",
        ] {
            command.arg("--set").arg(setting);
        }
        for name in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            command.env(name, home);
        }
        // There is no graphics card behind this screen.
        command.env("WEBKIT_DISABLE_COMPOSITING_MODE", "1").env("LIBGL_ALWAYS_SOFTWARE", "1");
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        command
    }

    /// The app's home.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the app printed.
    pub fn words(&self) -> String {
        fs::read_to_string(self.folder().join("words")).unwrap_or_default()
    }

    /// Asks the peer's API.
    pub fn ask(&self, method: &str, path: &str) -> Value {
        self.try_ask(method, path).unwrap_or_else(|| panic!("{path} was refused:\n{}", self.words()))
    }

    fn try_ask(&self, method: &str, path: &str) -> Option<Value> {
        let read = |name: &str| fs::read_to_string(self.folder().join("data").join(name)).ok();
        let (address, token) = (read("api-address")?, read("api-token")?);
        let url = format!("{}{path}", address.trim());
        let request = self.http.request(method.parse().unwrap(), url).bearer_auth(token.trim());
        let body = self.runtime.block_on(async {
            let answer = request.send().await.ok()?.error_for_status().ok()?;
            answer.bytes().await.ok()
        });
        serde_json::from_slice(&body?).ok()
    }

    /// Waits until an answer of the API is as wanted.
    pub fn wait_for(&self, what: &str, path: &str, is_so: impl Fn(&Value) -> bool) {
        wait(what, || self.try_ask("GET", path).filter(&is_so));
    }

    /// Waits until the status is as wanted.
    pub fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        self.wait_for(what, "/api/status", is_so);
    }

    /// Is an answer of the API as wanted soon?
    pub fn soon(&self, path: &str, is_so: impl Fn(&Value) -> bool) -> bool {
        look(SOON, || self.try_ask("GET", path).filter(&is_so)).is_some()
    }

    /// Does the app end soon?
    pub fn has_ended(&mut self) -> bool {
        look(SOON, || self.child.try_wait().unwrap()).is_some()
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
