//! The owner's side of a link batch: scope, traps, refusals, seen-filter, overflow; then durable in
//! the domain's queue.
//!
//! The decision itself is [`Admission`]'s; this fetches what it needs (state, filter, queue) from
//! memory or disk and turns its answer into changes of the store and news for the frontier.

use crate::{
    config::CrawlConfig, reach::Contactable, recent_links::RecentLinks, seen_cache::SeenCache,
    status::Totals, swarm::change::Changes,
};
use apoidea_crawl::{
    Admission, BreadthFirst, Counters, Decision, DomainState, DropReason, Event, Frontier, Quotas,
    Reductions, Refusals, Trap, Versions,
};
use apoidea_model::{Domain, Link, LinkBatch, PageUrl, PeerId, Pending, Slot, Time};
use apoidea_store::{Commit, CommitError, ReadError, Store};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Sequence numbers begin at the microsecond of the start, so that URLs keep their order when a
/// queue moves to another peer, and after what the last run may have used: a block of this size.
const SEQUENCE_BLOCK: u64 = 1 << 32;
const SEQUENCE_VALUE: &str = "sequence";
/// The lowest bits tell whose number it is: a queue may hold numbers of several peers.
const TAG_BITS: u32 = 12;

/// Admits links to the queues of their domains.
pub(crate) struct Admitter {
    store: Store,
    seen: SeenCache,
    quotas: Quotas,
    scope: Scope,
    next_sequence: u64,
    tag: u64,
    /// URLs waiting in all domains but those that are stopped.
    pub queued: u64,
}

/// Reading or writing the store failed; the batch can be admitted again as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdmitError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] CommitError),
}

/// What admission works on besides the store.
pub(crate) struct Desk<'a> {
    pub frontier: &'a mut Frontier,
    /// Domains that leave memory but may not be woken yet: when they are to be woken.
    pub parking: &'a mut HashMap<Domain, Time>,
    pub totals: &'a mut Totals,
    pub recent: &'a RecentLinks,
    /// Domains in memory whose state changed.
    pub touched: &'a mut HashSet<Domain>,
    /// What the holders of copies do not know yet.
    pub changes: &'a mut Changes,
    /// Domains that are this peer's.
    pub owned: &'a mut u64,
}

impl Admitter {
    pub(crate) fn new(
        store: Store,
        config: &CrawlConfig,
        refusals: Refusals,
        me: PeerId,
        now: Time,
    ) -> Result<Self, AdmitError> {
        let stored = store.value(SEQUENCE_VALUE)?;
        let used = stored
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_be_bytes);
        let first = used.max(now.as_millis() * 1000);
        let mut commit = Commit::new();
        commit.set_value(SEQUENCE_VALUE, &(first + SEQUENCE_BLOCK).to_be_bytes());
        store.commit(&commit)?;
        let quotas = Quotas {
            queued_per_domain: config.queue_per_domain.value(),
            queued_total: config.queue_total.value(),
            depth: u16::try_from(config.depth.value()).unwrap_or(u16::MAX),
            ..Quotas::default()
        };
        Ok(Admitter {
            seen: SeenCache::new(store.clone(), config),
            store,
            quotas,
            scope: Scope {
                contactable: Contactable::new(config),
                refusals,
                by_hand: BTreeSet::new(),
                company: Company::None,
                only: config.only.clone(),
            },
            next_sequence: first,
            tag: u64::from(u16::from_be_bytes([
                me.key().as_bytes()[0],
                me.key().as_bytes()[1],
            ])) >> (16 - TAG_BITS),
            queued: 0,
        })
    }

    /// Why a URL can never be admitted, for whoever asks for it by hand.
    pub(crate) fn check(&self, url: &PageUrl, now: Time) -> Result<(), String> {
        self.scope.explain(url, now)
    }

    /// Could anybody want this link?
    pub(crate) fn may_be_wanted(&self, url: &PageUrl, now: Time) -> bool {
        self.scope.check(url, now).is_ok()
    }

    /// Does the volunteer refuse this domain, or one that it is part of?
    pub(crate) fn is_refused_by_hand(&self, domain: &Domain) -> bool {
        self.scope.is_refused_by_hand(domain.as_str())
    }

    /// Whether links to domains refused by hand are admitted all the same, for neighbours to fetch.
    pub(crate) fn set_company(&mut self, company: Company) {
        self.scope.company = company;
    }

    /// The domains refused by hand.
    pub(crate) fn refused_by_hand(&mut self) -> &mut BTreeSet<Domain> {
        &mut self.scope.by_hand
    }

    /// Admits a batch. Its URLs are visible in the store afterwards, and durable after its next
    /// durable commit.
    pub(crate) fn admit(
        &mut self,
        batch: LinkBatch,
        desk: &mut Desk<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let mut by_domain: BTreeMap<Domain, Vec<Link>> = BTreeMap::new();
        for link in batch.links {
            // Before anything is looked up: most links of many pages lead where this peer does not
            // go.
            if let Err(reason) = self.scope.check(&link.url, now) {
                note_dropped(&link, reason, desk);
                continue;
            }
            match by_domain.get_mut(link.url.host()) {
                Some(links) => links.push(link),
                None => _ = by_domain.insert(link.url.domain(), vec![link]),
            }
        }
        for (domain, links) in by_domain {
            self.admit_in_portions(&domain, links, desk, now)?;
        }
        Ok(())
    }

    /// Changes how much memory the seen-filters may take.
    pub(crate) fn set_seen_budget(&mut self, bytes: usize) {
        self.seen.set_budget(bytes);
    }

    /// No more at a time than the seen-filter has room for; beyond that it would take new URLs for
    /// seen.
    fn admit_in_portions(
        &mut self,
        domain: &Domain,
        mut links: Vec<Link>,
        desk: &mut Desk<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        while !links.is_empty() {
            let (state, counters, reductions) = match desk.frontier.state(domain) {
                Some(state) => (None, state.counters, state.reductions.clone()),
                None => {
                    let state = self.load_state(domain)?;
                    let (counters, reductions) = (state.counters, state.reductions.clone());
                    (Some(state), counters, reductions)
                }
            };
            let room = self
                .seen
                .filter(domain, counters.admitted, &reductions)?
                .room()
                .max(1);
            let rest =
                links.split_off(links.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            let decision = self.decide(domain, links, counters, &reductions)?;
            self.carry_out(domain, decision, state, desk, now)?;
            links = rest;
        }
        Ok(())
    }

    /// `state` is that of a domain which is not in memory.
    fn carry_out(
        &mut self,
        domain: &Domain,
        decision: Decision,
        state: Option<DomainState>,
        desk: &mut Desk<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        decision
            .dropped
            .iter()
            .for_each(|(link, reason)| note_dropped(link, *reason, desk));
        if decision.admitted.is_empty() {
            return Ok(());
        }
        let is_stopped = state
            .as_ref()
            .is_some_and(|state| state.stopped().is_some());
        let entering = decision.admitted.len() as u64;
        let leaving = decision.evicted.len() as u64;
        let entered = self.enqueue(domain, decision, state, desk, now);
        if entered.is_err() {
            self.seen.forget(domain);
            return entered;
        }
        desk.totals.admitted += entering;
        if !is_stopped {
            self.queued = (self.queued + entering).saturating_sub(leaving);
        }
        Ok(self.seen.settle(domain)?)
    }

    fn decide(
        &mut self,
        domain: &Domain,
        links: Vec<Link>,
        counters: Counters,
        reductions: &Reductions,
    ) -> Result<Decision, AdmitError> {
        let is_full = counters.queued + links.len() as u64 > self.quotas.queued_per_domain
            || self.queued + links.len() as u64 > self.quotas.queued_total;
        let worst: Vec<Slot> = if is_full {
            self.store
                .worst(domain)?
                .map(|last| last.slot)
                .into_iter()
                .collect()
        } else {
            Vec::new()
        };
        let admission = Admission {
            domain,
            quotas: &self.quotas,
            order: &BreadthFirst,
            counters,
            queued_total: self.queued,
            worst: &worst,
            // Checked by `admit`.
            check: &|_| Ok(()),
        };
        let filter = self.seen.filter(domain, counters.admitted, reductions)?;
        Ok(admission.decide(links, filter))
    }

    fn enqueue(
        &mut self,
        domain: &Domain,
        decision: Decision,
        state: Option<DomainState>,
        desk: &mut Desk<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let hashes: Vec<_> = decision
            .admitted
            .iter()
            .map(|admitted| admitted.hash)
            .collect();
        let overflowed = decision.overflowed();
        let mut commit = Commit::new();
        commit.append_seen(domain, &hashes);
        decision
            .evicted
            .iter()
            .for_each(|&slot| commit.remove_pending(domain, slot));
        let urls: Vec<Pending> = decision
            .admitted
            .into_iter()
            .map(|admitted| self.place(admitted))
            .collect();
        urls.iter()
            .for_each(|pending| commit.put_pending(domain, pending));
        let wake = match state {
            None => None,
            Some(mut state) => {
                *desk.owned += u64::from(state.versions == Versions::default());
                let admitted = urls.iter().map(|pending| &pending.url);
                state.admitted(admitted, decision.evicted.len() as u64, overflowed);
                let advance = |tenure| Ok::<_, AdmitError>(state.versions.advance(tenure));
                let change = desk.changes.of(domain, advance)?;
                change.puts.extend(urls.iter().cloned());
                change.removes.extend(&decision.evicted);
                commit.put_domain(domain, encode_state(&state));
                self.park(domain, state.ready_at(), &mut commit, desk.parking)
            }
        };
        self.store.apply(&commit)?;
        urls.iter()
            .for_each(|pending| desk.recent.insert(&pending.url));
        match wake {
            Some(wake) => desk.frontier.handle(Event::Parked { wake }, now),
            // Ignored unless the domain is resident.
            None => {
                let evicted = decision.evicted;
                desk.touched.insert(domain.clone());
                let advance = |tenure| desk.frontier.advance(domain, tenure).ok_or(());
                if let Ok(change) = desk.changes.of(domain, advance) {
                    change.puts.extend(urls.iter().cloned());
                    change.removes.extend(&evicted);
                }
                desk.frontier.handle(
                    Event::Admitted {
                        domain: domain.clone(),
                        urls,
                        evicted,
                        overflowed,
                    },
                    now,
                );
            }
        }
        Ok(())
    }

    /// Puts a domain among those on disk that have work; a domain that is still leaving memory,
    /// only once it has left.
    fn park(
        &self,
        domain: &Domain,
        wake: Time,
        commit: &mut Commit,
        parking: &mut HashMap<Domain, Time>,
    ) -> Option<Time> {
        if let Some(later) = parking.get_mut(domain) {
            *later = wake;
            return None;
        }
        park(commit, domain, wake);
        Some(wake)
    }

    fn place(&mut self, admitted: apoidea_crawl::Admitted) -> Pending {
        let slot = Slot {
            rank: admitted.rank,
            sequence: self.next_sequence << TAG_BITS | self.tag,
        };
        self.next_sequence += 1;
        let Link { url, depth, target } = admitted.link;
        Pending {
            slot,
            url,
            depth,
            target,
            attempts: 0,
            not_before: Time::ZERO,
        }
    }

    /// Drops the filter of a domain whose log was changed by others.
    pub(crate) fn forget_filter(&mut self, domain: &Domain) {
        self.seen.forget(domain);
    }

    /// What is known of a domain that is not in memory.
    pub(crate) fn load_state(&self, domain: &Domain) -> Result<DomainState, ReadError> {
        Ok(self
            .store
            .domain(domain)?
            .map_or_else(DomainState::default, |bytes| decode_state(domain, &bytes)))
    }
}

/// Parks a domain; one that will never be asked again leaves the index.
pub(crate) fn park(commit: &mut Commit, domain: &Domain, wake: Time) {
    if wake == Time::NEVER {
        commit.unpark(domain)
    } else {
        commit.park(domain, wake)
    }
}

/// A domain's state as it is stored.
pub(crate) fn encode_state(state: &DomainState) -> Vec<u8> {
    postcard::to_stdvec(state).expect("numbers, times and rules always serialise")
}

/// A stored state; one that cannot be read is begun anew, which costs a robots.txt and the
/// counters.
pub(crate) fn decode_state(domain: &Domain, bytes: &[u8]) -> DomainState {
    postcard::from_bytes(bytes).unwrap_or_else(|error| {
        tracing::error!(%domain, %error, "the domain's state is damaged and begun anew");
        DomainState::default()
    })
}

/// What this peer crawls at all.
struct Scope {
    contactable: Contactable,
    refusals: Refusals,
    /// Refused by hand while running, each with everything below it.
    by_hand: BTreeSet<Domain>,
    /// Others may fetch what is refused by hand.
    company: Company,
    only: Vec<Domain>,
}

/// Is there anybody else?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    None,
    Neighbours,
}

impl Scope {
    fn check(&self, url: &PageUrl, now: Time) -> Result<(), DropReason> {
        if self.contactable.check_url(url).is_err() || !self.is_wanted(url.host()) {
            return Err(DropReason::OutOfScope);
        }
        let is_refused = self.company == Company::None && self.is_refused_by_hand(url.host());
        if is_refused || self.refusals.matches(&url.domain()).is_some() {
            return Err(DropReason::Refused);
        }
        Trap::check(url, now).map_err(|_| DropReason::Trap)
    }

    fn explain(&self, url: &PageUrl, now: Time) -> Result<(), String> {
        self.contactable
            .check_url(url)
            .map_err(|refusal| refusal.to_string())?;
        if !self.is_wanted(url.host()) {
            return Err("its domain is not among those that crawl.only names".to_owned());
        }
        if self.is_refused_by_hand(url.host()) {
            return Err("its domain is refused by you".to_owned());
        }
        if let Some(list) = self.refusals.matches(&url.domain()) {
            return Err(format!("its domain is refused by {list}"));
        }
        Trap::check(url, now).map_err(|trap| format!("it looks like a trap: {trap}"))
    }

    fn is_refused_by_hand(&self, host: &str) -> bool {
        self.by_hand
            .iter()
            .any(|domain| is_within(host, domain.as_str()))
    }

    fn is_wanted(&self, host: &str) -> bool {
        self.only.is_empty()
            || self
                .only
                .iter()
                .any(|domain| is_within(host, domain.as_str()))
    }
}

fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// What is settled for good need not be looked at again when the next page links to it.
fn note_dropped(link: &Link, reason: DropReason, desk: &mut Desk<'_>) {
    if matches!(reason, DropReason::Seen | DropReason::OutOfScope) {
        desk.recent.insert(&link.url);
    }
    if reason != DropReason::Seen {
        Totals::count(&mut desk.totals.dropped, drop_name(reason), 1);
    }
}

fn drop_name(reason: DropReason) -> &'static str {
    match reason {
        DropReason::OtherDomain => "other domain",
        DropReason::OutOfScope => "out of scope",
        DropReason::Refused => "refused domain",
        DropReason::Trap => "trap",
        DropReason::TooDeep => "too deep",
        DropReason::Seen => "seen",
        DropReason::Exhausted => "domain has had its share",
        DropReason::Overflow => "queue full",
    }
}
