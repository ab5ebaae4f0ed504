//! Peers that do not hear each other, or did not until now.
//!
//! Two of them may take themselves for the owner of one arc. So a peer that is cut off waits, and
//! takes its place over again when it hears the others. The heir of a silent peer waits until that
//! one has noticed. A peer that was alone and meets others hears them before it goes on.

use super::takeover::{AGAIN, LAST_WORDS, PATIENCE, TICK, Takeover};
use crate::swarm::{REPLICATION_FACTOR, orders::SwarmOrder, tenancy::whole_ring};
use apoidea_crawl::politeness;
use apoidea_model::PeerId;
use apoidea_overlay::{Arc as RingArc, Membership, RequestError, Touch};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{self, Instant};

/// An owner that fell silent may have sent its last request just before it noticed. Its host is
/// left alone for the usual pause, whether this peer knows of it or not.
const LAST_REQUEST: Duration = politeness::HOST_DELAY;
/// Peers that were alone find each other one by one: each looks for others ever more rarely, and
/// has done so a few times by then. Any of them may have worked in the place of any other.
const MEETING: Duration = Duration::from_secs(30);

/// The peers that one that was alone has met lately.
pub(super) struct Company {
    until: Instant,
    /// The next ones that it has heard, or is hearing.
    known: BTreeSet<PeerId>,
}

impl Company {
    /// None of them is known yet.
    pub(super) fn begin() -> Self {
        Company {
            until: Instant::now() + MEETING,
            known: BTreeSet::new(),
        }
    }
}

impl Takeover {
    /// Hears peers that this one, which was alone, has just met: they may have worked in its place.
    /// Their replicas count as links, for a liar that came a moment ago looks the same. So pages
    /// that one of them has done are done again.
    pub(super) fn meet(&self, mut company: Company) -> Option<Company> {
        let next = self.tenancy.next_peers(REPLICATION_FACTOR).into_iter();
        let new: Vec<PeerId> = next.filter(|peer| company.known.insert(*peer)).collect();
        if let Some(arc) = self.tenancy.own_arc().filter(|_| !new.is_empty()) {
            let last = new.first().copied();
            self.tenancy.begin_hearing(arc);
            let takeover = self.clone();
            tokio::spawn(async move {
                takeover.orders.tell(SwarmOrder::Lose(arc)).await;
                takeover.take_over(arc, last).await;
            });
        }
        Some(company).filter(|company| Instant::now() < company.until)
    }

    /// Notices that this peer is cut off from the others, and that it is not any more. They may have
    /// taken its place meanwhile, so it takes everything over again before it goes on.
    pub(super) fn keep_in_touch(&self, was_cut_off: bool) -> bool {
        let is_cut_off = self.overlay.touch() == Touch::Few;
        match (was_cut_off, is_cut_off) {
            (false, true) => {
                tracing::warn!("most of the peers that this one knew are silent: it waits");
                self.tenancy.note_cut_off(true);
            }
            (true, false) => {
                tracing::info!("most of the peers that this one knew are there again");
                let takeover = self.clone();
                tokio::spawn(async move { takeover.come_back().await });
            }
            _ => {}
        }
        is_cut_off
    }

    /// While this peer was cut off, any of the next ones may have worked in its place: those
    /// between it and the one that did may have been cut off as well.
    pub(super) fn note_stand_ins(&self, arc: RingArc) {
        if self.tenancy.is_cut_off() {
            let next = self.tenancy.next_peers(REPLICATION_FACTOR).into_iter();
            next.for_each(|peer| self.tenancy.note_last_owner(arc, peer));
        }
    }

    /// Takes the own place over again. The peer that took it meanwhile may be the last to be heard.
    async fn come_back(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.overlay.touch() != Touch::All && Instant::now() < deadline {
            time::sleep(AGAIN).await;
        }
        if self.overlay.touch() == Touch::Few {
            return;
        }
        let arc = self.tenancy.own_arc().unwrap_or(whole_ring());
        self.tenancy.begin_taking_over(arc, None);
        self.note_stand_ins(arc);
        self.orders.tell(SwarmOrder::Lose(arc)).await;
        self.take_over(arc, None).await;
        // It may be cut off again.
        let is_cut_off = self.overlay.touch() == Touch::Few;
        self.tenancy.note_cut_off(is_cut_off);
    }

    /// An owner that fell silent may be at work and not hear this peer. It notices in time that it
    /// is cut off, and until then its place is not taken. If it answers again, the ring is about to
    /// give its place back to it.
    pub(super) async fn outwait(&self, arc: RingArc, owner: Option<PeerId>) {
        let Some(owner) = owner.filter(|owner| !self.overlay.grace(*owner).is_zero()) else {
            return;
        };
        while !self.overlay.grace(owner).is_zero() {
            time::sleep(self.overlay.grace(owner).min(TICK)).await;
        }
        time::sleep(LAST_REQUEST).await;
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline && self.overlay.membership(owner) != Membership::Member {
            match time::timeout(LAST_WORDS, self.census(owner, arc)).await {
                Ok(Ok(_) | Err(RequestError::Refused(_))) => time::sleep(AGAIN).await,
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }
}
