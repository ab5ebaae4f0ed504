//! How a URL's fetch ended, as one word of code. The list of recent pages, the counters of failures
//! and the metrics all use it; [`super::words`] has the words for people.

use apoidea_crawl::{Failure, Outcome};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::{fmt, str::FromStr};
use ts_rs::{Config, TS};

/// How a URL's fetch ended. In JSON it is its code, such as `"redirect"` or `"status_404"`, so that
/// it can be the key of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageOutcome {
    /// A page whose content is new.
    Page,
    /// A page whose content was known already.
    Duplicate,
    /// A page that was visited before and has not changed since.
    Unchanged,
    /// A sitemap.
    Sitemap,
    /// The page is elsewhere.
    Redirect,
    /// The page is as it was.
    NotModified,
    /// The host answered with this status: there is no page for us.
    Status(u16),
    /// The host asked for more patience.
    Throttled,
    /// The host wants to see a human.
    Challenge,
    /// The name did not resolve.
    NameNotResolved,
    /// No connection.
    NoConnection,
    /// The certificate or the handshake was refused.
    NoSecureConnection,
    /// The connection broke, or the answer was not HTTP.
    AnswerBrokeOff,
    /// It took too long.
    NoAnswerInTime,
    /// The host has a problem of its own.
    ServerError,
    /// The redirect leads to itself, or there were too many.
    RedirectLoop,
    /// The name leads into a network that strangers may not send us to.
    PrivateAddress,
    /// Neither a page nor a sitemap.
    NotAPage,
}

/// All outcomes but the statuses, which are too many, with their codes.
const CODES: [(PageOutcome, &str); 17] = [
    (PageOutcome::Page, "page"),
    (PageOutcome::Duplicate, "duplicate"),
    (PageOutcome::Unchanged, "unchanged"),
    (PageOutcome::Sitemap, "sitemap"),
    (PageOutcome::Redirect, "redirect"),
    (PageOutcome::NotModified, "not_modified"),
    (PageOutcome::Throttled, "throttled"),
    (PageOutcome::Challenge, "challenge"),
    (PageOutcome::NameNotResolved, "name_not_resolved"),
    (PageOutcome::NoConnection, "no_connection"),
    (PageOutcome::NoSecureConnection, "no_secure_connection"),
    (PageOutcome::AnswerBrokeOff, "answer_broke_off"),
    (PageOutcome::NoAnswerInTime, "no_answer_in_time"),
    (PageOutcome::ServerError, "server_error"),
    (PageOutcome::RedirectLoop, "redirect_loop"),
    (PageOutcome::PrivateAddress, "private_address"),
    (PageOutcome::NotAPage, "not_a_page"),
];
const STATUS: &str = "status_";

impl From<&Outcome> for PageOutcome {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Page => PageOutcome::Page,
            Outcome::Redirect(_) => PageOutcome::Redirect,
            Outcome::NotModified => PageOutcome::NotModified,
            Outcome::Refused(status) => PageOutcome::Status(*status),
            Outcome::Throttled { .. } => PageOutcome::Throttled,
            Outcome::Challenge => PageOutcome::Challenge,
            Outcome::Failed(failure) => (*failure).into(),
        }
    }
}

impl From<Failure> for PageOutcome {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Dns => PageOutcome::NameNotResolved,
            Failure::Connect => PageOutcome::NoConnection,
            Failure::Tls => PageOutcome::NoSecureConnection,
            Failure::Read => PageOutcome::AnswerBrokeOff,
            Failure::Timeout => PageOutcome::NoAnswerInTime,
            Failure::Server => PageOutcome::ServerError,
            Failure::TooManyRedirects => PageOutcome::RedirectLoop,
            Failure::PrivateAddress => PageOutcome::PrivateAddress,
            Failure::UnsupportedType => PageOutcome::NotAPage,
        }
    }
}

impl fmt::Display for PageOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let PageOutcome::Status(status) = self {
            return write!(f, "{STATUS}{status}");
        }
        let code = CODES.iter().find(|(outcome, _)| outcome == self);
        f.write_str(code.map_or("", |(_, code)| code))
    }
}

/// The code is none of ours.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no outcome {0:?}")]
pub struct UnknownOutcome(String);

impl FromStr for PageOutcome {
    type Err = UnknownOutcome;

    fn from_str(code: &str) -> Result<Self, UnknownOutcome> {
        let status = code.strip_prefix(STATUS).and_then(|s| s.parse().ok());
        let listed = || CODES.iter().find(|(_, known)| *known == code);
        status
            .map(PageOutcome::Status)
            .or_else(|| listed().map(|(outcome, _)| *outcome))
            .ok_or_else(|| UnknownOutcome(code.to_owned()))
    }
}

impl Serialize for PageOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PageOutcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

impl TS for PageOutcome {
    type WithoutGenerics = Self;
    type OptionInnerType = Self;

    fn docs() -> Option<String> {
        Some("/**\n * How a URL's fetch ended.\n */\n".to_owned())
    }

    fn decl(config: &Config) -> String {
        format!("type PageOutcome = {};", Self::inline(config))
    }

    fn name(_: &Config) -> String {
        "PageOutcome".to_owned()
    }

    fn inline(_: &Config) -> String {
        let codes: String = CODES.map(|(_, code)| format!("{code:?} | ")).concat();
        format!("{codes}`{STATUS}${{number}}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_outcome_of_a_fetch_has_a_code_that_reads_back() {
        let failures = [
            Failure::Dns,
            Failure::Connect,
            Failure::Tls,
            Failure::Read,
            Failure::Timeout,
            Failure::Server,
            Failure::TooManyRedirects,
            Failure::PrivateAddress,
            Failure::UnsupportedType,
        ];
        let others = [
            Outcome::Page,
            Outcome::NotModified,
            Outcome::Refused(404),
            Outcome::Throttled { retry_after: None },
            Outcome::Challenge,
        ];
        let all = failures.map(Outcome::Failed).into_iter().chain(others);
        for outcome in all.map(|outcome| PageOutcome::from(&outcome)) {
            let code = outcome.to_string();
            assert!(!code.is_empty(), "{outcome:?}");
            assert_eq!(code.parse(), Ok(outcome));
        }
    }

    #[test]
    fn outcomes_are_keys_of_maps() {
        let counted = BTreeMap::from([(PageOutcome::Status(404), 2), (PageOutcome::Redirect, 1)]);
        let json = serde_json::to_string(&counted).unwrap();
        assert_eq!(json, r#"{"redirect":1,"status_404":2}"#);
        let read: BTreeMap<PageOutcome, u64> = serde_json::from_str(&json).unwrap();
        assert_eq!(read, counted);
        assert!(serde_json::from_str::<PageOutcome>("\"status_x\"").is_err());
    }
}
