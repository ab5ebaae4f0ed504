//! The good-citizen contract, checked against what the servers saw.
//!
//! Times are taken where requests arrive. A request that follows an answer cannot arrive sooner
//! than the answer was begun, so the gaps of one host are exact, however busy the machine is.

use apoidea_peer::USER_AGENT;
use apoidea_toyweb::{AccessLog, Visit};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// What was promised to hosts, besides what robots.txt says about paths.
pub struct Contract {
    /// Between two requests to one host.
    pub delay: Duration,
    /// After 429 and 503, where the host does not ask for more.
    pub back_off: Duration,
    /// What hosts ask for in their robots.txt.
    pub crawl_delays: &'static [(&'static str, Duration)],
    /// What hosts ask for in `Retry-After`.
    pub retry_afters: &'static [(&'static str, Duration)],
    /// Hosts that answer so slowly that they notice late when a client has gone: what they count at
    /// a time says nothing.
    pub slow: &'static [&'static str],
}

impl Contract {
    /// Everything that was not as promised; empty for a good citizen.
    pub fn breaches(&self, log: &AccessLog) -> Vec<String> {
        let mut breaches = self.pace_breaches(log);
        breaches.extend(self.too_many("connections", log.most_connections_per_host()));
        breaches
    }

    /// The same without connections: when a host changes hands, one may be closing while the next
    /// is open.
    pub fn pace_breaches(&self, log: &AccessLog) -> Vec<String> {
        assert_eq!(log.dropped, 0, "the log is not whole");
        let mut breaches = Vec::new();
        for visit in &log.visits {
            if visit.user_agent.as_deref() != Some(USER_AGENT) || &*visit.method != "GET" {
                breaches.push(format!(
                    "{} of {} by {:?}",
                    visit.method,
                    visit.url(),
                    visit.user_agent
                ));
            }
        }
        let mut by_host = BTreeMap::<&str, Vec<&Visit>>::new();
        log.visits
            .iter()
            .for_each(|visit| by_host.entry(&visit.host).or_default().push(visit));
        for (host, visits) in by_host {
            breaches.extend(
                visits
                    .windows(2)
                    .filter_map(|pair| self.too_soon(host, pair[0], pair[1])),
            );
        }
        breaches.extend(self.too_many("requests", log.most_requests_at_a_time_per_host()));
        breaches
    }

    fn too_many(
        &self,
        what: &str,
        counts: BTreeMap<Arc<str>, usize>,
    ) -> impl Iterator<Item = String> {
        let too_many = counts
            .into_iter()
            .filter(|(host, count)| *count > 1 && !self.slow.contains(&&**host));
        too_many.map(move |(host, count)| format!("{host} had {count} {what} at a time"))
    }

    fn too_soon(&self, host: &str, before: &Visit, visit: &Visit) -> Option<String> {
        let gap = visit.received.saturating_sub(before.received);
        let asked = |table: &[(&str, Duration)]| {
            table
                .iter()
                .find(|(name, _)| *name == host)
                .map_or(Duration::ZERO, |(_, wait)| *wait)
        };
        let back_off = match before.status {
            429 | 503 => self.back_off.max(asked(self.retry_afters)),
            _ => Duration::ZERO,
        };
        let due = self.delay.max(asked(self.crawl_delays)).max(back_off);
        (gap < due).then(|| {
            format!(
                "{} came {gap:?} after {}, due {due:?}",
                visit.url(),
                before.url()
            )
        })
    }
}
