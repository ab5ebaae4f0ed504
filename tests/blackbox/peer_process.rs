//! A peer as volunteers run it: the `apoidea` program in a process of its own, with a data folder
//! and a local API.

use crate::patience;
use apoidea_peer::{API_ADDRESS_FILE, API_TOKEN_FILE, DomainRow, SeedAnswer, Status};
use reqwest::{Method, RequestBuilder};
use serde_json::json;
use std::{
    env,
    fmt::Display,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::OnceLock,
    time::Duration,
};

/// How long a peer may take to start, on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// How much of a peer's words is shown when a test fails.
const TAIL_BYTES: usize = 4000;

/// The program under test. It lies beside the test binary's folder; if it is not there, it is
/// built.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let own = env::current_exe().unwrap();
        let folder = own.parent().and_then(Path::parent).unwrap();
        let program = folder.join(format!("apoidea{}", env::consts::EXE_SUFFIX));
        if !program.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo
                .args(["build", "--package", "apoidea", "--target-dir"])
                .arg(folder.parent().unwrap());
            if folder.ends_with("release") {
                cargo.arg("--release");
            }
            assert!(
                cargo.status().unwrap().success(),
                "the program cannot be built"
            );
        }
        program
    })
}

/// How a peer is to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    data: PathBuf,
    options: Vec<String>,
}

impl Launch {
    /// With its memory in this folder, at free ports, alone, whatever the machine's own settings
    /// are.
    pub fn new(data: &Path) -> Self {
        Launch {
            data: data.to_owned(),
            options: Vec::new(),
        }
        .set("api.port", 0)
        .set("archive.keep_free_mib", 0)
        .set("network.port", 0)
        .set("network.listen", "[\"127.0.0.1\"]")
        .set("network.local_network", "off")
        .set("network.rendezvous", "off")
        .set("crawl.seeds", "[]")
    }

    /// As a volunteer starts it, who changes no setting, but at a free port of the dashboard. For
    /// tests in a network of their own only: it looks for seeds, and for peers everywhere.
    pub fn as_installed(data: &Path) -> Self {
        Launch {
            data: data.to_owned(),
            options: Vec::new(),
        }
        .set("api.port", 0)
    }

    /// The same with its memory in another folder.
    pub fn at(&self, data: &Path) -> Self {
        Launch {
            data: data.to_owned(),
            options: self.options.clone(),
        }
    }

    /// With this setting.
    pub fn set(mut self, name: &str, value: impl Display) -> Self {
        self.options.push(format!("--set={name}={value}"));
        self
    }

    /// With one more option of `apoidea run`.
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// `apoidea` with the data folder and settings of this peer, to be completed by a command.
    pub fn command(&self) -> Command {
        let mut command = Command::new(program());
        self.complete(&mut command);
        command
    }

    /// Adds the data folder and the settings to a command line that runs the program.
    pub fn complete(&self, command: &mut Command) {
        for name in [
            "APOIDEA_DATA",
            "APOIDEA_CONFIG",
            "APOIDEA_SET",
            "APOIDEA_LOG",
        ] {
            command.env_remove(name);
        }
        command
            .arg("--data")
            .arg(&self.data)
            .arg("--config")
            .arg(self.data.with_extension("toml"));
    }

    /// Runs a command beside the peer, such as `status`, to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command().args(arguments).output().unwrap()
    }

    /// Starts the peer and waits until it answers.
    pub async fn start(&self) -> PeerProcess {
        let mut command = self.command();
        self.start_as(&mut command).await
    }

    /// Starts the peer with a command line that already names the program and its folder.
    pub async fn start_as(&self, command: &mut Command) -> PeerProcess {
        let mut peer = self.spawn_as(command);
        let answered = patience::look(START_PATIENCE, async || {
            let is_over = peer.child.try_wait().unwrap().is_some();
            peer.reach().await.or(is_over.then_some(false))
        });
        match answered.await {
            Some(true) => peer,
            _ => panic!("the peer does not start:\n{}", peer.words()),
        }
    }

    /// Starts a peer that must not start; gives what it says about it.
    pub async fn refused(&self) -> String {
        self.refused_as(&mut self.command()).await
    }

    /// As [`Self::refused`], with a command line that already names the program and its folder.
    pub async fn refused_as(&self, command: &mut Command) -> String {
        let mut peer = self.spawn_as(command);
        let ended = peer.ended(START_PATIENCE).await;
        let words = peer.words();
        assert!(
            ended.is_some_and(|status| status.code() == Some(1)),
            "{ended:?}\n{words}"
        );
        assert!(!words.contains("panicked"), "{words}");
        words
    }

    /// Starts the peer and does not wait.
    pub fn spawn(&self) -> PeerProcess {
        self.spawn_as(&mut self.command())
    }

    /// As [`Self::spawn`], with a command line that already names the program and its folder.
    pub fn spawn_as(&self, command: &mut Command) -> PeerProcess {
        let words = self.data.with_extension("log");
        let log = File::options()
            .create(true)
            .append(true)
            .open(&words)
            .unwrap();
        let child = command
            .arg("run")
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .pool_idle_timeout(apoidea_peer::API_IDLE)
            .no_proxy()
            .timeout(Duration::from_secs(30))
            .build()
            .unwrap();
        PeerProcess {
            child,
            data: self.data.clone(),
            words,
            http,
            address: String::new(),
            token: String::new(),
        }
    }
}

/// A running peer; dropping it kills it.
pub struct PeerProcess {
    child: Child,
    data: PathBuf,
    words: PathBuf,
    http: reqwest::Client,
    address: String,
    token: String,
}

/// What can be sent to a peer as a signal.
#[derive(Debug, Clone, Copy)]
pub enum Signal {
    Interrupt,
    Terminate,
}

impl PeerProcess {
    /// Finds the API. `None` while it is not there.
    async fn reach(&mut self) -> Option<bool> {
        let read = |name| {
            fs::read_to_string(self.data.join(name))
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let (address, token) = (read(API_ADDRESS_FILE)?, read(API_TOKEN_FILE)?);
        (self.address, self.token) = (address, token);
        let answer = self.request(Method::GET, "/api/status").send().await.ok()?;
        answer.status().is_success().then_some(true)
    }

    /// The address of its API, such as `http://127.0.0.1:7717`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The token of its API.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// A request to its API, with the token.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.address))
            .bearer_auth(&self.token)
    }

    /// How it says it is doing.
    pub async fn status(&self) -> Status {
        let answer = self.request(Method::GET, "/api/status").send().await;
        match answer {
            Ok(answer) => answer.json().await.unwrap(),
            Err(error) => panic!("the peer does not answer: {error}\n{}", self.words()),
        }
    }

    /// Its domains; of a test there are never more than fit into one answer.
    pub async fn domains(&self) -> Vec<DomainRow> {
        let answer = self
            .request(Method::GET, "/api/domains?limit=1000")
            .send()
            .await
            .unwrap();
        answer.json().await.unwrap()
    }

    /// Gives it URLs to begin from.
    pub async fn seed<S: AsRef<str>>(&self, urls: &[S]) -> SeedAnswer {
        let urls: Vec<&str> = urls.iter().map(AsRef::as_ref).collect();
        let request = self
            .request(Method::POST, "/api/seeds")
            .json(&json!({ "urls": urls }));
        request.send().await.unwrap().json().await.unwrap()
    }

    /// Waits until its status is as wanted.
    pub async fn wait(
        &self,
        what: &str,
        patience: Duration,
        is_so: impl Fn(&Status) -> bool,
    ) -> Status {
        self.observe(what, patience, async || {
            Some(self.status().await).filter(&is_so)
        })
        .await
    }

    /// Waits until something can be observed while it runs.
    pub async fn observe<T>(
        &self,
        what: &str,
        patience: Duration,
        look: impl AsyncFnMut() -> Option<T>,
    ) -> T {
        match patience::look(patience, look).await {
            Some(seen) => seen,
            None => panic!(
                "not in {patience:?}: {what}\n{:#?}\n{}",
                self.status().await,
                self.words()
            ),
        }
    }

    /// Kills it without warning, as a power cut would.
    pub fn kill(self) {
        drop(self);
    }

    /// Sends it a signal and waits for its end; `None` if it does not end in time.
    pub async fn end(&mut self, signal: Signal, patience: Duration) -> Option<ExitStatus> {
        let name = match signal {
            Signal::Interrupt => "-INT",
            Signal::Terminate => "-TERM",
        };
        self.signal(name);
        self.ended(patience).await
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([name, &self.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Stops its clock, as a machine that is put to sleep does.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// Waits for its end; `None` if it does not end in time.
    pub async fn ended(&mut self, patience: Duration) -> Option<ExitStatus> {
        patience::look(patience, async || self.child.try_wait().unwrap()).await
    }

    /// Stops it in good order.
    pub async fn stop(mut self) {
        let status = self.end(Signal::Terminate, Duration::from_secs(10)).await;
        assert!(
            status.is_some_and(|status| status.success()),
            "{status:?}\n{}",
            self.words()
        );
    }

    /// The last that it, or an earlier run in its folder, said.
    pub fn words(&self) -> String {
        let all = fs::read(&self.words).unwrap_or_default();
        let tail = &all[all.len().saturating_sub(TAIL_BYTES)..];
        format!("--- its last words ---\n{}", String::from_utf8_lossy(tail))
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // What a killed peer leaves there is not the next one's address.
        if fs::read_to_string(self.data.join(API_ADDRESS_FILE))
            .is_ok_and(|text| text.trim() == self.address)
        {
            let _ = fs::remove_file(self.data.join(API_ADDRESS_FILE));
        }
    }
}
