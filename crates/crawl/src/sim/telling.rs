//! The way of a simulated page from its answer to its replicas: the stages of the real `Pages`, and
//! the rounds of the real `Ledger`, with the delays of disks and messages.

use super::{
    agent::Agent,
    replica::{Delta, Fit, Replica},
    world::{News, World},
};
use crate::{DomainChange, PageLinks, Sent};
use apoidea_model::{CrawlId, Domain, Link, PageId, Time};
use std::{collections::BTreeMap, rc::Rc, time::Duration};

/// Replicas of each domain besides its owner's.
pub(super) const REPLICAS: usize = 2;
/// Asking whether a body is known, and making its records.
pub(super) const PROCESS: Duration = Duration::from_millis(120);
/// Until a group of records is on the disk.
pub(super) const DISK: Duration = Duration::from_millis(100);
/// Changes collect for so long before a round.
const COLLECT: Duration = Duration::from_millis(50);
/// A round that no replica has acknowledged after this reached none.
const PATIENCE: Duration = Duration::from_secs(5);
/// Delivered pages are told after this at the latest: what the ledger allows.
const DELIVERED: Duration = Duration::from_secs(10);
/// Memory that records take.
const RECORD_BYTES: u64 = 10_000;

/// Changes of one peer, as they travel.
pub(super) type Deltas = Rc<BTreeMap<Domain, Delta>>;

/// A round that the replicas have not acknowledged yet.
pub(super) struct OpenRound {
    number: u64,
    pub deltas: Deltas,
    /// Batches of other peers that it makes safe: sender and number.
    batches: Vec<(usize, u64)>,
}

/// A message between an owner and a replica.
#[derive(Clone)]
pub(super) struct Tell {
    pub owner: usize,
    pub replica: usize,
    pub number: u64,
    deltas: Deltas,
}

impl Agent {
    /// Notes a change to a domain.
    pub(super) fn change(&mut self, domain: &Domain, note: impl FnOnce(&mut DomainChange)) {
        let Some(known) = self.domains.get_mut(domain) else {
            return;
        };
        let versions = &mut known.replica.versions;
        let advance = |tenure| Ok::<_, std::convert::Infallible>(versions.advance(tenure));
        let Ok(change) = self.ledger.change(domain, advance);
        note(change);
    }

    /// The replicas learn that a page is done, and which of its links are on their way.
    fn tell_done(&mut self, page: &PageId, sent: Sent) {
        let record = sent.record.unwrap_or(0);
        let links = self.outbox.links(record);
        let PageId { domain, slot } = page;
        if let Some(known) = self.domains.get_mut(domain) {
            known.replica.queue.remove(slot);
            if !links.is_empty() {
                known.replica.errands.insert(*slot, links.clone());
            }
        }
        if !links.is_empty() {
            self.pages.send_on_errand(page.clone(), record);
        }
        self.change(domain, |change| {
            change.removes.push(*slot);
            let errand = (!links.is_empty()).then_some(PageLinks {
                slot: *slot,
                crawl: CrawlId::OPEN,
                links,
            });
            change.errands.extend(errand);
        });
    }

    /// The replicas drop the errands that are done.
    fn tell_delivered(&mut self, now: Time) {
        for (domain, slots) in self.ledger.take_delivered(now) {
            if let Some(known) = self.domains.get_mut(&domain) {
                let errands = &mut known.replica.errands;
                slots.iter().for_each(|slot| drop(errands.remove(slot)));
            }
            self.change(&domain, |change| change.delivered.extend(slots));
        }
    }

    /// The round that is due now, unless there is nothing to tell.
    fn begin_round(&mut self, now: Time) -> Option<Deltas> {
        let done = self.pages.tellable(self.ledger.held());
        done.iter()
            .for_each(|(page, sent)| self.tell_done(page, *sent));
        self.tell_delivered(now);
        let is_quiet = self.ledger.is_empty() && self.pages.is_all_told();
        if is_quiet && self.unacknowledged.is_empty() {
            return None;
        }
        let number = self.ledger.next_round();
        let round = self.ledger.begin_round()?;
        let announced = round.announced.into_iter().map(|domain| (domain, None));
        let changed = round.changed.into_iter();
        let changed = changed.map(|(domain, change)| (domain, Some(change)));
        let deltas = changed.chain(announced).map(|(domain, change)| {
            let known = self.domains.get(&domain);
            let versions = known.map(|known| known.replica.versions.clone());
            let versions = versions.unwrap_or_default();
            (domain, Delta { change, versions })
        });
        let deltas = Rc::new(deltas.collect());
        self.round = Some(OpenRound {
            number,
            deltas: Rc::clone(&deltas),
            batches: std::mem::take(&mut self.unacknowledged),
        });
        Some(deltas)
    }

    /// Ends the round of this number. Gives the batches that are safe now.
    fn end_round(&mut self, number: u64, reached: Reached) -> Vec<(usize, u64)> {
        let Some(round) = self.round.take_if(|round| round.number == number) else {
            return Vec::new();
        };
        let (unheld, safe): (Vec<Domain>, _) = match reached {
            Reached::Replica => (Vec::new(), round.batches),
            Reached::Nobody => {
                self.unacknowledged.extend(round.batches);
                (round.deltas.keys().cloned().collect(), Vec::new())
            }
        };
        self.ledger.end_round(&unheld, |_| true);
        safe
    }

    fn has_news(&self) -> bool {
        !self.ledger.is_empty() || !self.pages.is_all_told() || !self.unacknowledged.is_empty()
    }
}

/// Did the changes of a round arrive?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reached {
    Replica,
    Nobody,
}

impl World {
    /// A page is processed: its links enter their queues, and it goes to the disk.
    pub(super) fn processed(&mut self, peer: usize, page: PageId, links: Vec<Link>) {
        self.ask_about_content(&page);
        let agent = &mut self.agents[peer];
        agent.pages.processed(page, links, RECORD_BYTES);
        while let Some((page, links)) = self.agents[peer].pages.next_processed() {
            let (page, links) = (page.clone(), links.clone());
            let sent = self.deliver(peer, &page, links);
            self.agents[peer].pages.write_next(sent);
            self.soon(DISK, News::Durable(peer, page));
        }
    }

    fn deliver(&mut self, peer: usize, page: &PageId, links: Vec<Link>) -> Sent {
        let record = self.agents[peer].outbox.begin();
        let mine = self.spread(peer, record, links);
        let leads_on = mine
            .iter()
            .any(|link| link.url.host() != page.domain.as_str());
        let round = match leads_on {
            true => self.agents[peer].ledger.next_round(),
            false => 0,
        };
        self.admit(peer, mine);
        Sent {
            record: Some(record),
            round,
        }
    }

    /// A page is on the disk.
    pub(super) fn durable(&mut self, peer: usize, page: &PageId) {
        if self.agents[peer].pages.durable(page) {
            self.under_way.remove(page);
            self.tell_soon(peer);
        }
        self.look(peer);
    }

    /// Changes travel soon.
    pub(super) fn tell_soon(&mut self, peer: usize) {
        self.tell_by(peer, self.now + COLLECT);
    }

    fn tell_by(&mut self, peer: usize, at: Time) {
        if at < self.agents[peer].round_at {
            self.agents[peer].round_at = at;
            self.at(at, News::Round(peer));
        }
    }

    /// A peer begins a round, unless one is under way: its end begins the next.
    pub(super) fn round(&mut self, peer: usize) {
        let agent = &mut self.agents[peer];
        if agent.round_at != self.now {
            return;
        }
        agent.round_at = Time::NEVER;
        if !agent.ledger.is_round_over() {
            return;
        }
        let Some(deltas) = agent.begin_round(self.now) else {
            return;
        };
        let number = agent.round.as_ref().map_or(0, |round| round.number);
        let replicas = self.successors(peer);
        if replicas.is_empty() || deltas.is_empty() {
            return self.end_round(peer, number, Reached::Replica);
        }
        for replica in replicas {
            let tell = Tell {
                owner: peer,
                replica,
                number,
                deltas: Rc::clone(&deltas),
            };
            self.soon(self.way(), News::Told(tell));
        }
        self.soon(PATIENCE, News::RoundOver(peer, number));
    }

    pub(super) fn end_round(&mut self, peer: usize, number: u64, reached: Reached) {
        for (sender, batch) in self.agents[peer].end_round(number, reached) {
            self.soon(self.way(), News::Acknowledged(sender, batch));
        }
        if self.agents[peer].has_news() {
            self.tell_soon(peer);
        }
    }

    /// A replica is told what changed. It fetches the domains of which it lacks more.
    pub(super) fn told(&mut self, tell: Tell) {
        if self.agents[tell.replica].is_liar {
            return self.hold_nothing(&tell);
        }
        let replicas = &mut self.agents[tell.replica].replicas;
        let mut lacking = Vec::new();
        for (domain, delta) in tell.deltas.iter() {
            let replica = replicas.entry(domain.clone()).or_default();
            if replica.take(delta) == Fit::Lacking {
                lacking.push(domain.clone());
            }
        }
        let answer = match lacking.is_empty() {
            true => News::Held(tell.owner, tell.number),
            false => News::Wanted(tell, lacking),
        };
        self.soon(self.way(), answer);
    }

    /// A replica fetches domains as a whole.
    pub(super) fn wanted(&mut self, tell: Tell, domains: Vec<Domain>) {
        let owner = &self.agents[tell.owner];
        let whole = domains.into_iter().filter_map(|domain| {
            let replica = owner.domains.get(&domain)?.replica.clone();
            Some((domain, replica))
        });
        let whole = whole.collect();
        self.usage.wholes += 1;
        self.soon(self.way(), News::Whole(tell, whole));
    }

    pub(super) fn whole(&mut self, tell: &Tell, whole: Vec<(Domain, Replica)>) {
        let replicas = &mut self.agents[tell.replica].replicas;
        for (domain, theirs) in whole {
            let mine = replicas.entry(domain).or_default();
            if theirs.versions.contain(&mine.versions) {
                *mine = theirs;
            }
        }
        self.soon(self.way(), News::Held(tell.owner, tell.number));
    }

    /// A batch of links is with its owner and the replicas.
    pub(super) fn acknowledged(&mut self, peer: usize, batch: u64) {
        let agent = &mut self.agents[peer];
        for record in agent.outbox.acknowledged(batch) {
            if let Some(page) = agent.pages.delivered(record) {
                agent.ledger.note_delivered(page, self.now);
            }
        }
        self.tell_by(peer, self.now + DELIVERED);
    }

    /// Domains whose honest replicas are not what their owner has.
    pub(super) fn astray(&self) -> usize {
        let living = self.living();
        let astray = living.map(|peer| {
            let mut successors = self.successors(peer);
            successors.retain(|next| !self.agents[*next].is_liar);
            let domains = self.agents[peer].domains.iter();
            let is_astray = |domain: &Domain, owners: &Replica| {
                successors.iter().any(|next| {
                    let replica = self.agents[*next].replicas.get(domain);
                    !replica.is_some_and(|replica| replica.versions == owners.versions)
                })
            };
            domains
                .filter(|(domain, known)| is_astray(domain, &known.replica))
                .count()
        });
        astray.sum()
    }
}
