//! The end of a fetch as data: a fetch that failed is no error of the program.
//!
//! The fetcher reports an [`Outcome`]; what follows for the URL is decided here, what follows for
//! its host in [`crate::DomainState`].

use crate::politeness::Pace;
use apoidea_model::{PageUrl, Pending, Time, Visit};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The end of a fetch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// A page (or sitemap) came back.
    Page,
    /// The page is elsewhere: a new URL, which its owner admits like any other.
    Redirect(PageUrl),
    /// 304: the page has not changed since the last visit.
    NotModified,
    /// 4xx other than 429: the host answered, there is no page for us.
    Refused(u16),
    /// 429 or 503: too fast.
    Throttled {
        /// The wait that the `Retry-After` header asked for, if it was there and made sense.
        retry_after: Option<Duration>,
    },
    /// A page that asks us to prove we are human, or says that we are blocked.
    Challenge,
    /// No usable answer.
    Failed(Failure),
}

/// The reason why there is no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Failure {
    /// The name did not resolve.
    Dns,
    /// No connection.
    Connect,
    /// The certificate or the handshake was refused.
    Tls,
    /// The connection broke, or what came was not HTTP.
    Read,
    /// It took too long.
    Timeout,
    /// 5xx other than 503.
    Server,
    /// The redirect leads to itself, or there were too many on the way here.
    TooManyRedirects,
    /// The name leads into a network that strangers may not send us to.
    PrivateAddress,
    /// Neither a page nor a sitemap.
    UnsupportedType,
}

/// The state of the host by its answer, apart from the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It answered: it is well, whether we like the answer or not.
    Answered,
    /// It answered that this is not for us (403).
    Forbidden,
    /// It failed, or asked us to slow down.
    Failed,
}

/// The future of the URL, for the queue on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    /// It leaves the queue, since it had its answer.
    Done(Pending),
    /// It stays in its place with this new content: tried again, not earlier than it says.
    Retry(Pending),
    /// It leaves the queue, since trying again is useless.
    Dropped(Pending),
}

/// Wait before the first retry when there was no connection; doubles (good-citizen contract).
pub const CONNECT_RETRY: Duration = Duration::from_secs(3600);
/// Retries of a URL when there was no connection (good-citizen contract).
pub const CONNECT_RETRIES: u8 = 2;
/// Wait before the first retry when reading failed; doubles (good-citizen contract).
pub const READ_RETRY: Duration = Duration::from_secs(60);
/// Retries of a URL when reading failed (good-citizen contract).
pub const READ_RETRIES: u8 = 3;
/// Retries of a URL when its host asked us to slow down. The answer says nothing
/// about the page, but a single page that always answers 503 must not hold up its host for ever; 8
/// reach past a host's rest of a day.
pub const THROTTLED_RETRIES: u8 = 8;

impl Outcome {
    /// Whether a visit has told the page's content: a page came back, or the one that is known has
    /// not changed.
    pub fn tells_content(&self, visit: &Visit) -> bool {
        match self {
            Outcome::Page => true,
            Outcome::NotModified => *visit != Visit::First,
            _ => false,
        }
    }

    /// The state of the host by this outcome.
    pub fn health(&self) -> Health {
        match self {
            Outcome::Refused(403) => Health::Forbidden,
            Outcome::Throttled { .. } => Health::Failed,
            Outcome::Failed(failure) => failure.health(),
            Outcome::Page
            | Outcome::Redirect(_)
            | Outcome::NotModified
            | Outcome::Refused(_)
            | Outcome::Challenge => Health::Answered,
        }
    }

    /// Decides what becomes of the URL. A host that asked for patience is asked again at
    /// `host_ready` at the earliest.
    pub(crate) fn settle(
        &self,
        pending: Pending,
        host_ready: Time,
        now: Time,
        pace: Pace,
    ) -> Settlement {
        let (retries, wait) = match self {
            Outcome::Throttled { .. } => (THROTTLED_RETRIES, host_ready.since(now)),
            Outcome::Failed(failure) => failure.retries(pending.attempts, pace),
            _ => return Settlement::Done(pending),
        };
        if pending.attempts >= retries {
            return Settlement::Dropped(pending);
        }
        Settlement::Retry(Pending {
            attempts: pending.attempts + 1,
            not_before: now + wait,
            ..pending
        })
    }
}

impl Failure {
    /// The state of the host by this failure.
    fn health(self) -> Health {
        match self {
            Failure::UnsupportedType | Failure::TooManyRedirects => Health::Answered,
            Failure::Dns
            | Failure::Connect
            | Failure::Tls
            | Failure::Read
            | Failure::Timeout
            | Failure::Server
            | Failure::PrivateAddress => Health::Failed,
        }
    }

    /// The number of retries, and the wait after this many attempts before.
    fn retries(self, attempts: u8, pace: Pace) -> (u8, Duration) {
        let doubling = |first: Duration| pace.scale(first * 2_u32.pow(u32::from(attempts.min(10))));
        match self {
            Failure::Dns | Failure::Connect => (CONNECT_RETRIES, doubling(CONNECT_RETRY)),
            Failure::Read | Failure::Timeout | Failure::Server => {
                (READ_RETRIES, doubling(READ_RETRY))
            }
            Failure::Tls
            | Failure::TooManyRedirects
            | Failure::PrivateAddress
            | Failure::UnsupportedType => (0, Duration::ZERO),
        }
    }
}
