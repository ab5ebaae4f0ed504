//! The owner's ledger of what its replicas do not know yet, and of the rounds that tell them.
//!
//! Changes of a few hundred milliseconds travel together as one [`Step`] of the owner's tenure, so
//! that a replica knows whether it has missed one. At most one round is under way. A round in which
//! the changes of a domain reached no replica is followed by an announcement: the replicas then
//! fetch that domain as a whole.
//!
//! ```text
//!   change ─▶ noted ── begin_round ──▶ sent ── end_round ──▶ held by a replica
//!               ▲                        │
//!               └──── announced ◀────────┘ reached no replica
//! ```
//!
//! A value without clock or network: the crawler sends what [`Ledger::begin_round`] gives.

use crate::{PageNote, Step, Tenure};
use apoidea_model::{CrawlId, Domain, Link, PageId, PeerId, Pending, Slot, Time};
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, btree_map::Entry},
    time::Duration,
};

/// Delivered pages are told with the next change of their domain, and all of them when there are
/// so many, or when the first has waited for [`DELIVERED_WITHIN`].
const MAX_DELIVERED: usize = 4096;
/// The longest that a delivered page is kept back.
const DELIVERED_WITHIN: Duration = Duration::from_secs(10);

/// Changes that the replicas do not know yet.
#[derive(Debug, Default)]
pub struct Ledger {
    tenure: Tenure,
    changes: BTreeMap<Domain, DomainChange>,
    /// Domains that the replicas have to fetch as a whole.
    announced: BTreeSet<Domain>,
    delivered: Delivered,
    /// Rounds that began, rounds that ended, and the last one after which each change was with at
    /// least one replica.
    begun: u64,
    ended: u64,
    held: u64,
}

/// Changes to one domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainChange {
    /// The step that they make.
    pub step: Step,
    /// URLs that entered the queue, or wait there for another try.
    pub puts: Vec<Pending>,
    /// URLs that left it.
    pub removes: Vec<Slot>,
    /// Links of pages that left it, which are not with their owners yet.
    pub errands: Vec<PageLinks>,
    /// Pages whose links are with their owners now.
    pub delivered: Vec<Slot>,
    /// Visits of pages that left it.
    pub visits: Vec<PageNote>,
    /// Does the domain's state travel, too?
    pub extent: ChangeExtent,
}

/// The links of one page that left its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLinks {
    /// The place that the page had in the domain's queue.
    pub slot: Slot,
    /// The crawl of the page, and so of all its links.
    pub crawl: CrawlId,
    /// The links.
    pub links: Vec<Link>,
}

/// The extent of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeExtent {
    /// Only the queue: counters follow from it, and the clock of a new owner starts anew.
    Queue,
    /// Robots rules, rests or stops have changed, too.
    State,
}

/// The content of a round.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Changes, by domain.
    pub changed: BTreeMap<Domain, DomainChange>,
    /// Domains to be fetched as a whole.
    pub announced: Vec<Domain>,
}

/// Pages whose links are with their owners. The replicas drop their errands, in no hurry: an errand
/// that is carried out twice does no harm.
#[derive(Debug, Default)]
struct Delivered {
    slots: HashMap<Domain, Vec<Slot>>,
    count: usize,
    /// The time of the first of these.
    since: Option<Time>,
}

impl Ledger {
    /// An empty ledger under a tenure.
    pub fn new(tenure: Tenure) -> Self {
        Ledger {
            tenure,
            ..Ledger::default()
        }
    }

    /// The tenure under which changes are made.
    pub fn tenure(&self) -> Tenure {
        self.tenure
    }

    /// Begins a tenure that is later than all before, and than `seen`.
    pub fn begin_tenure(&mut self, me: PeerId, seen: Tenure, now: Time) -> Tenure {
        self.tenure = Tenure::begin(me, now, self.tenure.max(seen));
        self.tenure
    }

    /// Notes a change. Each is counted at once by `advance`: a replica may be fetched in the middle
    /// of a round, and must be seen to lack what changes afterwards.
    pub fn change<E>(
        &mut self,
        domain: &Domain,
        advance: impl FnOnce(Tenure) -> Result<Step, E>,
    ) -> Result<&mut DomainChange, E> {
        match self.changes.entry(domain.clone()) {
            Entry::Occupied(entry) => {
                let change = entry.into_mut();
                change.step.version = advance(change.step.tenure)?.version;
                Ok(change)
            }
            Entry::Vacant(entry) => Ok(entry.insert(DomainChange::new(advance(self.tenure)?))),
        }
    }

    /// A domain was merged with what others knew: the replicas fetch it as a whole.
    pub fn note_merged(&mut self, domain: &Domain) {
        self.changes.remove(domain);
        self.announced.insert(domain.clone());
    }

    /// The links of a page are with their owners.
    pub fn note_delivered(&mut self, page: PageId, now: Time) {
        let PageId { domain, slot } = page;
        self.delivered.slots.entry(domain).or_default().push(slot);
        self.delivered.count += 1;
        self.delivered.since.get_or_insert(now);
    }

    /// Must delivered pages be told, although nothing else changed?
    pub fn is_delivered_due(&self, now: Time) -> bool {
        let Delivered { count, since, .. } = &self.delivered;
        let is_late = |since: &Time| now.since(*since) >= DELIVERED_WITHIN;
        *count > MAX_DELIVERED || since.as_ref().is_some_and(is_late)
    }

    /// Takes out the delivered pages that go along with the changes, or all when they are due.
    pub fn take_delivered(&mut self, now: Time) -> Vec<(Domain, Vec<Slot>)> {
        let is_due = self.is_delivered_due(now);
        let (delivered, changes) = (&mut self.delivered, &self.changes);
        let taken: Vec<_> = delivered
            .slots
            .extract_if(|domain, _| is_due || changes.contains_key(domain))
            .collect();
        delivered.count -= taken.iter().map(|(_, slots)| slots.len()).sum::<usize>();
        delivered.since = delivered.since.filter(|_| delivered.count > 0);
        taken
    }

    /// Is there nothing to tell?
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.announced.is_empty()
    }

    /// Has this domain changed?
    pub fn has(&self, domain: &Domain) -> bool {
        self.changes.contains_key(domain)
    }

    /// Is no round under way?
    pub fn is_round_over(&self) -> bool {
        self.begun == self.ended
    }

    /// The round that tells what changes now.
    pub fn next_round(&self) -> u64 {
        self.begun + 1
    }

    /// Everything up to this round is with at least one replica.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Begins a round. `None` while the last one is under way.
    pub fn begin_round(&mut self) -> Option<Round> {
        if !self.is_round_over() {
            return None;
        }
        self.begun += 1;
        let changed = std::mem::take(&mut self.changes);
        let announced = std::mem::take(&mut self.announced);
        let announced = announced
            .into_iter()
            .filter(|domain| !changed.contains_key(domain))
            .collect();
        Some(Round { changed, announced })
    }

    /// The round is over. The changes of these domains reached no replica: those still known here
    /// are announced.
    pub fn end_round(&mut self, unheld: &[Domain], is_known: impl Fn(&Domain) -> bool) {
        self.ended = self.begun;
        if unheld.is_empty() {
            self.held = self.begun;
        }
        let known = unheld.iter().filter(|domain| is_known(domain));
        self.announced.extend(known.cloned());
    }
}

impl DomainChange {
    fn new(step: Step) -> Self {
        DomainChange {
            step,
            puts: Vec::new(),
            removes: Vec::new(),
            errands: Vec::new(),
            delivered: Vec::new(),
            visits: Vec::new(),
            extent: ChangeExtent::Queue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Versions;
    use apoidea_model::Key;
    use proptest::prelude::*;
    use std::convert::Infallible;

    const NOW: Time = Time::from_millis(1_000_000);

    fn domain(number: u8) -> Domain {
        format!("host{number}.test").parse().unwrap()
    }

    fn page(number: u8, sequence: u64) -> PageId {
        PageId {
            domain: domain(number),
            slot: slot(sequence),
        }
    }

    fn slot(sequence: u64) -> Slot {
        Slot { rank: 0, sequence }
    }

    fn ledger() -> Ledger {
        let mut ledger = Ledger::default();
        let me = PeerId::at(Key::hash("me"));
        ledger.begin_tenure(me, Tenure::default(), NOW);
        ledger
    }

    /// Notes that a URL left the queue of a domain.
    fn remove(ledger: &mut Ledger, versions: &mut Versions, number: u8, sequence: u64) -> Step {
        let advance = |tenure| Ok::<_, Infallible>(versions.advance(tenure));
        let change = ledger.change(&domain(number), advance).unwrap();
        change.removes.push(slot(sequence));
        change.step
    }

    #[test]
    fn a_replica_fetched_between_two_changes_is_seen_to_lack_the_second() {
        let (mut ledger, mut versions) = (ledger(), Versions::default());
        let first = remove(&mut ledger, &mut versions, 1, 1);
        let fetched = versions.clone();
        let both = remove(&mut ledger, &mut versions, 1, 2);
        assert_eq!(
            (first.base, first.version, both.base, both.version),
            (0, 1, 0, 2)
        );
        assert!(!fetched.contain(&versions) && fetched.after(both) == versions);
    }

    #[test]
    fn one_round_is_under_way_at_a_time_and_takes_everything() {
        let (mut ledger, mut versions) = (ledger(), Versions::default());
        remove(&mut ledger, &mut versions, 1, 1);
        assert_eq!((ledger.next_round(), ledger.held()), (1, 0));
        let round = ledger.begin_round().unwrap();
        assert_eq!(round.changed[&domain(1)].removes, [slot(1)]);
        assert!(ledger.is_empty() && !ledger.is_round_over());
        remove(&mut ledger, &mut versions, 1, 2);
        assert_eq!(ledger.begin_round(), None);
        ledger.end_round(&[], |_| true);
        assert_eq!(ledger.held(), 1);
        let next = ledger.begin_round().unwrap();
        assert_eq!(next.changed[&domain(1)].removes, [slot(2)]);
    }

    #[test]
    fn changes_that_reached_nobody_are_announced_and_not_held() {
        let (mut ledger, mut versions) = (ledger(), Versions::default());
        for number in 1..=3 {
            remove(&mut ledger, &mut versions, number, 1);
        }
        ledger.begin_round().unwrap();
        let is_known = |known: &Domain| *known != domain(3);
        ledger.end_round(&[domain(2), domain(3)], is_known);
        assert_eq!(ledger.held(), 0);
        remove(&mut ledger, &mut versions, 1, 2);
        let next = ledger.begin_round().unwrap();
        assert_eq!(next.announced, [domain(2)], "a forgotten domain is not");
        ledger.end_round(&[], is_known);
        assert_eq!(ledger.held(), 2);
    }

    #[test]
    fn a_merged_domain_is_announced_instead_of_changed() {
        let (mut ledger, mut versions) = (ledger(), Versions::default());
        remove(&mut ledger, &mut versions, 1, 1);
        remove(&mut ledger, &mut versions, 2, 1);
        ledger.note_merged(&domain(1));
        assert!(!ledger.has(&domain(1)) && ledger.has(&domain(2)));
        remove(&mut ledger, &mut versions, 2, 2);
        ledger.note_merged(&domain(2));
        remove(&mut ledger, &mut versions, 2, 3);
        let round = ledger.begin_round().unwrap();
        assert_eq!(round.announced, [domain(1)]);
        assert_eq!(round.changed[&domain(2)].removes, [slot(3)]);
    }

    #[test]
    fn delivered_pages_go_along_with_changes_or_when_they_are_due() {
        let (mut ledger, mut versions) = (ledger(), Versions::default());
        ledger.note_delivered(page(1, 1), NOW);
        ledger.note_delivered(page(2, 1), NOW + Duration::from_secs(5));
        assert_eq!(ledger.take_delivered(NOW), []);
        remove(&mut ledger, &mut versions, 2, 2);
        assert_eq!(ledger.take_delivered(NOW), [(domain(2), vec![slot(1)])]);
        let just_before = NOW + DELIVERED_WITHIN - Duration::from_millis(1);
        assert!(!ledger.is_delivered_due(just_before));
        assert!(ledger.is_delivered_due(NOW + DELIVERED_WITHIN));
        let due = ledger.take_delivered(NOW + DELIVERED_WITHIN);
        assert_eq!(due, [(domain(1), vec![slot(1)])]);
        assert!(!ledger.is_delivered_due(NOW + 2 * DELIVERED_WITHIN));
    }

    #[test]
    fn many_delivered_pages_are_told_at_once() {
        let mut ledger = ledger();
        for sequence in 0..=MAX_DELIVERED as u64 {
            assert!(!ledger.is_delivered_due(NOW));
            ledger.note_delivered(page(1, sequence), NOW);
        }
        assert_eq!(ledger.take_delivered(NOW)[0].1.len(), MAX_DELIVERED + 1);
    }

    #[test]
    fn a_tenure_is_later_than_every_tenure_seen() {
        let mut ledger = ledger();
        let (me, other) = (PeerId::at(Key::hash("me")), PeerId::at(Key::hash("other")));
        let ahead = Tenure::begin(other, NOW + Duration::from_secs(60), Tenure::default());
        let first = ledger.tenure();
        let next = ledger.begin_tenure(me, ahead, NOW);
        assert!(next > ahead && next > first);
        assert!(ledger.begin_tenure(me, Tenure::default(), NOW) > next);
    }

    #[derive(Debug, Clone)]
    enum Event {
        Change(u8),
        Merge(u8),
        Begin,
        /// Ends the round; the changes of these domains are lost on their way.
        End(Vec<u8>),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            4 => (0..3u8).prop_map(Event::Change),
            1 => (0..3u8).prop_map(Event::Merge),
            2 => Just(Event::Begin),
            2 => prop::collection::vec(0..3u8, 0..3).prop_map(Event::End),
        ]
    }

    /// A replica that takes the step it lacks, and fetches everything else as a whole.
    fn tell(round: &Round, lost: &[u8], owner: &[Versions; 3], replica: &mut [Versions; 3]) {
        for number in (0..3u8).filter(|number| !lost.contains(number)) {
            let at = usize::from(number);
            if let Some(change) = round.changed.get(&domain(number)) {
                let step = change.step;
                let lacks = (step.base..step.version).contains(&replica[at].of(step.tenure));
                let next = if lacks {
                    replica[at].after(step)
                } else {
                    owner[at].clone()
                };
                // A step on top of a gap is not all that the replica lacks.
                replica[at] = if next.contain(&replica[at])
                    && lacks
                    && step.base == replica[at].of(step.tenure)
                {
                    next
                } else {
                    owner[at].clone()
                };
            }
            if round.announced.contains(&domain(number)) {
                replica[at] = owner[at].clone();
            }
        }
    }

    proptest! {
        /// Whatever is lost on its way, in the end the replica has every change.
        #[test]
        fn no_change_is_lost(events in prop::collection::vec(event(), 0..80)) {
            let mut ledger = ledger();
            let (mut owner, mut replica): ([Versions; 3], [Versions; 3]) = Default::default();
            let mut round: Option<Round> = None;
            let all = [vec![Event::End(vec![]), Event::Begin, Event::End(vec![])]].concat();
            for event in events.into_iter().chain(all) {
                match event {
                    Event::Change(number) => {
                        remove(&mut ledger, &mut owner[usize::from(number)], number, 1);
                    }
                    Event::Merge(number) => {
                        let tenure = ledger.tenure();
                        owner[usize::from(number)].advance(tenure);
                        ledger.note_merged(&domain(number));
                    }
                    Event::Begin => {
                        let begun = ledger.begin_round();
                        prop_assert_eq!(begun.is_none(), round.is_some());
                        round = begun.or(round);
                    }
                    Event::End(lost) => {
                        let Some(round) = round.take() else { continue };
                        tell(&round, &lost, &owner, &mut replica);
                        let is_sent = |number: &u8| {
                            round.changed.contains_key(&domain(*number))
                                || round.announced.contains(&domain(*number))
                        };
                        let unheld: Vec<Domain> =
                            lost.iter().filter(|n| is_sent(n)).map(|n| domain(*n)).collect();
                        ledger.end_round(&unheld, |_| true);
                        prop_assert_eq!(ledger.held() + 1 == ledger.next_round(), unheld.is_empty());
                    }
                }
            }
            prop_assert!(ledger.is_empty());
            prop_assert_eq!(owner, replica);
        }
    }
}
