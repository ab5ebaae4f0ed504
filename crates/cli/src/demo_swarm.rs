//! `apoidea demo --peers N`: a swarm of real processes on a made-up web, to be watched, fed and
//! hurt.
//!
//! Every peer is this very program in a process of its own with a folder of its own; all are gone
//! afterwards. On a terminal single keys kill and add peers; elsewhere a line tells how it goes now
//! and then.

use crate::{arguments::DemoOptions, run::StopSignal};
use anyhow::Context;
use apoidea_peer::{
    API_ADDRESS_FILE, API_TOKEN_FILE, NetworkStatus, OpenLink, State, Status, words,
};
use apoidea_toyweb::ToyWeb;
use crossterm::{
    cursor,
    event::{Event, KeyCode, KeyModifiers},
    execute, terminal,
};
use rand::seq::IndexedRandom;
use reqwest::Method;
use serde::de::DeserializeOwned;
use std::{
    collections::VecDeque,
    env, fs,
    io::{IsTerminal, Write, stdout},
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    time::Duration,
};
use tokio::{sync::mpsc, time};

/// How long a peer may take to answer for the first time.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How often the picture is drawn.
const EVERY: Duration = Duration::from_secs(1);
/// Without a terminal, how often a line is printed.
const LINES_EVERY: u64 = 5;
/// Seconds that the chart shows.
const CHART: usize = 60;
/// Most peers at a time: each takes about 30 MiB.
const MAX_PEERS: usize = 32;

/// Shows a swarm until it is told to stop, or is done.
pub async fn show(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let mut stop = StopSignal::listen().context("cannot listen for signals")?;
    let folder = tempfile::Builder::new()
        .prefix("apoidea-demo-")
        .tempdir()
        .context("no folder for the demo")?;
    let web = ToyWeb::builder(options.seed)
        .demo()
        .hosts(options.hosts)
        .pages(options.pages);
    let web = web.start().await.context("cannot start the made-up web")?;
    fs::write(folder.path().join("ca.pem"), web.ca_pem())?;
    let mut swarm = Swarm::new(folder.path(), &web, options)?;
    println!(
        "Starting {} peers on a web of {} hosts and {} pages …",
        options.peers, options.hosts, options.pages
    );
    for _ in 0..options.peers {
        swarm.add().await?;
    }
    let seeds: Vec<String> = web.seeds().iter().map(ToString::to_string).collect();
    swarm.seed(&seeds).await?;
    let link = swarm.dashboard().await?;
    let shown = tokio::select! {
        shown = swarm.watch(&link, options.exit_when_done) => shown,
        _ = stop.received() => Ok(()),
    };
    swarm.stop().await;
    web.stop()
        .await
        .context("the made-up web did not stop cleanly")?;
    shown.map(|()| ExitCode::SUCCESS)
}

struct Swarm {
    program: PathBuf,
    folder: PathBuf,
    settings: Vec<String>,
    http: reqwest::Client,
    peers: Vec<Member>,
    ever: usize,
    /// Pages of peers that are gone.
    pages_before: u64,
    rates: VecDeque<u64>,
    last: String,
}

/// One peer of the demo; dropping it kills it.
struct Member {
    number: usize,
    child: Child,
    address: String,
    token: String,
    status: Option<Status>,
}

impl Drop for Member {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Swarm {
    fn new(folder: &Path, web: &ToyWeb, options: &DemoOptions) -> anyhow::Result<Self> {
        let settings = [
            "api.port=0".to_owned(),
            "archive.keep_free_mib=0".to_owned(),
            "network.port=0".to_owned(),
            "network.listen=[\"127.0.0.1\"]".to_owned(),
            "network.local_network=off".to_owned(),
            "network.rendezvous=off".to_owned(),
            "crawl.seeds=[]".to_owned(),
            "network.is_private=true".to_owned(),
            "network.stabilize_ms=1000".to_owned(),
            format!("crawl.ports=[{},{}]", web.http_port(), web.https_port()),
            "crawl.private_networks=[\"127.0.0.0/8\"]".to_owned(),
            format!("crawl.private_delay_ms={}", options.delay),
            "crawl.private_address_delay_ms=0".to_owned(),
            "crawl.private_backoff_ms=1000".to_owned(),
            format!("crawl.dns=[\"{}\"]", web.dns_address()),
            format!("crawl.trusted_certificates=[{:?}]", folder.join("ca.pem")),
        ];
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(Swarm {
            program: env::current_exe().context("cannot find this program")?,
            folder: folder.to_owned(),
            settings: settings.into(),
            http: reqwest::Client::builder()
                .pool_idle_timeout(apoidea_peer::API_IDLE)
                .no_proxy()
                .timeout(Duration::from_secs(5))
                .build()?,
            peers: Vec::new(),
            ever: 0,
            pages_before: 0,
            rates: VecDeque::new(),
            last: String::new(),
        })
    }

    /// Starts one more peer, which enters through one that runs.
    async fn add(&mut self) -> anyhow::Result<()> {
        let mut entries = Vec::new();
        for peer in self.peers.iter().take(3) {
            if let Ok(view) = self.get::<NetworkStatus>(peer, "/api/peers").await {
                entries.extend(view.listens.first().map(|address| format!("\"{address}\"")));
            }
        }
        let number = self.ever;
        self.ever += 1;
        let data = self.folder.join(format!("peer-{number}"));
        let log = fs::File::create(data.with_extension("log"))?;
        let mut command = Command::new(&self.program);
        command
            .arg("--data")
            .arg(&data)
            .arg("--config")
            .arg(data.with_extension("toml"))
            .arg("run");
        let entries = format!("network.entry_points=[{}]", entries.join(","));
        self.settings
            .iter()
            .chain([&entries])
            .for_each(|setting| _ = command.arg("--set").arg(setting));
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut member = Member {
            number,
            child,
            address: String::new(),
            token: String::new(),
            status: None,
        };
        let reached = time::timeout(START_PATIENCE, self.reach(&mut member, &data)).await;
        reached.with_context(|| format!("peer {number} does not start"))?;
        self.peers.push(member);
        Ok(())
    }

    async fn reach(&self, member: &mut Member, data: &Path) {
        let read = |name| fs::read_to_string(data.join(name)).map(|text| text.trim().to_owned());
        loop {
            if let (Ok(address), Ok(token)) = (read(API_ADDRESS_FILE), read(API_TOKEN_FILE)) {
                (member.address, member.token) = (address, token);
                if self.get::<Status>(member, "/api/status").await.is_ok() {
                    return;
                }
            }
            time::sleep(Duration::from_millis(50)).await;
        }
    }

    async fn get<T: DeserializeOwned>(&self, peer: &Member, path: &str) -> anyhow::Result<T> {
        let request = self
            .http
            .get(format!("{}{path}", peer.address))
            .bearer_auth(&peer.token);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    async fn seed(&self, urls: &[String]) -> anyhow::Result<()> {
        let first = self.peers.first().context("there is no peer")?;
        let request = self
            .http
            .request(Method::POST, format!("{}/api/seeds", first.address));
        let body = serde_json::json!({ "urls": urls });
        request
            .bearer_auth(&first.token)
            .json(&body)
            .send()
            .await?
            .error_for_status()?;
        Ok(())
    }

    /// A link that opens the first peer's dashboard, once.
    async fn dashboard(&self) -> anyhow::Result<String> {
        let first = self.peers.first().context("there is no peer")?;
        let request = self
            .http
            .request(Method::POST, format!("{}/api/link", first.address));
        let link: OpenLink = request
            .bearer_auth(&first.token)
            .send()
            .await?
            .error_for_status()?
            .json()
            .await?;
        Ok(format!("{}{}", first.address, link.path))
    }

    /// Draws until everything is crawled or a key says to stop.
    async fn watch(&mut self, link: &str, exit_when_done: bool) -> anyhow::Result<()> {
        let is_terminal = stdout().is_terminal();
        let raw = if is_terminal {
            Some(RawTerminal::enter()?)
        } else {
            None
        };
        let mut keys = if is_terminal {
            keys()
        } else {
            mpsc::channel(1).1
        };
        if !is_terminal {
            println!("Dashboard of peer 0: {link}");
        }
        let mut pages = 0;
        let (mut seconds, mut quiet) = (0u64, 0);
        loop {
            let now = self.refresh().await;
            self.rates.push_back(now.saturating_sub(pages));
            self.rates.drain(..self.rates.len().saturating_sub(CHART));
            pages = now;
            seconds += 1;
            quiet = if self.is_done() { quiet + 1 } else { 0 };
            if is_terminal {
                self.draw(link, pages)?;
            } else if seconds % LINES_EVERY == 1 {
                println!(
                    "{} peers, {pages} pages, {} pages/s",
                    self.peers.len(),
                    self.rates.back().unwrap_or(&0)
                );
            }
            if exit_when_done && quiet > 3 {
                drop(raw);
                println!(
                    "Everything is crawled: {pages} pages by {} peers.",
                    self.peers.len()
                );
                return Ok(());
            }
            let key = time::timeout(EVERY, async {
                match keys.recv().await {
                    Some(key) => key,
                    None => std::future::pending().await,
                }
            });
            match key.await {
                Ok('q') => return Ok(()),
                Ok(key) => self.obey(key).await?,
                Err(_) => {}
            }
        }
    }

    async fn obey(&mut self, key: char) -> anyhow::Result<()> {
        match key {
            'a' if self.peers.len() < MAX_PEERS => {
                self.add().await?;
                self.last = format!("peer {} joined", self.ever - 1);
            }
            // The first one shows the dashboard.
            'k' | 'l' if self.peers.len() > 1 => {
                let places: Vec<usize> = (1..self.peers.len()).collect();
                let place = *places
                    .choose(&mut rand::rng())
                    .context("there is another peer")?;
                let member = self.peers.remove(place);
                self.pages_before += member
                    .status
                    .as_ref()
                    .map_or(0, |status| status.totals.pages);
                let number = member.number;
                if key == 'l' {
                    end(member).await;
                    self.last = format!("peer {number} left");
                } else {
                    drop(member);
                    self.last =
                        format!("peer {number} was killed; its domains go to the next ones");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Asks everyone how it is; gives all pages so far.
    async fn refresh(&mut self) -> u64 {
        for place in 0..self.peers.len() {
            if let Ok(status) = self.get::<Status>(&self.peers[place], "/api/status").await {
                self.peers[place].status = Some(status);
            }
        }
        let statuses = self.peers.iter().filter_map(|peer| peer.status.as_ref());
        self.pages_before + statuses.map(|status| status.totals.pages).sum::<u64>()
    }

    fn is_done(&self) -> bool {
        let is_done =
            |status: &Status| status.state == State::Idle && status.queued + status.outbox == 0;
        self.peers
            .iter()
            .all(|peer| peer.status.as_ref().is_some_and(is_done))
    }

    fn draw(&self, link: &str, pages: u64) -> anyhow::Result<()> {
        let mut lines = vec![format!(
            "Apoidea: {} peers, {pages} pages",
            self.peers.len()
        )];
        lines.push(format!("Dashboard of peer 0: {link}"));
        lines.push(String::new());
        lines.push(format!(
            "{:>3} pages/s  {}",
            self.rates.back().unwrap_or(&0),
            sparkline(&self.rates)
        ));
        lines.push(String::new());
        lines.push(format!(
            "{:>5} {:>8} {:>8} {:>8} {:>8}  {}",
            "peer", "pages", "pages/s", "domains", "queue", "state"
        ));
        for peer in &self.peers {
            lines.push(peer.line());
        }
        lines.push(String::new());
        lines.push(format!(
            "k kill a peer   l let one leave   a add one   q stop      {}",
            self.last
        ));
        let mut out = stdout();
        execute!(
            out,
            cursor::MoveTo(0, 0),
            terminal::Clear(terminal::ClearType::All)
        )?;
        out.write_all(lines.join("\r\n").as_bytes())?;
        Ok(out.flush()?)
    }

    /// Ends all in good order, at the same time.
    async fn stop(&mut self) {
        let peers = std::mem::take(&mut self.peers);
        futures::future::join_all(peers.into_iter().map(end)).await;
    }
}

impl Member {
    fn line(&self) -> String {
        let Some(status) = &self.status else {
            return format!("{:>5} starting", self.number);
        };
        format!(
            "{:>5} {:>8} {:>8.1} {:>8} {:>8}  {}",
            self.number,
            status.totals.pages,
            status.usage.pages_per_second,
            status.owned_domains,
            status.queued,
            words::network(&status.network)
        )
    }
}

/// Lets a peer leave; one that does not is killed.
#[cfg(unix)]
async fn end(mut member: Member) {
    let told = Command::new("kill")
        .args(["-TERM", &member.child.id().to_string()])
        .status();
    for _ in 0..70 {
        if told.is_err() || !matches!(member.child.try_wait(), Ok(None)) {
            break;
        }
        time::sleep(Duration::from_millis(100)).await;
    }
}

/// Nobody can be told to leave on this system: a peer is killed, which loses nothing either.
#[cfg(not(unix))]
async fn end(member: Member) {
    drop(member);
}

/// The terminal without echo and line editing, until dropped.
struct RawTerminal;

impl RawTerminal {
    fn enter() -> anyhow::Result<Self> {
        terminal::enable_raw_mode()?;
        execute!(stdout(), terminal::EnterAlternateScreen, cursor::Hide)?;
        Ok(RawTerminal)
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = execute!(stdout(), cursor::Show, terminal::LeaveAlternateScreen);
        let _ = terminal::disable_raw_mode();
    }
}

/// Keys as they are pressed. The thread ends with the program.
fn keys() -> mpsc::Receiver<char> {
    let (sender, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        while let Ok(event) = crossterm::event::read() {
            let Event::Key(key) = event else { continue };
            let is_interrupt =
                key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c');
            let key = match key.code {
                _ if is_interrupt => 'q',
                KeyCode::Esc => 'q',
                KeyCode::Char(key) => key.to_ascii_lowercase(),
                _ => continue,
            };
            if sender.blocking_send(key).is_err() {
                return;
            }
        }
    });
    keys
}

/// A chart of one line.
fn sparkline(values: &VecDeque<u64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or(0).max(1);
    values
        .iter()
        .map(|value| BARS[(value * 7 / most) as usize])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_spans_from_nothing_to_the_most() {
        assert_eq!(sparkline(&VecDeque::from([0, 50, 100])), "▁▄█");
        assert_eq!(sparkline(&VecDeque::from([0, 0])), "▁▁");
    }
}
