//! What happened to a toy web, and the questions tests ask about it: how often a URL was fetched,
//! how far apart the requests to a host were, how many connections it saw at a time.

use apoidea_model::Time;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

/// Everything that was logged up to a moment.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct AccessLog {
    /// Requests in order of arrival.
    pub visits: Vec<Visit>,
    /// Connections in order of arrival; a visit's `connection` is an index into them.
    pub connections: Vec<Connection>,
    /// DNS queries in order of arrival.
    pub lookups: Vec<Lookup>,
    /// Events that came after the log was full.
    pub dropped: u64,
}

/// One HTTP request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Visit {
    /// When its last header arrived, since the web's start.
    pub received: Duration,
    /// The same moment by the calendar.
    pub wall: Time,
    /// When the last byte of the answer was handed to the system; `None` while it is not.
    pub answered: Option<Duration>,
    /// `http` or `https`.
    pub scheme: Arc<str>,
    /// The host asked for, without port, lower case.
    pub host: Arc<str>,
    /// The address and port it arrived at.
    pub server: SocketAddr,
    /// Path and query as they were sent.
    pub path: Arc<str>,
    /// `GET` or another method.
    pub method: Arc<str>,
    /// `User-Agent`.
    pub user_agent: Option<Arc<str>>,
    /// `If-None-Match`.
    pub if_none_match: Option<Arc<str>>,
    /// `If-Modified-Since`.
    pub if_modified_since: Option<Arc<str>>,
    /// `Accept-Encoding`.
    pub accept_encoding: Option<Arc<str>>,
    /// `Connection`.
    pub connection_header: Option<Arc<str>>,
    /// The connection it came over.
    pub connection: usize,
    /// Status of the answer; 0 while there is none and where the answer was no HTTP.
    pub status: u16,
    /// Bytes of the answer, headers included.
    pub bytes: u64,
}

impl Visit {
    /// The URL as it was asked for, not canonicalised: two spellings of a page are two URLs here.
    pub fn url(&self) -> String {
        format!(
            "{}://{}:{}{}",
            self.scheme,
            self.host,
            self.server.port(),
            self.path
        )
    }
}

/// One TCP connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Its number.
    pub id: usize,
    /// The address and port it was accepted at.
    pub server: SocketAddr,
    /// Who connected.
    pub client: SocketAddr,
    /// When it was accepted, since the web's start.
    pub opened: Duration,
    /// When it ended; `None` while it is open.
    pub closed: Option<Duration>,
}

/// One DNS query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lookup {
    /// When it arrived, since the web's start.
    pub received: Duration,
    /// The same moment by the calendar.
    pub wall: Time,
    /// The name asked for, lower case, without the trailing dot.
    pub name: Arc<str>,
    /// The record type asked for, such as `A`.
    pub kind: String,
    /// What was answered: addresses, or the response code.
    pub answer: String,
}

impl AccessLog {
    /// What arrived at or after a moment, such as the `received` of an earlier request. Connections
    /// are all kept.
    pub fn since(mut self, moment: Duration) -> AccessLog {
        self.visits.retain(|visit| visit.received >= moment);
        self.lookups.retain(|lookup| lookup.received >= moment);
        self
    }

    /// How often each URL was requested, robots.txt included.
    pub fn requests_per_url(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        self.visits
            .iter()
            .for_each(|visit| *counts.entry(visit.url()).or_default() += 1);
        counts
    }

    /// Requests for one URL, exactly as spelled.
    pub fn requests_for(&self, url: &str) -> usize {
        self.visits_to(url).count()
    }

    /// The requests for one URL, exactly as spelled.
    pub fn visits_to(&self, url: &str) -> impl Iterator<Item = &Visit> {
        self.visits.iter().filter(move |visit| visit.url() == url)
    }

    /// Per host, the time from each request's arrival to the next one's.
    pub fn gaps_per_host(&self) -> BTreeMap<Arc<str>, Vec<Duration>> {
        self.gaps_by(|visit| visit.host.clone())
    }

    /// Per server address, the time from each request's arrival to the next one's.
    pub fn gaps_per_address(&self) -> BTreeMap<IpAddr, Vec<Duration>> {
        self.gaps_by(|visit| visit.server.ip())
    }

    fn gaps_by<K: Ord>(&self, key: impl Fn(&Visit) -> K) -> BTreeMap<K, Vec<Duration>> {
        let mut times = BTreeMap::<K, Vec<Duration>>::new();
        self.visits
            .iter()
            .for_each(|visit| times.entry(key(visit)).or_default().push(visit.received));
        times
            .into_iter()
            .map(|(key, times)| (key, gaps(times)))
            .collect()
    }

    /// Per host, the most connections that were open at a time and carried a request for it. A
    /// connection counts from its first request for the host until it is closed.
    pub fn most_connections_per_host(&self) -> BTreeMap<Arc<str>, usize> {
        let mut first = HashMap::<(Arc<str>, usize), Duration>::new();
        for visit in &self.visits {
            first
                .entry((visit.host.clone(), visit.connection))
                .or_insert(visit.received);
        }
        let mut spans = BTreeMap::<Arc<str>, Vec<(Duration, Duration)>>::new();
        for ((host, connection), opened) in first {
            let closed = self
                .connections
                .get(connection)
                .and_then(|connection| connection.closed);
            spans
                .entry(host)
                .or_default()
                .push((opened, closed.unwrap_or(Duration::MAX)));
        }
        spans
            .into_iter()
            .map(|(host, spans)| (host, most_at_a_time(spans)))
            .collect()
    }

    /// Per server address, the most connections that were open at a time.
    pub fn most_connections_per_address(&self) -> BTreeMap<IpAddr, usize> {
        let mut spans = BTreeMap::<IpAddr, Vec<(Duration, Duration)>>::new();
        for Connection {
            server,
            opened,
            closed,
            ..
        } in &self.connections
        {
            spans
                .entry(server.ip())
                .or_default()
                .push((*opened, closed.unwrap_or(Duration::MAX)));
        }
        spans
            .into_iter()
            .map(|(address, spans)| (address, most_at_a_time(spans)))
            .collect()
    }

    /// Per host, the most requests that were being answered at a time.
    pub fn most_requests_at_a_time_per_host(&self) -> BTreeMap<Arc<str>, usize> {
        let mut spans = BTreeMap::<Arc<str>, Vec<(Duration, Duration)>>::new();
        for visit in &self.visits {
            let answered = visit.answered.unwrap_or(Duration::MAX);
            spans
                .entry(visit.host.clone())
                .or_default()
                .push((visit.received, answered));
        }
        spans
            .into_iter()
            .map(|(host, spans)| (host, most_at_a_time(spans)))
            .collect()
    }

    /// Every user agent that was seen.
    pub fn user_agents(&self) -> BTreeSet<Arc<str>> {
        self.visits
            .iter()
            .filter_map(|visit| visit.user_agent.clone())
            .collect()
    }
}

fn gaps(mut times: Vec<Duration>) -> Vec<Duration> {
    times.sort_unstable();
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The deepest overlap of some spans of time; one that ends when another begins does not overlap
/// it.
fn most_at_a_time(spans: Vec<(Duration, Duration)>) -> usize {
    let mut changes: Vec<(Duration, i32)> = spans
        .iter()
        .flat_map(|&(from, to)| [(from, 1), (to, -1)])
        .collect();
    changes.sort_unstable();
    let mut open = 0;
    let depths = changes.into_iter().map(|(_, change)| {
        open += change;
        open
    });
    depths.max().map_or(0, |depth| depth.max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visit(
        host: &str,
        server: &str,
        connection: usize,
        received: u64,
        answered: Option<u64>,
    ) -> Visit {
        Visit {
            received: Duration::from_millis(received),
            wall: Time::ZERO,
            answered: answered.map(Duration::from_millis),
            scheme: "http".into(),
            host: host.into(),
            server: server.parse().unwrap(),
            path: "/".into(),
            method: "GET".into(),
            user_agent: Some("Apoidea/1".into()),
            if_none_match: None,
            if_modified_since: None,
            accept_encoding: None,
            connection_header: None,
            connection,
            status: 200,
            bytes: 1,
        }
    }

    fn connection(id: usize, opened: u64, closed: Option<u64>) -> Connection {
        let (server, client) = (
            "127.0.0.1:80".parse().unwrap(),
            "127.0.0.1:4000".parse().unwrap(),
        );
        let (opened, closed) = (
            Duration::from_millis(opened),
            closed.map(Duration::from_millis),
        );
        Connection {
            id,
            server,
            client,
            opened,
            closed,
        }
    }

    #[test]
    fn gaps_are_taken_per_host_and_per_address() {
        let visits = vec![
            visit("a", "127.0.0.1:80", 0, 0, Some(5)),
            visit("b", "127.0.0.1:80", 1, 30, Some(35)),
            visit("a", "127.0.0.1:80", 0, 100, None),
        ];
        let log = AccessLog {
            visits,
            ..AccessLog::default()
        };
        assert_eq!(log.gaps_per_host()["a"], [Duration::from_millis(100)]);
        assert!(log.gaps_per_host()["b"].is_empty());
        let address: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(
            log.gaps_per_address()[&address],
            [30, 70].map(Duration::from_millis)
        );
        assert_eq!(log.requests_for("http://a:80/"), 2);
    }

    #[test]
    fn connections_count_while_they_are_open() {
        let connections = vec![
            connection(0, 0, Some(50)),
            connection(1, 50, None),
            connection(2, 60, None),
        ];
        let visits = vec![
            visit("a", "127.0.0.1:80", 0, 0, Some(5)),
            visit("a", "127.0.0.1:80", 1, 51, Some(52)),
            visit("a", "127.0.0.1:80", 2, 61, Some(70)),
            visit("b", "127.0.0.1:80", 2, 71, Some(72)),
        ];
        let log = AccessLog {
            visits,
            connections,
            ..AccessLog::default()
        };
        assert_eq!(log.most_connections_per_host()["a"], 2);
        assert_eq!(log.most_connections_per_host()["b"], 1);
        assert_eq!(
            log.most_connections_per_address()
                .into_values()
                .collect::<Vec<_>>(),
            [2]
        );
        assert_eq!(log.most_requests_at_a_time_per_host()["a"], 1);
    }
}
