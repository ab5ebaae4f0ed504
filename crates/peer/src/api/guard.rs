//! What holds for every answer of the API, and how many may be asked for.
//!
//! Three buckets, because they are for three kinds of askers. A stranger (a page in the user's
//! browser, a program without the token) that asks without end must not use up what the owner's own
//! dashboard and scripts need, nor close the doors through which the owner comes in: a link to the
//! dashboard, and the question whether this is the peer.

use super::{
    Api, Problem,
    access::{Access, misled},
};
use crate::lock::lock;
use axum::{
    extract::{Request, State},
    http::{HeaderName, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::{
    sync::{Arc, Mutex, MutexGuard},
    time::Instant,
};
use tokio::sync::Semaphore;

/// What a script that polls in a loop, and a dashboard beside it, do not reach.
const OWNER: Rate = Rate {
    a_second: 200.0,
    at_once: 1000.0,
};
/// A wrong token or a foreign page is a mistake once or twice.
const STRANGER: Rate = Rate {
    a_second: 20.0,
    at_once: 500.0,
};
/// People open a dashboard, and scripts a connection, now and then.
const DOORS: Rate = Rate {
    a_second: 50.0,
    at_once: 500.0,
};
/// What is asked for before the owner can show any right; the dashboard's files count as well.
const DOOR_PATHS: [&str; 2] = ["/open", "/api/hello"];
/// Dashboards, tray apps and scripts that follow the events at the same time.
const MAX_STREAMS: usize = 32;

/// Keeps a page of ours from loading or being loaded by anything foreign, and answers out of
/// caches.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
];

/// How much is answered.
#[derive(Debug)]
pub(super) struct Guard {
    owner: Mutex<Bucket>,
    stranger: Mutex<Bucket>,
    doors: Mutex<Bucket>,
    /// Event streams that may still be opened.
    pub streams: Arc<Semaphore>,
}

#[derive(Debug, Clone, Copy)]
struct Rate {
    a_second: f64,
    at_once: f64,
}

#[derive(Debug)]
struct Bucket {
    rate: Rate,
    left: f64,
    at: Instant,
}

impl Bucket {
    fn new(rate: Rate, now: Instant) -> Self {
        Bucket {
            rate,
            left: rate.at_once,
            at: now,
        }
    }

    /// Takes one, if there is one.
    fn take(&mut self, now: Instant) -> bool {
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * self.rate.a_second;
        (self.left, self.at) = ((self.left + gained).min(self.rate.at_once), now);
        let has_one = self.left >= 1.0;
        self.left -= f64::from(u8::from(has_one));
        has_one
    }
}

impl Guard {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Guard {
            owner: Mutex::new(Bucket::new(OWNER, now)),
            stranger: Mutex::new(Bucket::new(STRANGER, now)),
            doors: Mutex::new(Bucket::new(DOORS, now)),
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    fn admits(&self, access: &Access, request: &Request) -> bool {
        let mut bucket = self.bucket(access, request);
        bucket.take(Instant::now())
    }

    /// A page of another site cannot knock at the doors: its browser tells where it comes from. The
    /// cookie makes nobody the owner either.
    fn bucket(&self, access: &Access, request: &Request) -> MutexGuard<'_, Bucket> {
        let is_at_door = DOOR_PATHS.contains(&request.uri().path());
        let may_enter = is_at_door || access.admits_to_files(request);
        let bucket = if access.admits(request) {
            &self.owner
        } else if may_enter && misled(request.headers()).is_none() {
            &self.doors
        } else {
            &self.stranger
        };
        lock(bucket)
    }
}

/// Answers no more than the rates allow, and puts the headers on every answer that has not its own.
pub(super) async fn guard(State(api): State<Api>, request: Request, next: Next) -> Response {
    let mut answer = if api.guard.admits(&api.access, &request) {
        next.run(request).await
    } else {
        let why = "too many requests: wait a second";
        (
            [(header::RETRY_AFTER, "1")],
            Problem(StatusCode::TOO_MANY_REQUESTS, why.to_owned()),
        )
            .into_response()
    };
    for (name, value) in HEADERS {
        answer
            .headers_mut()
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_burst_is_answered_and_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket::new(
            Rate {
                a_second: 10.0,
                at_once: 5.0,
            },
            start,
        );
        let taken = |bucket: &mut Bucket, at| (0..100).filter(|_| bucket.take(at)).count();
        assert_eq!(taken(&mut bucket, start), 5);
        assert_eq!(taken(&mut bucket, start + Duration::from_millis(210)), 2);
        assert_eq!(taken(&mut bucket, start + Duration::from_secs(60)), 5);
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut bucket = Bucket::new(
            Rate {
                a_second: 10.0,
                at_once: 1.0,
            },
            start,
        );
        assert!(bucket.take(start));
        assert!(!bucket.take(start - Duration::from_secs(5)));
    }
}
