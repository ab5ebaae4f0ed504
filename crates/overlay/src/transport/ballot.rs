//! The votes of other peers about this peer's own address.
//!
//! An address that others name is dialled by all who hear of this peer, and it decides where this
//! peer sits on the ring. So one party must not be able to choose it. Every region of the Internet
//! has one voice, however many peers speak there. A peer that dialled in may have come to vote, so
//! those that this peer dialled itself count, and the others only while there are none of these.

use super::Dialler;
use apoidea_model::{PeerId, Route, is_global};
use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
};

/// Regions that must agree; fewer where fewer are known, so that a network can begin with two peers.
const ENOUGH: usize = 3;
/// Votes kept of one region. The first ones stay, so that later ones cannot displace them.
const PER_REGION: usize = 4;
/// Regions kept.
const REGIONS: usize = 64;

/// Addresses that one party may control together, at most: a /16 of IPv4, a /32 of IPv6. All that
/// are not global are one region, this peer's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Region {
    V4([u8; 2]),
    V6([u8; 4]),
    Own,
}

#[derive(Debug, Clone, Copy)]
struct Vote {
    by: PeerId,
    dialler: Dialler,
    route: Route,
}

/// The votes, by the region of the voter.
#[derive(Debug, Default)]
pub(crate) struct Ballot {
    regions: BTreeMap<Region, Vec<Vote>>,
}

impl Region {
    pub fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if !is_global(address) => Region::Own,
            IpAddr::V4(address) => {
                let [a, b, ..] = address.octets();
                Region::V4([a, b])
            }
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.octets();
                Region::V6([a, b, c, d])
            }
        }
    }
}

impl Ballot {
    /// Takes the vote of a peer at this address; its later one replaces its earlier one.
    pub fn note(&mut self, by: PeerId, at: IpAddr, dialler: Dialler, route: Route) {
        let region = Region::of(at);
        if !self.regions.contains_key(&region) && self.regions.len() >= REGIONS {
            return;
        }
        let votes = self.regions.entry(region).or_default();
        let vote = Vote { by, dialler, route };
        if let Some(earlier) = votes.iter_mut().find(|vote| vote.by == by) {
            *earlier = vote;
            return;
        }
        if votes.len() >= PER_REGION {
            // One that this peer has dialled comes before one that came by itself.
            let came = votes.iter().position(|vote| vote.dialler == Dialler::Them);
            match came.filter(|_| dialler == Dialler::Me) {
                Some(came) => votes.remove(came),
                None => return,
            };
        }
        votes.push(vote);
    }

    /// Forgets all votes: this peer may be somewhere else now.
    pub fn clear(&mut self) {
        self.regions.clear();
    }

    /// The addresses that are believed: at most one of each family.
    pub fn believed(&self) -> Vec<SocketAddr> {
        [true, false]
            .into_iter()
            .filter_map(|is_v4| self.believed_of(is_v4))
            .collect()
    }

    fn believed_of(&self, is_v4: bool) -> Option<SocketAddr> {
        let dialled = self.voices(is_v4, |dialler| dialler == Dialler::Me);
        let voices = if dialled.is_empty() {
            self.voices(is_v4, |_| true)
        } else {
            dialled
        };
        let (ip, count) = winner(voices.iter().map(SocketAddr::ip))?;
        if count < ENOUGH.min(voices.len()) {
            return None;
        }
        let there = voices.iter().filter(|address| address.ip() == ip);
        // A router may give each connection another port; any of them is as good.
        let port = winner(there.clone().map(SocketAddr::port));
        let port = port.map_or_else(|| there.map(SocketAddr::port).min(), |(port, _)| Some(port));
        Some(SocketAddr::new(ip, port?))
    }

    /// The voice of each region about this family: the address that most of its voters name, or the
    /// first.
    fn voices(&self, is_v4: bool, counts: impl Fn(Dialler) -> bool) -> Vec<SocketAddr> {
        let voice = |votes: &Vec<Vote>| {
            let named = votes.iter().filter(|vote| counts(vote.dialler));
            let named: Vec<SocketAddr> = named
                .filter_map(|vote| vote.route.address())
                .map(|address| SocketAddr::new(address.ip().to_canonical(), address.port()))
                .filter(|address| address.is_ipv4() == is_v4)
                .collect();
            let most = winner(named.iter().map(SocketAddr::ip)).map(|(ip, _)| ip);
            let mut of_most = named.iter().filter(|address| Some(address.ip()) == most);
            of_most.next().or(named.first()).copied()
        };
        self.regions.values().filter_map(voice).collect()
    }
}

/// The value that occurs most often, if there is one, and how often.
fn winner<T: Ord>(values: impl Iterator<Item = T>) -> Option<(T, usize)> {
    let mut counts = BTreeMap::<T, usize>::new();
    values.for_each(|value| *counts.entry(value).or_default() += 1);
    let most = counts.values().copied().max()?;
    let mut first = counts.into_iter().filter(|(_, count)| *count == most);
    let winner = first.next()?;
    first.next().is_none().then_some(winner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    const HERE: &str = "5.1.1.1:1";
    const LIE: &str = "9.9.9.9:9";

    fn vote(ballot: &mut Ballot, by: u32, at: &str, dialler: Dialler, route: &str) {
        let by = PeerId::at(Key::hash(by.to_be_bytes()));
        let (at, route) = (at.parse().unwrap(), route.parse().unwrap());
        ballot.note(by, at, dialler, route);
    }

    fn believed(ballot: &Ballot) -> Vec<String> {
        let believed = ballot.believed().into_iter();
        believed.map(|address| address.to_string()).collect()
    }

    #[test]
    fn three_regions_that_this_peer_dialled_have_to_agree() {
        let mut ballot = Ballot::default();
        let at = ["20.1.0.1", "20.2.0.1", "20.3.0.1", "20.4.0.1"];
        vote(&mut ballot, 0, at[0], Dialler::Me, HERE);
        assert_eq!(believed(&ballot), [HERE], "the first one is all there is");
        vote(&mut ballot, 1, at[1], Dialler::Me, LIE);
        assert_eq!(believed(&ballot), [""; 0], "one against one");
        vote(&mut ballot, 2, at[2], Dialler::Me, HERE);
        assert_eq!(believed(&ballot), [""; 0], "two of three");
        vote(&mut ballot, 3, at[3], Dialler::Me, HERE);
        assert_eq!(believed(&ballot), [HERE], "three of four");
    }

    #[test]
    fn a_hundred_voters_of_one_region_change_nothing() {
        for dialler in [Dialler::Me, Dialler::Them] {
            let mut ballot = Ballot::default();
            for n in 0..4 {
                vote(&mut ballot, n, &format!("20.{n}.0.1"), Dialler::Me, HERE);
            }
            for n in 100..200 {
                vote(&mut ballot, n, &format!("30.1.{n}.1"), dialler, LIE);
                assert_eq!(believed(&ballot), [HERE], "{n}");
            }
            for n in 200..300 {
                vote(&mut ballot, n, &format!("20.1.{}.1", n - 100), dialler, LIE);
                assert_eq!(believed(&ballot), [HERE], "{n}");
            }
        }
    }

    #[test]
    fn callers_count_only_while_nobody_was_dialled() {
        let mut ballot = Ballot::default();
        for n in 0..10 {
            vote(&mut ballot, n, &format!("30.{n}.0.1"), Dialler::Them, LIE);
        }
        assert_eq!(believed(&ballot), [LIE], "an entry point dials nobody");
        vote(&mut ballot, 20, "20.1.0.1", Dialler::Me, HERE);
        assert_eq!(believed(&ballot), [HERE]);
    }

    #[test]
    fn each_family_is_judged_by_itself_and_ports_may_differ() {
        let mut ballot = Ballot::default();
        for n in 0..3 {
            let port = format!("5.1.1.1:{}", n + 1);
            vote(&mut ballot, n, &format!("20.{n}.0.1"), Dialler::Me, &port);
        }
        vote(&mut ballot, 9, "2a01:1::1", Dialler::Me, "[2a02:2::2]:7");
        assert_eq!(believed(&ballot), ["5.1.1.1:1", "[2a02:2::2]:7"]);
    }

    #[test]
    fn the_ballot_is_bounded() {
        let mut ballot = Ballot::default();
        for n in 0..10_000u32 {
            let at = format!("20.{}.{}.1", n % 200, n / 200);
            vote(&mut ballot, n, &at, Dialler::Them, LIE);
        }
        assert_eq!(ballot.regions.len(), REGIONS);
        assert!(
            ballot
                .regions
                .values()
                .all(|votes| votes.len() <= PER_REGION)
        );
    }
}
