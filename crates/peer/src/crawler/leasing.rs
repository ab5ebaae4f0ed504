//! Fetches that this peer leaves to its neighbours, and those that it does for them.

use super::{Crawler, Finding, now};
use crate::{
    fetch::Connection,
    page::PageSight,
    process::ProcessedPage,
    robots_fetch::RobotsAnswer,
    swarm::lease::{self, LeaseAnswer, LeaseAsk, LeaseResult, Leased, LeasedPage},
    writer::Order,
};
use apoidea_crawl::{Effort, Failure, Origin, Outcome, Report};
use apoidea_model::{Domain, PageUrl, PeerId, Pending, Slot, Time};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Fetches left to neighbours at a time: as many as a peer has pages in processing itself by
/// default, since the way of a page is as long there.
const MAX_LEASES: usize = 128;
/// Neighbours that were asked and have not answered: whoever turns a fetch away leaves it to be
/// done here, so these are fetches beyond what this peer may do at the moment.
const MAX_ASKED: usize = 2;
/// So long after it had to wait for its share of the computer, a peer leaves work to others.
const SHORT_FOR: Duration = Duration::from_secs(1);
/// A neighbour that had no time is not asked again for this long, unless it has ended something
/// else meanwhile; and for twice as long each time that it has none again: one that is busy for
/// long is not bothered, one that was busy for a moment is soon asked again.
const FIRST_REST: Duration = Duration::from_millis(100);
const LONGEST_REST: Duration = Duration::from_millis(1600);
/// Whoever has not told what came of a lease is gone: longer than a fetch and all that follows may
/// take.
const OVERDUE: Duration = Duration::from_secs(120);
/// The same for one who is no neighbour any more, and so may be dead.
const OVERDUE_IF_GONE: Duration = Duration::from_secs(40);
/// A refused domain that nobody else can fetch from now is looked at again after this.
const PUT_OFF: Duration = Duration::from_secs(20);

/// What is left to others and done for others.
#[derive(Debug, Default)]
pub(super) struct Leases {
    /// Fetches that this peer may have under way itself.
    pub own: usize,
    out: HashMap<(Domain, Leased), Out>,
    asked: usize,
    /// Whose turn it is.
    turn: usize,
    taken: usize,
    /// A clone is with each request that is under way for another.
    requests: Arc<()>,
    resting: HashMap<PeerId, Rest>,
    /// When this peer last had to wait for its share of the computer.
    short_at: Option<Instant>,
}

/// A fetch that was left to a neighbour.
#[derive(Debug)]
struct Out {
    helper: PeerId,
    since: Instant,
    subject: Subject,
}

#[derive(Debug)]
enum Subject {
    Page(Pending),
    Robots(Origin),
}

/// How long a neighbour is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    until: Instant,
    length: Duration,
}

impl Rest {
    /// After what it had before, if it had one.
    fn after(before: Option<Rest>, now: Instant) -> Self {
        let length = before.map_or(FIRST_REST, |rest| (2 * rest.length).min(LONGEST_REST));
        Rest {
            until: now + length,
            length,
        }
    }

    /// So long after its end, whether a neighbour had time before says nothing any more.
    fn is_forgotten(&self, now: Instant) -> bool {
        now > self.until + LONGEST_REST
    }
}

/// What to do when the helper has no time.
#[derive(Debug)]
pub(crate) enum Otherwise {
    /// Fetch the page here.
    Fetch {
        address: IpAddr,
        connection: Connection,
    },
    /// Fetch this robots.txt here.
    FetchRobots { url: PageUrl, address: IpAddr },
    /// Nothing: this peer has nothing to do with the domain.
    Leave,
}

impl Leases {
    /// A neighbour was told what came of its fetch.
    pub(super) fn returned(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// Fetches for others, until these know what came of them.
    pub(super) fn taken(&self) -> usize {
        self.taken
    }

    /// Requests that are under way for others.
    fn requests(&self) -> usize {
        Arc::strong_count(&self.requests) - 1
    }

    /// Fetches that neighbours are at.
    pub(super) fn lent(&self) -> usize {
        self.out.len()
    }

    /// Those of them that are pages, and so in processing here.
    pub(super) fn lent_pages(&self) -> usize {
        self.out
            .keys()
            .filter(|(_, what)| *what != Leased::Robots)
            .count()
    }

    /// This peer may not do as much as it could just now.
    pub(super) fn is_short(&mut self) {
        self.short_at = Some(Instant::now());
    }

    fn was_short(&self) -> bool {
        self.short_at.is_some_and(|at| at.elapsed() < SHORT_FOR)
    }

    fn answered(&mut self) {
        self.asked = self.asked.saturating_sub(1);
    }

    fn rest(&mut self, helper: PeerId) {
        let now = Instant::now();
        self.resting.retain(|_, rest| !rest.is_forgotten(now));
        let rest = Rest::after(self.resting.get(&helper).copied(), now);
        self.resting.insert(helper, rest);
    }
}

impl Crawler {
    /// How much the frontier may have under way, with what is left to others: one more than that,
    /// while there is somebody to leave it to.
    pub(super) fn limit_fetches(&mut self) {
        let Leases { own, out, .. } = &self.leases;
        let one_more = usize::from(self.can_lease() && self.fetching_here() <= *own);
        // What is fetched for others counts, but the own crawl always goes on.
        let mine = own.saturating_sub(self.leases.requests()).max(1);
        let is_still = self.paused || self.quiescing.is_some();
        let fetches = if is_still {
            0
        } else {
            mine + out.len() + one_more
        };
        self.parts.frontier.set_fetches(fetches);
    }

    /// Fetches that this peer is at, for itself and for others.
    pub(super) fn fetching_here(&self) -> usize {
        self.parts
            .frontier
            .fetching()
            .saturating_sub(self.leases.out.len())
            + self.leases.requests()
    }

    /// Is there somebody who may have time?
    pub(super) fn can_lease(&self) -> bool {
        let Leases { out, asked, .. } = &self.leases;
        out.len() < MAX_LEASES && *asked < MAX_ASKED && self.helper().is_some()
    }

    /// The neighbour to be asked next, another one for each fetch.
    fn helper(&self) -> Option<PeerId> {
        let now = Instant::now();
        let neighbours = self.parts.swarm.tenancy.neighbours();
        let is_rested = |peer: &&PeerId| {
            self.leases
                .resting
                .get(*peer)
                .is_none_or(|rest| rest.until <= now)
        };
        let rested: Vec<&PeerId> = neighbours.iter().filter(is_rested).collect();
        rested
            .get(self.leases.turn % rested.len().max(1))
            .map(|peer| **peer)
    }

    pub(super) fn start_fetch(
        &mut self,
        domain: Domain,
        pending: Pending,
        address: IpAddr,
        connection: Connection,
    ) {
        let is_refused = self.parts.admitter.is_refused_by_hand(&domain);
        let is_busy = self.is_full() || self.has_enough();
        match self
            .helper()
            .filter(|_| is_refused || is_busy && self.can_lease())
        {
            Some(helper) if is_refused => self.lend_page(helper, domain, pending, Otherwise::Leave),
            Some(helper) => {
                let otherwise = Otherwise::Fetch {
                    address,
                    connection,
                };
                self.lend_page(helper, domain, pending, otherwise);
            }
            None if is_refused => self.put_off(&domain, None),
            None => self.fetch_here(domain, pending, address, connection),
        }
    }

    /// Is this peer at as many fetches as it may be?
    fn has_enough(&self) -> bool {
        self.leases.was_short() || self.fetching_here() > self.leases.own
    }

    fn lend_page(
        &mut self,
        helper: PeerId,
        domain: Domain,
        pending: Pending,
        otherwise: Otherwise,
    ) {
        self.processing.begin(&domain, pending.slot);
        let Pending {
            slot,
            depth,
            target,
            ..
        } = pending;
        let ask = LeaseAsk {
            url: pending.url.clone(),
            what: Leased::Page {
                slot,
                depth,
                target,
            },
        };
        self.lend(helper, domain, ask, Subject::Page(pending), otherwise);
    }

    fn fetch_here(
        &mut self,
        domain: Domain,
        pending: Pending,
        address: IpAddr,
        connection: Connection,
    ) {
        self.parts.throttle.start();
        self.processing.begin(&domain, pending.slot);
        tokio::spawn(
            self.parts
                .work
                .clone()
                .fetch_page(domain, pending, address, connection),
        );
    }

    pub(super) fn start_robots(
        &mut self,
        domain: Domain,
        origin: Origin,
        url: PageUrl,
        address: IpAddr,
    ) {
        let is_refused = self.parts.admitter.is_refused_by_hand(&domain);
        match self
            .helper()
            .filter(|_| is_refused || self.has_enough() && self.can_lease())
        {
            Some(helper) if is_refused => {
                self.lend_robots(helper, domain, origin, url, Otherwise::Leave)
            }
            Some(helper) => {
                let otherwise = Otherwise::FetchRobots {
                    url: url.clone(),
                    address,
                };
                self.lend_robots(helper, domain, origin, url, otherwise);
            }
            None if is_refused => self.put_off(&domain, None),
            None => self.fetch_robots_here(domain, origin, url, address),
        }
    }

    fn lend_robots(
        &mut self,
        helper: PeerId,
        domain: Domain,
        origin: Origin,
        url: PageUrl,
        otherwise: Otherwise,
    ) {
        let ask = LeaseAsk {
            url,
            what: Leased::Robots,
        };
        self.lend(helper, domain, ask, Subject::Robots(origin), otherwise);
    }

    fn fetch_robots_here(&self, domain: Domain, origin: Origin, url: PageUrl, address: IpAddr) {
        tokio::spawn(
            self.parts
                .work
                .clone()
                .fetch_robots(domain, origin, url, address),
        );
    }

    fn lend(
        &mut self,
        helper: PeerId,
        domain: Domain,
        ask: LeaseAsk,
        subject: Subject,
        otherwise: Otherwise,
    ) {
        self.leases.turn = self.leases.turn.wrapping_add(1);
        self.leases.asked += 1;
        let out = Out {
            helper,
            since: Instant::now(),
            subject,
        };
        self.leases.out.insert((domain.clone(), ask.what), out);
        let (overlay, findings) = (
            self.parts.swarm.overlay.clone(),
            self.parts.swarm.findings.clone(),
        );
        tokio::spawn(async move {
            let finding = match lease::is_turned_away(overlay.as_ref(), helper, &ask).await {
                true => Finding::TurnedAway {
                    helper,
                    domain,
                    what: ask.what,
                    otherwise,
                },
                false => Finding::Lent(ask.what),
            };
            // Nobody listens any more when the peer has stopped.
            let _ = findings.send(finding);
        });
    }

    /// A neighbour has taken a fetch over, or may have.
    pub(super) fn lent(&mut self, what: Leased) {
        self.leases.answered();
        self.totals.lent += u64::from(what != Leased::Robots);
    }

    /// A neighbour had no time.
    pub(super) fn turned_away(
        &mut self,
        helper: PeerId,
        domain: Domain,
        what: Leased,
        otherwise: Otherwise,
    ) {
        self.leases.answered();
        self.leases.rest(helper);
        let Some(out) = self.leases.out.remove(&(domain.clone(), what)) else {
            return;
        };
        match (out.subject, otherwise) {
            (
                Subject::Page(pending),
                Otherwise::Fetch {
                    address,
                    connection,
                },
            ) => match self.helper() {
                Some(other) => {
                    self.lend_page(
                        other,
                        domain,
                        pending,
                        Otherwise::Fetch {
                            address,
                            connection,
                        },
                    );
                }
                // There is no room for it here either: its turn comes again.
                None if self.is_full() => self.put_back(&domain, Some(pending.slot), Time::ZERO),
                None => self.fetch_here(domain, pending, address, connection),
            },
            (Subject::Robots(origin), Otherwise::FetchRobots { url, address }) => {
                match self.helper() {
                    Some(other) => {
                        let otherwise = Otherwise::FetchRobots {
                            url: url.clone(),
                            address,
                        };
                        self.lend_robots(other, domain, origin, url, otherwise);
                    }
                    None => self.fetch_robots_here(domain, origin, url, address),
                }
            }
            (subject, _) => {
                let slot = match subject {
                    Subject::Page(pending) => Some(pending.slot),
                    Subject::Robots(_) => None,
                };
                self.put_off(&domain, slot);
            }
        }
    }

    /// A refused domain waits: nobody has time for it now.
    fn put_off(&mut self, domain: &Domain, slot: Option<Slot>) {
        self.put_back(domain, slot, now() + PUT_OFF);
    }

    /// A neighbour tells what came of a fetch that was left to it.
    pub(super) fn take_result(&mut self, from: PeerId, result: LeaseResult) {
        let LeaseResult {
            domain,
            what,
            answer,
        } = result;
        let lease = (domain, what);
        if self
            .leases
            .out
            .get(&lease)
            .is_none_or(|out| out.helper != from)
        {
            return;
        }
        let Some(Out { subject, .. }) = self.leases.out.remove(&lease) else {
            return;
        };
        self.leases.resting.remove(&from);
        let (domain, _) = lease;
        match (subject, answer) {
            (
                Subject::Page(pending),
                LeaseAnswer::Page {
                    outcome,
                    cost,
                    page,
                },
            ) => {
                // A page without its page is none.
                let is_whole = outcome != Outcome::Page || page.is_some();
                let outcome = if is_whole {
                    outcome
                } else {
                    Outcome::Failed(Failure::Read)
                };
                let report = Report {
                    domain,
                    slot: pending.slot,
                    outcome,
                    effort: cost.into(),
                };
                self.parts.work.tell_leased(report, pending, page);
            }
            (
                Subject::Robots(origin),
                LeaseAnswer::Robots {
                    access,
                    retry_after,
                    cost,
                },
            ) => {
                let answer = RobotsAnswer {
                    access,
                    retry_after,
                    effort: cost.into(),
                };
                self.parts.work.tell_robots(domain, origin, answer);
            }
            (Subject::Page(pending), LeaseAnswer::Held) => {
                self.parts.work.tell_held(domain, Some(pending.slot));
            }
            (Subject::Robots(_), LeaseAnswer::Held) => self.parts.work.tell_held(domain, None),
            (subject, _) => self.give_up(domain, subject),
        }
    }

    /// Whoever does not tell for long is gone.
    pub(super) fn give_up_overdue(&mut self) {
        let neighbours = self.parts.swarm.tenancy.neighbours();
        let patience = |out: &Out| match neighbours.contains(&out.helper) {
            true => OVERDUE,
            false => OVERDUE_IF_GONE,
        };
        let overdue = self
            .leases
            .out
            .extract_if(|_, out| out.since.elapsed() > patience(out));
        let overdue: Vec<(Domain, Subject)> = overdue
            .map(|((domain, _), out)| (domain, out.subject))
            .collect();
        overdue
            .into_iter()
            .for_each(|(domain, subject)| self.give_up(domain, subject));
    }

    fn give_up(&mut self, domain: Domain, subject: Subject) {
        match subject {
            Subject::Robots(_) => self.put_off(&domain, None),
            Subject::Page(pending) => {
                let effort = Effort {
                    took: Duration::ZERO,
                    bytes: 0,
                };
                let outcome = Outcome::Failed(Failure::Timeout);
                let report = Report {
                    domain,
                    slot: pending.slot,
                    outcome,
                    effort,
                };
                self.parts.work.tell_leased(report, pending, None);
            }
        }
    }

    /// A neighbour asks this peer to fetch something; no answer means that there is no time for it.
    pub(super) fn take_lease(&mut self, from: PeerId, ask: LeaseAsk, reply: oneshot::Sender<()>) {
        let has_time = !self.paused
            && self.quiescing.is_none()
            && !self.is_stuck()
            && self.has_room_to_help()
            && self.parts.throttle.wait().is_none()
            && self.fetching_here() < self.leases.own;
        if has_time && self.parts.admitter.check(&ask.url, now()).is_ok() {
            self.parts.throttle.start();
            self.leases.taken += 1;
            let _ = reply.send(());
            tokio::spawn(self.parts.work.clone().fetch_for_another(
                from,
                ask,
                self.leases.requests.clone(),
            ));
        }
    }

    /// What is fetched for others is in processing, too, until they know.
    fn has_room_to_help(&self) -> bool {
        let most = self.max_processing + self.leases.lent_pages();
        !self
            .processing
            .is_full(most.saturating_sub(self.leases.taken()))
    }

    /// What a neighbour asked for is here; it is told when the page is on the disk.
    pub(super) async fn end_lease(
        &mut self,
        from: PeerId,
        mut result: LeaseResult,
        page: Option<(ProcessedPage, PageSight)>,
    ) {
        let (written, durable) = oneshot::channel();
        let mut order = Order {
            reply: Some(written),
            ..Order::default()
        };
        if let (Some((page, sight)), LeaseAnswer::Page { page: told, .. }) =
            (page, &mut result.answer)
        {
            self.totals.borrowed += 1;
            self.totals.bytes += page.bytes;
            let (leased, rest) = LeasedPage::of(&page, sight);
            if let Err(error) = self.send_out(rest, now()) {
                self.leases.returned();
                return self.is_in_trouble(&error);
            }
            *told = Some(leased);
            order.records = page.records;
        }
        self.parts
            .helped
            .note(from, &result, now(), &mut order.commit);
        self.order(order).await;
        let (overlay, findings) = (
            self.parts.swarm.overlay.clone(),
            self.parts.swarm.findings.clone(),
        );
        tokio::spawn(async move {
            if durable.await.is_ok() {
                lease::report(overlay.as_ref(), from, result).await;
            }
            // Nobody listens any more when the peer has stopped.
            let _ = findings.send(Finding::Returned);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_without_time_is_left_alone_for_longer_each_time() {
        let now = Instant::now();
        let mut rests = vec![Rest::after(None, now)];
        for _ in 0..5 {
            let last = rests[rests.len() - 1];
            rests.push(Rest::after(Some(last), last.until));
        }
        let lengths: Vec<u128> = rests.iter().map(|rest| rest.length.as_millis()).collect();
        assert_eq!(lengths, [100, 200, 400, 800, 1600, 1600]);
        assert!(!rests[0].is_forgotten(rests[0].until));
        assert!(rests[0].is_forgotten(rests[0].until + 2 * LONGEST_REST));
    }
}
