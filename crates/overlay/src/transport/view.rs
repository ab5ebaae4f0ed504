//! The transport as it shows itself: its peers, and the routes on which they see this peer.

use super::{Capabilities, Dialler, Transport, link::Link};
use crate::lock::lock;
use apoidea_model::{PeerId, Route};
use serde::{Deserialize, Serialize};
use std::{collections::VecDeque, net::SocketAddr, time::Instant};

/// One connected peer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ts_rs::TS)]
pub struct PeerView {
    /// The peer.
    pub id: PeerId,
    /// The way to it now.
    pub route: Route,
    /// The side that made the connection.
    pub dialler: Dialler,
    /// Software and version, as the peer says.
    pub version: String,
    /// The services that it offers.
    pub capabilities: Capabilities,
    /// Smoothed round trip.
    pub rtt_ms: f64,
    /// Age of the connection.
    pub connected_s: u64,
    /// Whether the connection is kept alive.
    pub useful: bool,
    /// Bytes received over this connection, with all that QUIC adds.
    pub bytes_in: u64,
    /// Bytes sent over it.
    pub bytes_out: u64,
}

impl Transport {
    /// All connected peers.
    pub fn peers(&self) -> Vec<PeerView> {
        let table = self.inner.table();
        table
            .links()
            .map(|link| view(link, table.is_useful(link.peer)))
            .collect()
    }

    /// The routes on which others see this peer, each with the number of peers that said so
    /// recently, the most first.
    pub fn observed_routes(&self) -> Vec<(Route, usize)> {
        lock(&self.inner.observed).counts()
    }

    /// The addresses of this peer that others name and that are believed, at most one of each
    /// family: those that peers of enough regions agree on, of those that this peer dialled.
    pub fn believed_addresses(&self) -> Vec<SocketAddr> {
        lock(&self.inner.ballot).believed()
    }

    /// The regions of the Internet from which strangers have lately reached this peer without
    /// being called.
    pub fn arrivals(&self) -> usize {
        lock(&self.inner.arrivals).regions(Instant::now())
    }
}

fn view(link: &Link, useful: bool) -> PeerView {
    let stats = link.connection.stats();
    PeerView {
        id: link.peer,
        route: link.route(),
        dialler: link.dialler,
        version: link.hello.version.clone(),
        capabilities: link.hello.capabilities,
        rtt_ms: link.connection.rtt().as_secs_f64() * 1000.0,
        connected_s: link.opened.elapsed().as_secs(),
        useful,
        bytes_in: stats.udp_rx.bytes,
        bytes_out: stats.udp_tx.bytes,
    }
}

/// The route to this peer as the last few peers saw it, one vote each.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    votes: VecDeque<(PeerId, Route)>,
}

impl Observed {
    /// Votes remembered.
    const VOTES: usize = 32;

    /// Takes a vote; a peer's later one replaces its earlier one.
    pub fn note(&mut self, route: Route, by: PeerId) {
        self.votes.retain(|(voter, _)| *voter != by);
        self.votes.push_back((by, route));
        if self.votes.len() > Self::VOTES {
            self.votes.pop_front();
        }
    }

    /// Routes with their votes, the most first.
    pub fn counts(&self) -> Vec<(Route, usize)> {
        let mut counts: Vec<(Route, usize)> = Vec::new();
        for (_, route) in &self.votes {
            match counts.iter_mut().find(|(known, _)| known == route) {
                Some((_, count)) => *count += 1,
                None => counts.push((*route, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    #[test]
    fn one_peer_has_one_vote_and_old_votes_are_forgotten() {
        let mut observed = Observed::default();
        let (here, there) = ("1.1.1.1:1".parse().unwrap(), "2.2.2.2:2".parse().unwrap());
        let peer = |n: u8| PeerId::at(Key::hash([n]));
        (0..100).for_each(|_| observed.note(there, peer(0)));
        observed.note(here, peer(1));
        observed.note(here, peer(2));
        assert_eq!(observed.counts(), [(here, 2), (there, 1)]);
        (0..Observed::VOTES as u8).for_each(|n| observed.note(here, peer(100 + n)));
        assert_eq!(observed.counts(), [(here, Observed::VOTES)]);
    }
}
