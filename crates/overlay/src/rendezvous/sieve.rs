//! The choice of whom to dial among the addresses that were announced.
//!
//! Anybody can announce anything, and any node of the DHT can make announcements up. An honest
//! announcement is with several nodes, a node's own invention with that node alone; so the addresses
//! that most nodes name come first. One network gives one address. So a thousand announcements of
//! one party are a few dials.

use crate::AddressPolicy;
use rand::{Rng, seq::SliceRandom};
use std::{
    collections::{HashMap, HashSet},
    net::{Ipv4Addr, SocketAddrV4},
};

/// Dials after one search.
pub(super) const MOST_DIALS: usize = 8;
/// Addresses weighed; a search has at most some dozens of answers of at most 160 addresses.
const MOST_WEIGHED: usize = 8192;

/// The announced addresses, with the number of nodes that name each.
#[derive(Debug, Default)]
pub(super) struct Sieve {
    named: HashMap<SocketAddrV4, usize>,
}

impl Sieve {
    /// Takes one node's word.
    pub fn add(&mut self, announced: Vec<SocketAddrV4>) {
        let announced: HashSet<SocketAddrV4> = announced.into_iter().collect();
        for address in announced {
            if self.named.len() < MOST_WEIGHED || self.named.contains_key(&address) {
                *self.named.entry(address).or_default() += 1;
            }
        }
    }

    /// Takes the words that another search collected.
    pub fn join(&mut self, other: Sieve) {
        for (address, count) in other.named {
            if self.named.len() < MOST_WEIGHED || self.named.contains_key(&address) {
                *self.named.entry(address).or_default() += count;
            }
        }
    }

    /// Distinct addresses so far.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    #[cfg(test)]
    pub fn addresses(&self) -> Vec<SocketAddrV4> {
        self.named.keys().copied().collect()
    }

    /// The addresses to dial, best first: in the Internet, none of `own`, one for each /16.
    pub fn chosen(&self, own: &[Ipv4Addr], rng: &mut impl Rng) -> Vec<SocketAddrV4> {
        let mut named: Vec<(SocketAddrV4, usize)> = self
            .named
            .iter()
            .map(|(address, count)| (*address, *count))
            .filter(|(address, _)| {
                AddressPolicy::Global.allows((*address).into()) && !own.contains(address.ip())
            })
            .collect();
        // A map has an order of its own; lots are drawn among equals.
        named.sort_unstable();
        named.shuffle(rng);
        named.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut networks = HashSet::new();
        named
            .into_iter()
            .map(|(address, _)| address)
            .filter(|address| {
                let [a, b, ..] = address.ip().octets();
                networks.insert([a, b])
            })
            .take(MOST_DIALS)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    fn address(text: &str) -> SocketAddrV4 {
        text.parse().unwrap()
    }

    fn chosen(sieve: &Sieve, own: &str) -> Vec<SocketAddrV4> {
        sieve.chosen(&[own.parse().unwrap()], &mut StdRng::seed_from_u64(1))
    }

    #[test]
    fn what_many_nodes_name_comes_before_the_inventions_of_one() {
        let mut sieve = Sieve::default();
        let honest = address("5.1.0.1:7");
        let invented = (0..1000u32).map(|n| {
            let [_, _, a, b] = n.to_be_bytes();
            SocketAddrV4::new(Ipv4Addr::new(40 + (n % 100) as u8, b, a, b), 80)
        });
        sieve.add(invented.chain([honest]).collect());
        (0..3).for_each(|_| sieve.add(vec![honest]));
        let chosen = chosen(&sieve, "8.8.8.8");
        assert_eq!((chosen[0], chosen.len()), (honest, MOST_DIALS));
    }

    #[test]
    fn one_network_gives_one_address_and_a_home_network_none() {
        let mut sieve = Sieve::default();
        let inside = [
            "10.0.0.1:1",
            "127.0.0.1:1",
            "192.168.1.1:1",
            "0.0.0.0:1",
            "224.0.0.1:9",
        ];
        let rest = [
            "5.1.0.1:0",
            "5.1.0.1:7",
            "5.1.0.1:8",
            "5.1.9.9:7",
            "5.2.0.1:7",
            "8.8.8.8:1",
        ];
        sieve.add(
            inside
                .iter()
                .chain(&rest)
                .map(|text| address(text))
                .collect(),
        );
        let mut chosen = chosen(&sieve, "8.8.8.8");
        chosen.sort_unstable();
        assert_eq!(chosen.len(), 2, "{chosen:?}");
        assert_eq!(chosen[0].ip().octets()[..2], [5, 1]);
        assert_eq!(chosen[1], address("5.2.0.1:7"));
    }

    #[test]
    fn a_node_has_one_vote_and_the_memory_is_bounded() {
        let mut sieve = Sieve::default();
        sieve.add(vec![address("5.1.0.1:7"); 100]);
        sieve.add(vec![address("5.2.0.1:7")]);
        sieve.add(vec![address("5.2.0.1:7")]);
        assert_eq!(chosen(&sieve, "8.8.8.8")[0], address("5.2.0.1:7"));
        let many = (0..70_000u32).map(|n| SocketAddrV4::new(n.into(), 1));
        sieve.add(many.collect());
        assert_eq!(sieve.len(), MOST_WEIGHED);
    }
}
