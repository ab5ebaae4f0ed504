//! The feed of changes (Atom, RFC 4287), for any reader of feeds.
//!
//! A reader knows an address and nothing else. So the address holds a secret, which opens the feed
//! alone and says nothing about the API's token. It stays the same over restarts, and the volunteer
//! can have another one.

use super::{
    Api, Problem,
    access::{random_text, same},
};
use crate::{clock::now, lock::lock, report::words, swarm::watching::watchlist::WatchedChange};
use apoidea_model::Time;
use apoidea_store::{Commit, CommitError, Store};
use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use std::{fmt::Write, sync::Mutex};

const SECRET: &str = "feed secret";
const MEDIA_TYPE: &str = "application/atom+xml; charset=utf-8";

/// The feed's address.
pub(super) struct Feed {
    store: Store,
    secret: Mutex<String>,
}

impl Feed {
    /// The address of the last run, or a new one.
    pub(super) fn open(store: Store) -> Self {
        let stored = store.value(SECRET).ok().flatten();
        let stored = stored.and_then(|bytes| String::from_utf8(bytes).ok());
        let feed = Feed {
            store,
            secret: Mutex::new(stored.clone().unwrap_or_else(random_text)),
        };
        if stored.is_none()
            && let Err(error) = feed.keep()
        {
            tracing::warn!(%error, "the feed has another address after the next start");
        }
        feed
    }

    /// Its path below the API's own address.
    pub(super) fn path(&self) -> String {
        format!("/feed/{}", lock(&self.secret))
    }

    /// Gives it another address.
    pub(super) fn renew(&self) -> Result<(), CommitError> {
        *lock(&self.secret) = random_text();
        self.keep()
    }

    fn keep(&self) -> Result<(), CommitError> {
        let mut commit = Commit::new();
        commit.set_value(SECRET, lock(&self.secret).as_bytes());
        self.store.commit(&commit)
    }

    fn opens(&self, secret: &str) -> bool {
        same(secret, &lock(&self.secret))
    }
}

/// Answers whoever knows the secret.
pub(super) async fn show(
    State(api): State<Api>,
    Path(secret): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    if !api.feed.opens(&secret) {
        let why = "there is no such feed; `apoidea watch` prints its address";
        return Err(Problem(StatusCode::NOT_FOUND, why.to_owned()));
    }
    let changes = api.handle.watched_changes();
    let changes =
        changes.map_err(|error| Problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok());
    let address = format!("http://{}{}", host.unwrap_or("127.0.0.1"), api.feed.path());
    let feed = atom(&changes, &address, now());
    Ok(([(header::CONTENT_TYPE, MEDIA_TYPE)], feed).into_response())
}

/// Changes as a feed, latest first.
fn atom(changes: &[WatchedChange], address: &str, now: Time) -> String {
    let updated = changes.first().map_or(now, |change| change.at);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
         <feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         <title>Watched pages</title>\n\
         <id>urn:apoidea:watched</id>\n\
         <updated>{}</updated>\n\
         <link rel=\"self\" type=\"application/atom+xml\" href=\"{}\"/>\n\
         <author><name>Apoidea</name></author>\n\
         <generator version=\"{}\">Apoidea</generator>\n",
        date(updated),
        escaped(address),
        env!("CARGO_PKG_VERSION"),
    );
    for change in changes {
        let at = date(change.at);
        let url = escaped(change.url.as_str());
        let _ = write!(
            out,
            "<entry>\n<title>{}</title>\n<id>urn:apoidea:change:{}:{:016x}</id>\n\
             <updated>{at}</updated>\n<published>{at}</published>\n\
             <link rel=\"alternate\" href=\"{url}\"/>\n\
             <content type=\"html\">{}</content>\n</entry>\n",
            escaped(&words::change(change)),
            change.at.as_millis(),
            change.url.hash().0,
            escaped(&html(change)),
        );
    }
    out.push_str("</feed>\n");
    out
}

/// The text that changed. It is a stranger's, and stays text.
fn html(change: &WatchedChange) -> String {
    let mut out = String::new();
    for (mark, text) in [("ins", &change.added), ("del", &change.removed)] {
        for line in text.lines() {
            let _ = write!(out, "<p><{mark}>{}</{mark}></p>", escaped(line));
        }
    }
    if change.is_cut {
        out.push_str("<p>There is more.</p>");
    }
    out
}

fn date(time: Time) -> String {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(time.as_millis()).unwrap_or(0));
    let time = time.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Text as XML and HTML hold it; characters that XML does not know are left out.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\t' | '\n' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => {}
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::watching::watchlist::ChangeKind;
    use apoidea_crawl::Sitemap;
    use apoidea_model::PageUrl;

    fn change(url: &str, added: &str, removed: &str) -> WatchedChange {
        WatchedChange {
            at: Time::from_millis(1_700_000_000_000),
            target: url.parse().unwrap(),
            url: PageUrl::parse(url).unwrap(),
            kind: ChangeKind::Changed,
            added: added.to_owned(),
            removed: removed.to_owned(),
            is_cut: false,
        }
    }

    #[test]
    fn a_reader_of_feeds_finds_the_pages_and_their_dates() {
        let changes = [change("http://a.test/?a&b", "new", "old")];
        let feed = atom(&changes, "http://127.0.0.1:1/feed/x", Time::ZERO);
        assert!(
            feed.contains("<updated>2023-11-14T22:13:20Z</updated>"),
            "{feed}"
        );
        let read = Sitemap::parse(feed.as_bytes());
        let dated: Vec<String> = read.dated.iter().map(|(url, _)| url.to_string()).collect();
        assert_eq!(dated, ["http://a.test/?a&b"], "{feed}");
    }

    #[test]
    fn the_text_of_a_page_stays_text() {
        let feed = atom(
            &[change(
                "http://a.test/",
                "<script>x</script>\u{1}]]>",
                "a & b",
            )],
            "http://127.0.0.1:1/feed/x",
            Time::ZERO,
        );
        assert!(
            !feed.contains("<script") && !feed.contains("&lt;script"),
            "{feed}"
        );
        assert!(feed.contains("&amp;lt;script") && feed.contains("a &amp;amp; b"));
        assert!(!feed.contains('\u{1}'));
    }

    #[test]
    fn the_address_lasts_until_another_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let feed = Feed::open(store.clone());
        let path = feed.path();
        assert_eq!(Feed::open(store.clone()).path(), path);
        let secret = path.strip_prefix("/feed/").unwrap();
        assert!(feed.opens(secret) && !feed.opens("") && !feed.opens(&secret[1..]));
        feed.renew().unwrap();
        assert!(!feed.opens(secret));
        assert_eq!(Feed::open(store).path(), feed.path());
    }
}
