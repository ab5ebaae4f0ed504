//! Turns at addresses that several hosts share: the wishes of simulated peers, and the clocks that
//! the owners of the addresses and their successors keep.

use super::world::{News, World};
use crate::{AddressWish, Grant, politeness::ADDRESS_DELAY};
use apoidea_model::{Key, Time};
use std::{net::IpAddr, time::Duration};

/// Peers look for wishes as often as this, as real ones do.
const EVERY: Duration = Duration::from_secs(1);
/// Peers that keep the clock of an address.
const KEEPERS: usize = 2;

/// Answers of the clocks.
pub(super) type Grants = Vec<(IpAddr, Option<Grant>)>;

impl World {
    /// Lets a peer look for wishes soon, if it has anything to do.
    pub(super) fn wish_soon(&mut self, peer: usize) {
        let agent = &mut self.agents[peer];
        let is_busy = agent.frontier.fetching() > 0 || agent.frontier.next_timeout() < Time::NEVER;
        if self.addresses.is_some() && is_busy && !agent.wishes {
            agent.wishes = true;
            self.soon(EVERY, News::Wish(peer));
        }
    }

    /// A peer puts its wishes to the clocks.
    pub(super) fn wish(&mut self, peer: usize) {
        let asked = self.now;
        self.agents[peer].wishes = false;
        let wishes = self.agents[peer].frontier.address_wishes(asked);
        if !wishes.is_empty() {
            self.soon(self.way(), News::Wished(peer, asked, wishes));
        }
        self.wish_soon(peer);
    }

    /// The clocks answer; of two answers the slower counts.
    pub(super) fn wished(&mut self, peer: usize, asked: Time, wishes: Vec<AddressWish>) {
        let answers = wishes.into_iter().map(|wish| {
            let grants = self.keepers(wish.address).into_iter().map(|keeper| {
                let clock = &mut self.agents[keeper].clock;
                clock.ask(self.ids[peer], wish, ADDRESS_DELAY, self.now)
            });
            (wish.address, grants.reduce(Grant::slower))
        });
        let grants = answers.collect();
        self.soon(self.way(), News::Granted(peer, asked, grants));
    }

    pub(super) fn granted(&mut self, peer: usize, asked: Time, grants: Grants) {
        for (address, grant) in grants {
            self.agents[peer].frontier.granted(address, grant, asked);
        }
        self.look(peer);
    }

    /// The peers that keep the clock of an address, as far as they live.
    fn keepers(&self, address: IpAddr) -> Vec<usize> {
        let key = Key::hash(address.to_string());
        let at = self.ring.partition_point(|(place, _)| *place < key);
        let places = (at..at + self.ring.len()).take(KEEPERS);
        let keepers = places.map(|place| self.ring[place % self.ring.len()].1);
        keepers.filter(|keeper| !self.dead[*keeper]).collect()
    }
}
