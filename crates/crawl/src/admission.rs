//! The decision which links of a batch enter their domain's queue, and which are dropped and why.
//!
//! PeerCrawl's URL preprocessor as one pure decision: classifier, ranker and overflow controller,
//! throttle, duplicate detector. Its predecessor died of URLs that came in faster than they went
//! out, so the queue is bounded and the least important URLs go. Writing the queue, and reading its
//! worst entries, is left to the caller.

use crate::{Counters, Order, SeenFilter, traps};
use apoidea_model::{Domain, Link, PageUrl, Slot, UnknownCrawl, UrlHash};
use serde::{Deserialize, Serialize};

/// Limits on the URLs that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// URLs of one domain that wait at most.
    pub queued_per_domain: u64,
    /// URLs that wait at most in all.
    pub queued_total: u64,
    /// URLs of one domain that are ever admitted.
    pub admitted_per_domain: u64,
    /// Of those, URLs that combine many query parameters.
    pub combined_per_domain: u64,
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
            // The first filters of a shop, or every list of an ordinary site; the rest is
            // combinations of combinations.
            combined_per_domain: 1000,
            // Good-citizen contract; nothing that people link to is further away.
            depth: 20,
        }
    }
}

/// The circumstances of a decision.
pub struct Admission<'a> {
    /// The domain whose queue it is.
    pub domain: &'a Domain,
    /// The limits.
    pub quotas: &'a Quotas,
    /// Ranks the links.
    pub order: &'a dyn Order,
    /// The domain's counters; `queued` and `admitted` matter.
    pub counters: Counters,
    /// URLs waiting in all domains.
    pub queued_total: u64,
    /// The last entries of the domain's queue, the very last first; only looked at when a quota is
    /// reached. As many as the batch has links are enough.
    pub worst: &'a [Slot],
    /// Drops a URL that is not wanted, by the crawl's [`crate::Scope`].
    pub check: &'a dyn Fn(&PageUrl) -> Result<(), DropReason>,
}

/// The reason why a link was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// It belongs to another domain.
    OtherDomain,
    /// It belongs to a crawl that this peer takes no part in.
    UnknownCrawl,
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
    /// Its host is new, and its site has too many hosts that never answered.
    CrowdedSite,
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

/// The decision about a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Decision {
    /// These enter the queue, and their fingerprints the log.
    pub admitted: Vec<Admitted>,
    /// These leave the queue to make room.
    pub evicted: Vec<Slot>,
    /// These do not enter.
    pub dropped: Vec<(Link, DropReason)>,
}

impl Decision {
    /// Links that did not enter because the queue was full.
    pub fn overflowed(&self) -> u64 {
        self.dropped
            .iter()
            .filter(|(_, reason)| *reason == DropReason::Overflow)
            .count() as u64
    }
}

impl Admission<'_> {
    /// Decides about the links of one batch and marks the admitted ones as seen. What is dropped
    /// for want of room is not marked: it may come again when there is some.
    pub fn decide(mut self, links: Vec<Link>, seen: &mut SeenFilter) -> Decision {
        let mut decision = Decision::default();
        for link in links {
            match self.consider(&link, seen) {
                Ok((rank, hash, evicted)) => {
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
        seen: &SeenFilter,
    ) -> Result<(u16, UrlHash, Option<Slot>), DropReason> {
        self.classify(link)?;
        let hash = link.url.hash();
        if seen.contains(hash) {
            return Err(DropReason::Seen);
        }
        if self.counters.admitted >= self.quotas.admitted_per_domain {
            return Err(DropReason::Exhausted);
        }
        let combined = u64::from(traps::is_combination(&link.url));
        if self.counters.combined + combined > self.quotas.combined_per_domain {
            return Err(DropReason::Trap);
        }
        let rank = self.order.rank(link);
        let evicted = self.make_room(rank)?;
        self.counters.admitted += 1;
        self.counters.combined += combined;
        Ok((rank, hash, evicted))
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

impl From<UnknownCrawl> for DropReason {
    fn from(_: UnknownCrawl) -> Self {
        DropReason::UnknownCrawl
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BreadthFirst, OneIn};
    use apoidea_model::Target;

    fn link(url: &str, depth: u16) -> Link {
        Link {
            url: url.parse().unwrap(),
            depth,
            target: Target::Page,
        }
    }

    fn slots(ranks: &[u16]) -> Vec<Slot> {
        ranks
            .iter()
            .zip(0..)
            .map(|(&rank, sequence)| Slot { rank, sequence })
            .collect()
    }

    struct Case {
        quotas: Quotas,
        counters: Counters,
        queued_total: u64,
        worst: Vec<Slot>,
        seen: SeenFilter,
    }

    impl Case {
        fn new() -> Self {
            let quotas = Quotas {
                queued_per_domain: 10,
                queued_total: 100,
                admitted_per_domain: 50,
                combined_per_domain: 2,
                depth: 20,
            };
            let seen = SeenFilter::new(OneIn::default());
            Case {
                quotas,
                counters: Counters::default(),
                queued_total: 0,
                worst: Vec::new(),
                seen,
            }
        }

        fn decide(&mut self, links: Vec<Link>) -> Decision {
            let admission = Admission {
                domain: &"a.example".parse().unwrap(),
                quotas: &self.quotas,
                order: &BreadthFirst,
                counters: self.counters,
                queued_total: self.queued_total,
                worst: &self.worst,
                check: &|url| {
                    if url.path() == "/trap" {
                        Err(DropReason::Trap)
                    } else {
                        Ok(())
                    }
                },
            };
            admission.decide(links, &mut self.seen)
        }

        /// Ranks of those admitted and reasons of those dropped, in order.
        fn summary(&mut self, links: Vec<Link>) -> (Vec<u16>, Vec<DropReason>) {
            let decision = self.decide(links);
            let reasons = decision.dropped.iter().map(|(_, reason)| *reason).collect();
            (
                decision
                    .admitted
                    .iter()
                    .map(|admitted| admitted.rank)
                    .collect(),
                reasons,
            )
        }
    }

    #[test]
    fn each_link_is_admitted_once_and_the_others_have_a_reason() {
        let links = vec![
            link("http://a.example/1", 1),
            link("http://b.example/1", 1),
            link("http://a.example/1", 2),
            link("http://a.example/trap", 1),
            link("http://a.example/far", 21),
            link("http://a.example/2", 20),
        ];
        use DropReason::{OtherDomain, Seen, TooDeep, Trap};
        assert_eq!(
            Case::new().summary(links),
            (vec![1, 20], vec![OtherDomain, Seen, Trap, TooDeep])
        );
    }

    #[test]
    fn a_full_queue_keeps_the_most_important() {
        let mut case = Case::new();
        case.counters.queued = 9;
        case.worst = slots(&[7, 5, 2]);
        let links = [3, 6, 6, 4, 4].iter().zip(0..);
        let links: Vec<_> = links
            .map(|(&depth, i)| link(&format!("http://a.example/{i}"), depth))
            .collect();
        let decision = case.decide(links.clone());
        let ranks: Vec<u16> = decision
            .admitted
            .iter()
            .map(|admitted| admitted.rank)
            .collect();
        assert_eq!(
            ranks,
            [3, 6, 4],
            "one free place, then instead of 7 and of 5"
        );
        assert_eq!(decision.evicted, case.worst[..2]);
        assert_eq!(decision.overflowed(), 2);
    }

    #[test]
    fn what_overflowed_may_come_again() {
        let mut case = Case::new();
        case.queued_total = 100;
        let links = vec![link("http://a.example/", 0)];
        assert_eq!(
            case.summary(links.clone()),
            (vec![], vec![DropReason::Overflow])
        );
        case.queued_total = 99;
        assert_eq!(case.summary(links), (vec![0], vec![]));
    }

    #[test]
    fn of_endless_combinations_only_a_few_are_followed() {
        let filters = |n: u32| {
            link(
                &format!("http://a.example/find?colour={n}&size=1&brand=2&sort=3"),
                1,
            )
        };
        let mut case = Case::new();
        case.counters.combined = 1;
        let links = vec![
            filters(1),
            filters(2),
            link("http://a.example/find?colour=1&size=2&page=3", 1),
        ];
        assert_eq!(case.summary(links), (vec![1, 1], vec![DropReason::Trap]));
    }

    #[test]
    fn a_domain_has_its_share_and_no_more() {
        let mut case = Case::new();
        case.counters.admitted = 49;
        let links = vec![link("http://a.example/1", 0), link("http://a.example/2", 0)];
        assert_eq!(case.summary(links), (vec![0], vec![DropReason::Exhausted]));
    }
}
