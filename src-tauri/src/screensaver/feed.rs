//! What the peer tells the screensaver: pages and numbers as they come, its neighbours now and
//! then. The same link and the same API that a browser uses.

use super::{comb::Ring, plate::Words};
use anyhow::Context;
use apoidea_model::PeerId;
use apoidea_peer::{NetworkStatus, PageEvent, Status, words};
use reqwest::{Client, Response, Url, header::LOCATION, redirect::Policy};
use std::{sync::mpsc::SyncSender, time::Duration};
use tokio::time::{Instant, sleep};

/// News that may wait to be seen; more are left out, since a screen that does not draw shows
/// nothing anyway.
pub const MAX_WAITING: usize = 1024;
/// The longest event that is read; a status has a few thousand bytes.
const MAX_EVENT_BYTES: usize = 1 << 20;
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);
/// How often the neighbours are asked for.
const LOOK_ROUND_EVERY: Duration = Duration::from_secs(15);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// A peer that runs says something every second.
const SILENCE: Duration = Duration::from_secs(5);

/// What is new.
#[derive(Debug, PartialEq)]
pub enum News {
    /// A page arrived of a domain at this place of the ring, from 0 to 1.
    Page(f64),
    /// What the plate says now.
    Words(Words),
    /// Who is where on the ring.
    Ring(Ring),
    /// The peer does not answer.
    Lost,
    /// It is time to go.
    End,
}

/// Tells the news until nobody listens.
pub fn tell(link: &str, news: &SyncSender<News>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut feed = Feed::open(link).await?;
        loop {
            if let Err(error) = feed.follow(news).await {
                tracing::debug!("{error:#}");
            }
            if news.send(News::Lost).is_err() {
                return Ok(());
            }
            sleep(ASK_AGAIN_AFTER).await;
        }
    })
}

struct Feed {
    http: Client,
    home: Url,
    key: String,
}

impl Feed {
    /// Turns a link that works once into a right to ask.
    async fn open(link: &str) -> anyhow::Result<Self> {
        // No TLS on loopback, but the client is built with it and asks for a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = Client::builder()
            .pool_idle_timeout(apoidea_peer::API_IDLE)
            .no_proxy()
            .connect_timeout(CONNECT_WITHIN)
            .redirect(Policy::none())
            .build()?;
        let home: Url = link.parse().context("the peer's link is no URL")?;
        let answer = http
            .get(home.clone())
            .send()
            .await
            .context("the peer does not answer")?;
        let target = answer.headers().get(LOCATION);
        let key = target.and_then(|target| Some(target.to_str().ok()?.split_once("key=")?.1));
        let key = key.context("the peer's link was used before")?.to_owned();
        Ok(Feed { http, home, key })
    }

    async fn ask(&self, path: &str) -> anyhow::Result<Response> {
        let request = self.http.get(self.home.join(path)?).bearer_auth(&self.key);
        Ok(request.send().await?.error_for_status()?)
    }

    async fn ring(&self) -> anyhow::Result<Ring> {
        let answer = self.ask("/api/peers").await?.bytes().await?;
        Ok(ring_of(&serde_json::from_slice(&answer)?))
    }

    async fn follow(&mut self, news: &SyncSender<News>) -> anyhow::Result<()> {
        let mut events = self.ask("/api/events").await?;
        let (mut lines, mut looked_round) = (Lines::default(), None::<Instant>);
        while let Some(chunk) = tokio::time::timeout(SILENCE, events.chunk()).await?? {
            for event in lines.take(&chunk)? {
                // A screen that does not keep up misses some.
                let _ = news.try_send(event);
            }
            if looked_round.is_none_or(|then| then.elapsed() > LOOK_ROUND_EVERY) {
                looked_round = Some(Instant::now());
                if let Ok(ring) = self.ring().await {
                    let _ = news.try_send(News::Ring(ring));
                }
            }
        }
        Ok(())
    }
}

fn ring_of(network: &NetworkStatus) -> Ring {
    let at = |peer: PeerId| peer.key().fraction();
    let known = network
        .successors
        .iter()
        .chain(&network.fingers)
        .chain(&network.leaves);
    Ring {
        me: Some(at(network.me)),
        predecessor: network.predecessor.map(at),
        peers: known.copied().map(at).collect(),
    }
}

/// A stream of server-sent events, as far as it was read.
#[derive(Default)]
struct Lines {
    waiting: Vec<u8>,
}

impl Lines {
    /// The events that these bytes complete.
    fn take(&mut self, bytes: &[u8]) -> anyhow::Result<Vec<News>> {
        self.waiting.extend_from_slice(bytes);
        let mut news = Vec::new();
        while let Some(end) = self.waiting.windows(2).position(|two| two == b"\n\n") {
            let event: Vec<u8> = self.waiting.drain(..end + 2).collect();
            news.extend(std::str::from_utf8(&event).ok().and_then(news_of));
        }
        anyhow::ensure!(
            self.waiting.len() <= MAX_EVENT_BYTES,
            "the peer sends an event without end"
        );
        Ok(news)
    }
}

fn news_of(event: &str) -> Option<News> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data: ")?;
    match field("event: ")? {
        "page" => {
            let page: PageEvent = serde_json::from_str(data).ok()?;
            Some(News::Page(page.url.domain().key().fraction()))
        }
        "status" => {
            let status: Status = serde_json::from_str(data).ok()?;
            Some(News::Words(Words::Numbers {
                pages: status.totals.pages,
                rate: status.usage.pages_per_second,
                domains: status.domains,
                network: words::network(&status.network),
            }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "event: page\ndata: {\"at\":1,\"url\":\"http://a.example/\",\"outcome\":\"page\",\"bytes\":1,\
        \"links\":0,\"millis\":2}\n\n";

    #[test]
    fn events_are_understood_however_they_are_cut() {
        let mut lines = Lines::default();
        let stream = format!(": hello\n\n{PAGE}event: note\ndata: {{}}\n\n{PAGE}");
        let mut news = Vec::new();
        for piece in stream.as_bytes().chunks(7) {
            news.extend(lines.take(piece).unwrap());
        }
        assert_eq!(news.len(), 2);
        assert!(matches!(news[0], News::Page(at) if (0.0..1.0).contains(&at)));
        assert_eq!(news[0], news[1]);
    }

    #[test]
    fn nonsense_is_left_out_and_an_event_without_end_is_refused() {
        let mut lines = Lines::default();
        assert_eq!(
            lines
                .take(b"event: page\ndata: 7\n\nevent: page\n\n\n\n\xff\xff\n\n")
                .unwrap(),
            []
        );
        let flood = vec![b'x'; MAX_EVENT_BYTES];
        assert!(lines.take(&flood).is_ok());
        assert!(lines.take(b"x").is_err());
    }
}
