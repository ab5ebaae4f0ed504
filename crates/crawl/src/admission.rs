//! Which links of a batch enter their domain's queue, and which are dropped and why.
//!
//! PeerCrawl's URL preprocessor as one pure decision: classifier, ranker and overflow controller, throttle, duplicate
//! detector. Its predecessor died of URLs that came in faster than they went out, so the queue is bounded and the
//! least important URLs go. Writing the queue, and reading its worst entries, is left to the caller.

use crate::{Counters, Order, SeenFilter};
use apoidea_model::{Domain, Link, PageUrl, Slot, UrlHash};

/// How many URLs may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// URLs of one domain that wait at most.
    pub queued_per_domain: u64,
    /// URLs that wait at most in all.
    pub queued_total: u64,
    /// URLs of one domain that are ever admitted.
    pub admitted_per_domain: u64,
    /// Links from a seed.
    pub depth: u16,
}

impl Default for Quotas {
    fn default() -> Self {
        Quotas {
            // Three weeks of work for one host at one page in 20 s.
            queued_per_domain: 100_000,
            // About 2 GiB of disk.
            queued_total: 20_000_000,
            // What the seen-filter keeps its promise for.
            admitted_per_domain: SeenFilter::CAPACITY_MAX,
            // Good-citizen contract; nothing that people link to is further away.
            depth: 20,
        }
    }
}

/// What the decision depends on besides the links.
pub struct Admission<'a> {
    /// The domain whose queue it is.
    pub domain: &'a Domain,
    /// The limits.
    pub quotas: &'a Quotas,
    /// Ranks the links.
    pub order: &'a dyn Order,
    /// What the domain did so far; `queued` and `admitted` count.
    pub counters: Counters,
    /// URLs waiting in all domains.
    pub queued_total: u64,
    /// The last entries of the domain's queue, the very last first; only looked at when a quota is reached. As many as
    /// the batch has links are enough.
    pub worst: &'a [Slot],
    /// Scope, traps, refusals: why a URL is not wanted, if it is not.
    pub check: &'a dyn Fn(&PageUrl) -> Result<(), DropReason>,
}

/// Why a link was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// It belongs to another domain.
    OtherDomain,
    /// Outside what this crawl is for.
    OutOfScope,
    /// The volunteer refuses the domain.
    Refused,
    /// It looks like a trap.
    Trap,
    /// Too many links from a seed.
    TooDeep,
    /// It was seen.
    Seen,
    /// The domain had its share of URLs.
    Exhausted,
    /// The queue is full of more important ones.
    Overflow,
}

/// A link that enters the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// The link.
    pub link: Link,
    /// Its place: the caller adds the sequence.
    pub rank: u16,
    /// Its fingerprint, for the log.
    pub hash: UrlHash,
}

/// What becomes of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// These enter the queue, and their fingerprints the log.
    pub admitted: Vec<Admitted>,
    /// These leave the queue to make room.
    pub evicted: Vec<Slot>,
    /// These do not enter.
    pub dropped: Vec<(Link, DropReason)>,
}

impl Admission<'_> {
    /// Decides about the links of one batch and marks the admitted ones as seen. What is dropped for want of room is
    /// not marked: it may come again when there is some.
    pub fn decide(mut self, links: Vec<Link>, seen: &mut SeenFilter) -> Decision {
        let mut decision = Decision::default();
        for link in links {
            let (rank, hash) = (self.order.rank(&link), link.url.hash());
            match self.consider(&link, rank, hash, seen) {
                Ok(evicted) => {
                    seen.insert(hash);
                    decision.evicted.extend(evicted);
                    decision.admitted.push(Admitted { link, rank, hash });
                }
                Err(reason) => decision.dropped.push((link, reason)),
            }
        }
        decision
    }

    fn consider(
        &mut self,
        link: &Link,
        rank: u16,
        hash: UrlHash,
        seen: &SeenFilter,
    ) -> Result<Option<Slot>, DropReason> {
        self.classify(link)?;
        if seen.contains(hash) {
            return Err(DropReason::Seen);
        }
        if self.counters.admitted >= self.quotas.admitted_per_domain {
            return Err(DropReason::Exhausted);
        }
        let evicted = self.make_room(rank)?;
        self.counters.admitted += 1;
        Ok(evicted)
    }

    fn classify(&self, link: &Link) -> Result<(), DropReason> {
        if link.url.host() != self.domain.as_str() {
            return Err(DropReason::OtherDomain);
        }
        if link.depth > self.quotas.depth {
            return Err(DropReason::TooDeep);
        }
        (self.check)(&link.url)
    }

    /// Takes a free place, or that of a less important URL of the same domain.
    fn make_room(&mut self, rank: u16) -> Result<Option<Slot>, DropReason> {
        let has_room = self.counters.queued < self.quotas.queued_per_domain
            && self.queued_total < self.quotas.queued_total;
        if has_room {
            self.counters.queued += 1;
            self.queued_total += 1;
            return Ok(None);
        }
        let (worst, rest) = self.worst.split_first().ok_or(DropReason::Overflow)?;
        if worst.rank <= rank {
            return Err(DropReason::Overflow);
        }
        self.worst = rest;
        Ok(Some(*worst))
    }
}
