//! The owner's side of a link batch: scope, traps, refusals, seen-filter, overflow; then durable in
//! the domain's queue.
//!
//! The decision itself is [`Admission`]'s; this fetches what it needs (state, filter, queue) from
//! memory or disk and turns its answer into changes of the store and news for the frontier.

use crate::{
    config::CrawlConfig,
    crawler::{seen_cache::SeenCache, site_census::SiteCensus},
    page::recent_links::RecentLinks,
    report::status::Totals,
    state_codec::decode_state,
};
use apoidea_crawl::{
    Admission, BreadthFirst, Company, Contactable, Counters, Decision, DomainState, DropReason,
    Event, Frontier, Ledger, Quotas, Reductions, Refusals, Scope, Shares, Versions,
};
use apoidea_model::{
    CrawlId, Domain, Link, LinkBatch, PageUrl, PeerId, Pending, Slot, Time, UrlHash,
};
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
    sites: SiteCensus,
    quotas: Quotas,
    shares: Shares,
    scope: Scope,
    next_sequence: u64,
    tag: u64,
    /// URLs waiting in all domains but those that are stopped.
    queued: u64,
}

/// Reading or writing the store failed; the batch can be admitted again as it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdmitError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] CommitError),
}

/// URLs that enter a queue, and those that make room for them.
pub(crate) struct Entering {
    pub urls: Vec<Pending>,
    pub evicted: Vec<Slot>,
    /// URLs that did not enter, since the queue is full.
    pub overflowed: u64,
}

/// The state that admission changes besides the store.
pub(crate) struct AdmitContext<'a> {
    /// The crawl that the links belong to.
    pub crawl: CrawlId,
    pub frontier: &'a mut Frontier,
    /// Domains that leave memory but may not be woken yet: when they are to be woken.
    pub parking: &'a mut HashMap<Domain, Time>,
    pub totals: &'a mut Totals,
    pub recent: &'a RecentLinks,
    /// Domains in memory whose state changed.
    pub touched: &'a mut HashSet<Domain>,
    /// Changes that the replicas do not know yet.
    pub ledger: &'a mut Ledger,
    /// Domains that are this peer's.
    pub owned: &'a mut u64,
    /// Collects the links that were dropped although they were new, if anybody wants to know.
    pub unkept: Option<&'a mut HashSet<UrlHash>>,
}

impl Admitter {
    pub(crate) fn new(
        store: Store,
        config: &CrawlConfig,
        contactable: Contactable,
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
            sites: SiteCensus::default(),
            store,
            shares: Shares::new(quotas.queued_total),
            quotas,
            scope: Scope::new(contactable, refusals, config.only.clone()),
            next_sequence: first,
            tag: u64::from(u16::from_be_bytes([
                me.key().as_bytes()[0],
                me.key().as_bytes()[1],
            ])) >> (16 - TAG_BITS),
            queued: 0,
        })
    }

    /// The reason why a URL can never be admitted, for a person who asks for it.
    pub(crate) fn check(&self, url: &PageUrl, now: Time) -> Result<(), String> {
        let explained = self.scope.explain(url, now);
        explained.map_err(|unwanted| unwanted.to_string())
    }

    /// Could anybody want this link?
    pub(crate) fn may_be_wanted(&self, url: &PageUrl, now: Time) -> bool {
        self.scope.check(url, now).is_ok()
    }

    /// Must this peer not contact the domain itself?
    pub(crate) fn is_refused(&self, domain: &Domain) -> bool {
        self.scope.is_refused(domain)
    }

    /// Whether links to domains refused by hand are admitted all the same, for neighbours to fetch.
    pub(crate) fn set_company(&mut self, company: Company) {
        self.scope.set_company(company);
    }

    /// The domains refused by hand.
    pub(crate) fn refused_by_hand(&mut self) -> &mut BTreeSet<Domain> {
        self.scope.by_hand_mut()
    }

    /// Admits a batch. Its URLs are visible in the store afterwards, and durable after its next
    /// durable commit.
    pub(crate) fn admit(
        &mut self,
        batch: LinkBatch,
        context: &mut AdmitContext<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        if let Err(unknown) = batch.crawl.check() {
            drop_all(&batch.links, unknown.into(), context);
            return Ok(());
        }
        let mut by_domain: BTreeMap<Domain, Vec<Link>> = BTreeMap::new();
        for link in batch.links {
            match by_domain.get_mut(link.url.host()) {
                Some(links) => links.push(link),
                None => _ = by_domain.insert(link.url.domain(), vec![link]),
            }
        }
        for (domain, links) in by_domain {
            // Before anything is looked up: most links of many pages lead where this peer does not
            // go.
            match self.scope.check_domain(&domain).map_err(DropReason::from) {
                Ok(()) => self.admit_in_portions(&domain, links, context, now)?,
                Err(reason) => drop_all(&links, reason, context),
            }
        }
        Ok(())
    }

    /// URLs waiting in all domains but those that are stopped.
    pub(crate) fn queued(&self) -> u64 {
        self.queued
    }

    /// The waiting URLs were counted anew.
    pub(crate) fn set_queued(&mut self, queued: u64) {
        self.queued = queued;
    }

    /// So many URLs have entered queues.
    pub(crate) fn note_entered(&mut self, urls: u64) {
        self.queued += urls;
    }

    /// So many URLs have left queues.
    pub(crate) fn note_left(&mut self, urls: u64) {
        self.queued = self.queued.saturating_sub(urls);
    }

    /// New URLs that another peer may still bring.
    pub(crate) fn room_for(&self, sender: PeerId, now: Time) -> u64 {
        self.shares.room(sender, now)
    }

    /// Another peer has brought so many new URLs.
    pub(crate) fn note_brought(&mut self, sender: PeerId, urls: u64, now: Time) {
        self.shares.fill(sender, urls, now);
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
        context: &mut AdmitContext<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        while !links.is_empty() {
            let (state, counters, reductions) = match context.frontier.state(domain) {
                Some(state) => (None, state.counters, state.reductions.clone()),
                None => {
                    let state = self.load_state(domain)?;
                    if is_new(&state) && !self.sites.has_room(&self.store, domain, now)? {
                        drop_all(&links, DropReason::CrowdedSite, context);
                        return Ok(());
                    }
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
            let decision = self.decide(domain, links, counters, &reductions, now)?;
            self.carry_out(domain, decision, state, context, now)?;
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
        context: &mut AdmitContext<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        decision
            .dropped
            .iter()
            .for_each(|(link, reason)| note_dropped(link, *reason, context));
        if decision.admitted.is_empty() {
            return Ok(());
        }
        let is_stopped = state
            .as_ref()
            .is_some_and(|state| state.stopped().is_some());
        let entering = decision.admitted.len() as u64;
        let leaving = decision.evicted.len() as u64;
        let entered = self.enqueue(domain, decision, state, context, now);
        if entered.is_err() {
            self.seen.forget(domain);
            return entered;
        }
        context.totals.admitted += entering;
        if !is_stopped {
            self.note_entered(entering);
            self.note_left(leaving);
        }
        Ok(self.seen.grow(domain)?)
    }

    fn decide(
        &mut self,
        domain: &Domain,
        links: Vec<Link>,
        counters: Counters,
        reductions: &Reductions,
        now: Time,
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
        let scope = &self.scope;
        let admission = Admission {
            domain,
            quotas: &self.quotas,
            order: &BreadthFirst,
            counters,
            queued_total: self.queued,
            worst: &worst,
            check: &|url| scope.check_url(url, now).map_err(DropReason::from),
        };
        let filter = self.seen.filter(domain, counters.admitted, reductions)?;
        Ok(admission.decide(links, filter))
    }

    fn enqueue(
        &mut self,
        domain: &Domain,
        decision: Decision,
        state: Option<DomainState>,
        context: &mut AdmitContext<'_>,
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
        let place = |admitted| self.place(admitted, context.crawl);
        let urls: Vec<Pending> = decision.admitted.into_iter().map(place).collect();
        let entering = Entering {
            urls,
            evicted: decision.evicted,
            overflowed,
        };
        self.put_in_queue(domain, entering, state, commit, context, now)
    }

    /// Puts URLs into the queue of a domain, in one commit with what else follows. `state` is that
    /// of a domain which is not in memory.
    pub(crate) fn put_in_queue(
        &mut self,
        domain: &Domain,
        entering: Entering,
        state: Option<DomainState>,
        mut commit: Commit,
        context: &mut AdmitContext<'_>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let Entering {
            urls,
            evicted,
            overflowed,
        } = entering;
        urls.iter()
            .for_each(|pending| commit.put_pending(domain, pending));
        let wake = match state {
            None => None,
            Some(mut state) => {
                if is_new(&state) {
                    *context.owned += 1;
                    self.sites.note_new(domain);
                }
                state.admitted(&urls, evicted.len() as u64, overflowed);
                let advance = |tenure| Ok::<_, AdmitError>(state.versions.advance(tenure));
                let change = context.ledger.change(domain, advance)?;
                change.puts.extend(urls.iter().cloned());
                change.removes.extend(&evicted);
                commit.put_domain(domain, state.encode());
                self.park(domain, state.ready_at(), &mut commit, context.parking)
            }
        };
        self.store.apply(&commit)?;
        urls.iter()
            .for_each(|pending| context.recent.insert(&pending.url));
        match wake {
            Some(wake) => context.frontier.handle(Event::Parked { wake }, now),
            // Ignored unless the domain is resident.
            None => {
                context.touched.insert(domain.clone());
                let advance = |tenure| context.frontier.advance(domain, tenure).ok_or(());
                if let Ok(change) = context.ledger.change(domain, advance) {
                    change.puts.extend(urls.iter().cloned());
                    change.removes.extend(&evicted);
                }
                context.frontier.handle(
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

    fn place(&mut self, admitted: apoidea_crawl::Admitted, crawl: CrawlId) -> Pending {
        let slot = self.next_slot(admitted.rank);
        Pending::admitted(admitted.link, slot, crawl)
    }

    /// A place behind all others of the same rank.
    pub(crate) fn next_slot(&mut self, rank: u16) -> Slot {
        let sequence = self.next_sequence << TAG_BITS | self.tag;
        self.next_sequence += 1;
        Slot { rank, sequence }
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

/// Was nothing known of the domain before?
fn is_new(state: &DomainState) -> bool {
    state.versions == Versions::default()
}

fn drop_all(links: &[Link], reason: DropReason, context: &mut AdmitContext<'_>) {
    links
        .iter()
        .for_each(|link| note_dropped(link, reason, context));
}

/// A link that is decided for good need not be looked at again when the next page has it.
fn note_dropped(link: &Link, reason: DropReason, context: &mut AdmitContext<'_>) {
    if matches!(reason, DropReason::Seen | DropReason::OutOfScope) {
        context.recent.insert(&link.url);
    }
    if reason != DropReason::Seen {
        if let Some(unkept) = &mut context.unkept {
            unkept.insert(link.url.hash());
        }
        *context.totals.dropped.entry(reason).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use crate::crawler::testing::{TestCrawler, url};
    use apoidea_crawl::DropReason;
    use apoidea_model::{CrawlId, PageUrl};

    #[tokio::test]
    async fn a_url_is_queued_once_also_after_it_was_fetched_and_after_a_crash() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        let pending = crawler.fetching(&here, 1).await;
        crawler.admit(&[url(&here, 0), url(&here, 0)]);
        assert_eq!(crawler.queue(&here).len(), 1);
        crawler.processed(&pending, &[url(&here, 0)]).await;
        crawler.save().await;
        assert_eq!(crawler.queue(&here), []);
        let mut crawler = crawler.crash();
        crawler.admit(&[url(&here, 0), url(&here, 1)]);
        assert_eq!(crawler.waiting(&here), ["/1"]);
        assert_eq!(crawler.totals.admitted, 2);
    }

    #[tokio::test]
    async fn links_of_an_unknown_crawl_enter_no_queue() {
        let mut crawler = TestCrawler::in_swarm();
        let here = crawler.own(0);
        let urls = [url(&here, 0), url(&here, 1)];
        let _answer = crawler.links_of_others(CrawlId(7), &urls).await;
        assert_eq!(crawler.queue(&here), []);
        assert_eq!(crawler.totals.dropped[&DropReason::UnknownCrawl], 2);
        crawler.admit(&urls);
        assert_eq!(crawler.queue(&here).len(), 2, "it was not seen either");
    }

    #[tokio::test]
    async fn a_full_queue_takes_no_more_and_counts_what_it_drops() {
        let mut crawler = TestCrawler::alone_with(&["crawl.queue_per_domain=100"]);
        let here = crawler.own(0);
        let urls: Vec<PageUrl> = (0..103).map(|page| url(&here, page)).collect();
        crawler.admit(&urls);
        assert_eq!(crawler.queue(&here).len(), 100);
        assert_eq!(crawler.parts.admitter.queued(), 100);
        assert_eq!(crawler.totals.dropped[&DropReason::Overflow], 3);
        assert_eq!(crawler.state_of(&here).counters.queued, 100);
    }

    #[tokio::test]
    async fn urls_keep_their_order_across_a_restart() {
        let mut crawler = TestCrawler::alone();
        let here = crawler.own(0);
        crawler.admit(&[url(&here, 2), url(&here, 1)]);
        let mut crawler = crawler.crash();
        crawler.admit(&[url(&here, 0)]);
        assert_eq!(crawler.waiting(&here), ["/2", "/1", "/0"]);
    }

    #[tokio::test]
    async fn a_domain_of_the_settings_lists_is_refused_with_those_below_it() {
        let mut crawler = TestCrawler::alone_with(&["crawl.refuse=[\"h0.test\"]"]);
        let (refused, taken) = (crawler.own(0), crawler.own(1));
        let below = format!("www.{refused}").parse().unwrap();
        crawler.admit(&[url(&refused, 0), url(&below, 0), url(&taken, 0)]);
        assert_eq!(
            crawler.queue(&refused).len() + crawler.queue(&below).len(),
            0
        );
        assert_eq!(crawler.totals.dropped[&DropReason::Refused], 2);
        assert_eq!(crawler.waiting(&taken), ["/0"]);
    }

    #[tokio::test]
    async fn the_waiting_urls_of_all_domains_are_counted() {
        let mut crawler = TestCrawler::alone();
        let (here, there) = (crawler.own(0), crawler.own(1));
        let pending = crawler.fetching(&here, 2).await;
        assert_eq!((crawler.parts.admitter.queued(), crawler.owned), (2, 1));
        crawler.processed(&pending, &[url(&there, 0)]).await;
        assert_eq!((crawler.parts.admitter.queued(), crawler.owned), (2, 2));
        let waiting = crawler.queue(&here).len() + crawler.queue(&there).len();
        crawler.write().await;
        let written = crawler.queue(&here).len() + crawler.queue(&there).len();
        assert_eq!((waiting, written), (3, 2));
    }
}
