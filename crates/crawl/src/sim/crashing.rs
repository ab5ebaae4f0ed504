//! Peers that die for good, with all that only they had: others find out, the next peer on the ring
//! takes their domains over from the replicas, and the links that they did not acknowledge are sent
//! again.

use super::{
    draw,
    replica::Replica,
    telling::REPLICAS,
    world::{BEGIN, News, World},
};
use crate::Stage;
use apoidea_model::{Domain, PageId};
use std::{collections::BTreeMap, time::Duration};

/// Others find out that a peer is gone after this: longer than any request that it sent takes, and
/// than the pause that its hosts are owed.
const NOTICE: Duration = Duration::from_secs(10);
/// A peer crashes as often as this.
const EVERY: Duration = Duration::from_millis(500);

impl World {
    /// Lets so many peers crash, one after the other.
    pub(super) fn plan_crashes(&mut self, crashes: usize) {
        for number in 1..=crashes {
            let wait = EVERY.saturating_mul(u32::try_from(number).unwrap_or(u32::MAX));
            self.at(BEGIN + wait, News::Crash(number as u64));
        }
    }

    /// A peer crashes, if others have what it has: no domain loses its owner and all replicas at
    /// once.
    pub(super) fn crash(&mut self, number: u64) {
        let nth = draw(self.seed ^ 13, number) % self.ring.len() as u64;
        let nth = nth as usize;
        let places = self.ring.len();
        let near = (places + nth - REPLICAS..=places + nth + REPLICAS)
            .map(|place| self.ring[place % places].1);
        let is_spared = places <= 2 * REPLICAS + 1 || near.into_iter().any(|peer| self.dead[peer]);
        if is_spared {
            return;
        }
        let peer = self.ring[nth].1;
        self.dead[peer] = true;
        self.usage.crashed += 1;
        self.usage.at_risk += self.at_risk(peer);
        self.under_way.retain(|_, by| *by != peer);
        self.soon(NOTICE, News::Gone(peer));
    }

    /// Pages of a peer that its replicas may not know to be done.
    fn at_risk(&self, peer: usize) -> usize {
        let agent = &self.agents[peer];
        let is_open = |page: &PageId| match agent.pages.stage(page) {
            Some(stage) => !matches!(stage, Stage::Errand { .. }),
            None => false,
        };
        let queued = agent.domains.iter().flat_map(|(domain, known)| {
            let slots = known.replica.queue.keys();
            slots.map(move |slot| PageId::new(domain.clone(), *slot))
        });
        let deltas = agent.round.iter().flat_map(|round| round.deltas.values());
        let changes = deltas.filter_map(|delta| delta.change.as_ref());
        let told: usize = changes.map(|change| change.removes.len()).sum();
        queued.filter(is_open).count() + told
    }

    /// The others know that a peer is gone.
    pub(super) fn gone(&mut self, peer: usize) {
        let Some(at) = self.ring.iter().position(|(_, other)| *other == peer) else {
            return;
        };
        self.ring.remove(at);
        self.owners.clear();
        self.introduce();
        let places = self.ring.len();
        let heir = self.ring[at % places].1;
        self.take_over(heir);
        for back in 1..=REPLICAS {
            let before = self.ring[(at + places - back) % places].1;
            self.announce(before);
        }
        for other in self.living().collect::<Vec<_>>() {
            self.send_again(other, peer);
        }
    }

    /// A peer owns more of the ring: it takes over the latest replicas of what is new.
    fn take_over(&mut self, heir: usize) {
        if self.agents[heir].is_liar {
            return;
        }
        let mut found: BTreeMap<Domain, Replica> = BTreeMap::new();
        let sources = std::iter::once(heir).chain(self.successors(heir));
        for source in sources.collect::<Vec<_>>() {
            for (domain, replica) in &self.agents[source].replicas {
                let best = found.entry(domain.clone()).or_default();
                if replica.versions.contain(&best.versions) {
                    best.clone_from(replica);
                }
            }
        }
        let (now, me) = (self.now, self.ids[heir]);
        for (domain, replica) in found {
            if self.owner(&domain) != heir || self.agents[heir].domains.contains_key(&domain) {
                continue;
            }
            let seen = replica.versions.latest();
            let errands = replica.errands.clone();
            let agent = &mut self.agents[heir];
            agent.ledger.begin_tenure(me, seen, now);
            agent.take_over(&domain, replica, now);
            for (slot, links) in errands {
                let record = self.agents[heir].outbox.begin();
                let page = PageId::new(domain.clone(), slot);
                self.agents[heir].pages.send_on_errand(page, record);
                let mine = self.spread(heir, record, links);
                self.admit(heir, mine);
            }
        }
        self.tell_soon(heir);
        self.look(heir);
    }

    /// A peer has other replicas: they fetch its domains.
    fn announce(&mut self, peer: usize) {
        let agent = &mut self.agents[peer];
        for domain in agent.domains.keys() {
            agent.ledger.note_merged(domain);
        }
        self.tell_soon(peer);
    }

    /// Links that a peer has for one that is gone go to their new owners.
    fn send_again(&mut self, peer: usize, gone: usize) {
        for (record, link) in self.agents[peer].outbox.take_from(gone) {
            let owner = self.owner(&link.url.domain());
            if self.agents[peer].outbox.turn(owner, (record, link)) {
                self.send_soon(peer, owner);
            }
        }
    }
}
