//! The control port: what a test asks of a toy web that runs in another process. JSON over HTTP, on
//! 127.0.0.1 only.

use crate::{
    access_log::Visit, connection::Answer, description::Description, honeypot::Honeypot, log::Log,
    reply::Reply, truth::Truth,
};
use apoidea_model::PageUrl;
use serde::Serialize;
use serde_json::json;
use std::sync::Arc;

/// Longest list of URLs that is written out; larger webs are asked URL by URL.
const MAX_LISTED: u64 = 2_000_000;

/// Answers questions about one web.
pub(crate) struct Control {
    pub(crate) description: Description,
    pub(crate) truth: Arc<Truth>,
    pub(crate) log: Arc<Log>,
    pub(crate) honeypot: Arc<Honeypot>,
}

impl Control {
    fn ask(&self, path: &str, query: &str) -> Reply {
        match path {
            "config" => json_reply(&self.description),
            "log" => json_reply(&self.log.snapshot()),
            "truth" => match PageUrl::parse(query.strip_prefix("url=").unwrap_or_default()) {
                Ok(url) => json_reply(&json!({ "url": url, "fate": self.truth.fate(&url) })),
                Err(_) => json_reply(&json!({ "expected_total": self.truth.expected_total() })),
            },
            "must-fetch" => self.list(self.truth.must_fetch()),
            "must-keep" => self.list(self.truth.must_keep()),
            "copies" => json_reply(&self.truth.copies()),
            "intruders" => json_reply(&self.honeypot.intruders()),
            _ => Reply::error(404),
        }
    }

    fn list(&self, urls: impl Iterator<Item = PageUrl>) -> Reply {
        if self.truth.expected_total() > MAX_LISTED {
            return Reply::error(413);
        }
        let text: String = urls.map(|url| format!("{url}\n")).collect();
        Reply::new(200, "text/plain", text)
    }
}

fn json_reply(value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(json) => Reply::new(200, "application/json", json),
        Err(_) => Reply::error(500),
    }
}

impl Answer for Control {
    fn answer(&self, visit: &Visit) -> Reply {
        let (path, query) = visit.path.split_once('?').unwrap_or((&visit.path, ""));
        path.strip_prefix("/.toyweb/")
            .map_or_else(|| Reply::error(404), |path| self.ask(path, query))
    }
}
