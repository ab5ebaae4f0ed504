//! The choice of the peer that fetches: here, or a neighbour on the ring that helps.
//!
//! The owner of a domain keeps its queue, its politeness clock and its seen log. A helper only
//! fetches, on a loan. A peer lends what it may not fetch itself at the moment, and what its
//! volunteer refuses; it borrows while it has less to do than it may. A value without clock or
//! network: the driver reports events, asks for a [`Choice`] and carries it out.
//!
//! ```text
//!            assign ──────▶ Here          fetched by the owner itself
//!              │  └───────▶ Later         refused here, and no helper: its domain waits
//!              ▼
//!            Lend(helper)
//!              │ lend
//!              ▼
//!   ┌──────▶ asked ── on_turned_away ──▶ Here | Later | Back (to its queue)
//!   │ lend     │          │
//!   └──────────┼── Lend(another)
//!              │ on_taken
//!              ▼
//!            taken ── on_result ──▶ the helper's result
//!              │
//!              └───── overdue ────▶ given up
//! ```
//!
//! A loan can end by result or by time before the helper's answer is known, too.

mod fetch_id;
mod load;
mod rest;

pub use fetch_id::FetchId;
pub use load::{Load, Memory, Progress, Room};

use apoidea_model::{Domain, PeerId, Time};
use rest::{Rest, lasts};
use std::{collections::BTreeMap, time::Duration};

/// Loans at a time: as many as a peer by default has pages in processing itself, since a page takes
/// as long at a helper.
pub const MAX_LOANS: usize = 128;
/// Helpers that were asked and have not answered. A fetch that is turned away may have to be done
/// here, so these are fetches beyond the number that this peer may do.
pub const MAX_ASKED: usize = 2;
/// A peer lends for this long after it had to wait for its share of the computer.
pub const SHORT_FOR: Duration = Duration::from_secs(1);
/// A helper that has told nothing for this long is gone: longer than a fetch and all that follows
/// may take.
pub const OVERDUE: Duration = Duration::from_secs(120);
/// The same for a helper that is no neighbour any more, and so may be dead.
pub const OVERDUE_IF_GONE: Duration = Duration::from_secs(40);
/// Domains that helpers called closed, at a time.
pub const MAX_DOUBTED: usize = 1024;
/// For so long this peer fetches from such a domain itself: long enough for a few polite requests.
pub const DOUBTED_FOR: Duration = Duration::from_secs(600);
/// A fetch that is not lent waits for this long where a peer is at as many fetches as it may be.
pub const CROWDED: Duration = Duration::from_millis(500);
/// A refused domain that no helper can fetch from now waits for this long.
pub const PUT_OFF: Duration = Duration::from_secs(20);

/// The loans of a peer to its helpers, and the fetches that it does as a helper. `S` is what the
/// driver keeps with a loan.
#[derive(Debug)]
pub struct Lending<S> {
    /// Fetches that this peer may have under way itself.
    own: usize,
    loans: BTreeMap<FetchId, Loan<S>>,
    /// Loans whose helper has not answered.
    asked: usize,
    /// Loans of pages.
    pages: usize,
    /// Advances with each loan, so that helpers are asked in turn.
    turn: usize,
    resting: BTreeMap<PeerId, Rest>,
    /// When this peer last had to wait for its share of the computer.
    short_at: Option<Time>,
    /// Requests that are under way for others.
    requests: usize,
    /// Fetches for others whose result the owner does not know yet.
    borrowed: usize,
    /// Domains that a helper called closed, and until when this peer looks itself.
    doubted: BTreeMap<Domain, Time>,
}

/// A fetch at a helper.
#[derive(Debug)]
struct Loan<S> {
    helper: PeerId,
    since: Time,
    refused: Refused,
    answer: Answer,
    subject: S,
}

/// A helper's answer to the wish to lend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Awaited,
    Taken,
}

/// May this peer fetch from the domain itself?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Its volunteer does not want it: only others may.
    ByVolunteer,
    /// It may.
    No,
}

/// The place where a fetch is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// At this peer, now.
    Here,
    /// At this helper, if it agrees.
    Lend(PeerId),
    /// Nowhere now: its domain waits for this long.
    Later(Duration),
    /// Nowhere now: there is no room here either, and it goes back to its queue at once.
    Back,
}

impl<S> Lending<S> {
    /// Nothing lent, nothing borrowed, and so many fetches of its own.
    pub fn new(own: usize) -> Self {
        Lending {
            own,
            loans: BTreeMap::new(),
            asked: 0,
            pages: 0,
            turn: 0,
            resting: BTreeMap::new(),
            short_at: None,
            requests: 0,
            borrowed: 0,
            doubted: BTreeMap::new(),
        }
    }

    /// Changes how many fetches this peer may have under way itself.
    pub fn set_own(&mut self, own: usize) {
        self.own = own;
    }

    /// This peer had to wait for its share of the computer.
    pub fn note_shortage(&mut self, now: Time) {
        self.short_at = Some(now);
    }

    /// Chooses the place of a fetch that the frontier wants now.
    pub fn assign(&self, fetch: &FetchId, refused: Refused, load: &Load, now: Time) -> Choice {
        let helper = self.helper(load, now);
        match (refused, helper) {
            (Refused::ByVolunteer, Some(helper)) if self.loans.len() < MAX_LOANS => {
                Choice::Lend(helper)
            }
            (Refused::ByVolunteer, _) => Choice::Later(PUT_OFF),
            (Refused::No, Some(helper)) if self.is_to_be_lent(fetch, load, now) => {
                Choice::Lend(helper)
            }
            // What is not lent waits until there is room here.
            (Refused::No, _)
                if self.fetching_here(load) > self.own && !self.is_lendable(fetch, now) =>
            {
                Choice::Later(CROWDED)
            }
            (Refused::No, _) => Choice::Here,
        }
    }

    /// Carries out [`Choice::Lend`]: the helper is asked now. A fetch that was lent already changes
    /// hands, and its former subject comes back.
    pub fn lend(
        &mut self,
        fetch: FetchId,
        helper: PeerId,
        refused: Refused,
        subject: S,
        now: Time,
    ) -> Option<S> {
        let former = self.end(&fetch);
        self.turn = self.turn.wrapping_add(1);
        self.asked += 1;
        self.pages += usize::from(fetch.is_page());
        let loan = Loan {
            helper,
            since: now,
            refused,
            answer: Answer::Awaited,
            subject,
        };
        self.loans.insert(fetch, loan);
        former.map(|loan| loan.subject)
    }

    /// A helper has taken a fetch, or may have.
    pub fn on_taken(&mut self, helper: PeerId, fetch: &FetchId) {
        let asked = self
            .loans
            .get_mut(fetch)
            .filter(|loan| loan.helper == helper && loan.answer == Answer::Awaited);
        if let Some(loan) = asked {
            loan.answer = Answer::Taken;
            self.asked -= 1;
        }
    }

    /// A helper had no time: it rests, and the fetch goes to another helper, is done here, or
    /// waits. `None` if the fetch is not at this helper.
    pub fn on_turned_away(
        &mut self,
        helper: PeerId,
        fetch: &FetchId,
        load: &Load,
        now: Time,
    ) -> Option<(S, Choice)> {
        self.let_rest(helper, now);
        let loan = self.end_at(helper, fetch)?;
        let choice = match (loan.refused, self.helper(load, now)) {
            (Refused::ByVolunteer, _) => Choice::Later(PUT_OFF),
            (Refused::No, Some(another)) => Choice::Lend(another),
            (Refused::No, None) if fetch.is_page() && self.is_full(load) => Choice::Back,
            (Refused::No, None) => Choice::Here,
        };
        Some((loan.subject, choice))
    }

    /// A peer tells the result of a fetch. `None` if the fetch is not at this peer.
    pub fn on_result(&mut self, from: PeerId, fetch: &FetchId) -> Option<S> {
        let loan = self.end_at(from, fetch)?;
        self.resting.remove(&from);
        Some(loan.subject)
    }

    /// Ends the loans whose helpers have told nothing for too long.
    pub fn overdue(&mut self, load: &Load, now: Time) -> Vec<(FetchId, S)> {
        let patience = |loan: &Loan<S>| match load.neighbours.contains(&loan.helper) {
            true => OVERDUE,
            false => OVERDUE_IF_GONE,
        };
        let overdue: Vec<FetchId> = self
            .loans
            .iter()
            .filter(|(_, loan)| now.since(loan.since) > patience(loan))
            .map(|(fetch, _)| fetch.clone())
            .collect();
        overdue
            .into_iter()
            .filter_map(|fetch| self.end(&fetch).map(|loan| (fetch, loan.subject)))
            .collect()
    }

    /// Fetches that the frontier may have under way, lent ones included: one more than that while a
    /// helper may take it.
    pub fn fetch_limit(&self, load: &Load, now: Time) -> usize {
        if load.progress == Progress::Still {
            return 0;
        }
        // Fetches for others count, but the own crawl always goes on.
        let mine = self.own.saturating_sub(self.requests).max(1);
        let has_helper = self.may_lend(load, now) && self.fetching_here(load) <= self.own;
        mine + self.loans.len() + usize::from(has_helper)
    }

    /// A helper says that the domain turns crawlers away. One peer's word closes no domain: this
    /// peer looks itself.
    pub fn doubt(&mut self, domain: &Domain, now: Time) {
        self.doubted.retain(|_, until| *until > now);
        if self.doubted.len() < MAX_DOUBTED {
            self.doubted.insert(domain.clone(), now + DOUBTED_FOR);
        }
    }

    /// Is there a helper that may have time?
    pub fn may_lend(&self, load: &Load, now: Time) -> bool {
        let is_within_bounds = self.loans.len() < MAX_LOANS && self.asked < MAX_ASKED;
        is_within_bounds && self.helper(load, now).is_some()
    }

    /// Fetches that this peer is at, for itself and for others.
    pub fn fetching_here(&self, load: &Load) -> usize {
        load.fetching.saturating_sub(self.loans.len()) + self.requests
    }

    /// Is there no room for another page in processing? Pages at helpers take none.
    pub fn is_full(&self, load: &Load) -> bool {
        load.room.is_full(load.room.most + self.pages)
    }

    /// Fetches at helpers.
    pub fn lent_count(&self) -> usize {
        self.loans.len()
    }

    /// Pages at helpers.
    pub fn lent_pages(&self) -> usize {
        self.pages
    }

    /// Has this peer time for a fetch of another? Pages fetched for others are in processing until
    /// their owners know.
    pub fn may_borrow(&self, load: &Load) -> bool {
        let most = (load.room.most + self.pages).saturating_sub(self.borrowed);
        load.progress == Progress::Running
            && !load.room.is_full(most)
            && self.fetching_here(load) < self.own
    }

    /// A fetch for another begins.
    pub fn on_borrowed(&mut self) {
        self.borrowed += 1;
        self.requests += 1;
    }

    /// The server has answered a request for another.
    pub fn on_request_ended(&mut self) {
        self.requests = self.requests.saturating_sub(1);
    }

    /// The owner knows the result of its fetch, or cannot be told. Its request has ended, too.
    pub fn on_returned(&mut self) {
        self.borrowed = self.borrowed.saturating_sub(1);
        self.requests = self.requests.min(self.borrowed);
    }

    /// Fetches for others whose results the owners do not know yet.
    pub fn borrowed_count(&self) -> usize {
        self.borrowed
    }

    /// Has this peer enough to do, and is there a helper that may have time?
    fn is_to_be_lent(&self, fetch: &FetchId, load: &Load, now: Time) -> bool {
        let is_wanted = self.is_full(load) || self.has_enough(load, now);
        self.is_lendable(fetch, now) && is_wanted && self.may_lend(load, now)
    }

    /// May a helper fetch it at all? An owner reads robots.txt itself, since a helper's word about it
    /// would count for a day, and looks itself at a domain that a helper called closed.
    fn is_lendable(&self, fetch: &FetchId, now: Time) -> bool {
        let doubted = self.doubted.get(fetch.domain());
        fetch.is_page() && doubted.is_none_or(|until| *until <= now)
    }

    /// Is this peer at as many fetches as it may be?
    fn has_enough(&self, load: &Load, now: Time) -> bool {
        let is_short = self.short_at.is_some_and(|at| lasts(at, SHORT_FOR, now));
        is_short || self.fetching_here(load) > self.own
    }

    /// The neighbour to be asked next, in turn.
    fn helper(&self, load: &Load, now: Time) -> Option<PeerId> {
        let is_rested = |peer: &&PeerId| self.resting.get(peer).is_none_or(|rest| !rest.lasts(now));
        let rested = || load.neighbours.iter().filter(is_rested);
        let count = rested().count().max(1);
        rested().nth(self.turn % count).copied()
    }

    fn let_rest(&mut self, helper: PeerId, now: Time) {
        self.resting.retain(|_, rest| !rest.is_forgotten(now));
        let rest = Rest::after(self.resting.get(&helper).copied(), now);
        self.resting.insert(helper, rest);
    }

    /// Ends a loan, if it is this helper's.
    fn end_at(&mut self, helper: PeerId, fetch: &FetchId) -> Option<Loan<S>> {
        self.loans.get(fetch).filter(|loan| loan.helper == helper)?;
        self.end(fetch)
    }

    fn end(&mut self, fetch: &FetchId) -> Option<Loan<S>> {
        let loan = self.loans.remove(fetch)?;
        self.asked -= usize::from(loan.answer == Answer::Awaited);
        self.pages -= usize::from(fetch.is_page());
        Some(loan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{Domain, Key, PageId, Slot};

    const NOW: Time = Time::from_millis(1_000_000);
    const OWN: usize = 4;

    fn peer(number: u8) -> PeerId {
        PeerId::at(Key::hash([number]))
    }

    fn domain(number: usize) -> Domain {
        format!("host{number}.example").parse().unwrap()
    }

    fn page(number: usize) -> FetchId {
        let slot = Slot {
            rank: 0,
            sequence: 0,
        };
        FetchId::Page(PageId {
            domain: domain(number),
            slot,
        })
    }

    fn robots(number: usize) -> FetchId {
        FetchId::Robots(domain(number))
    }

    /// A peer with so many fetches under way and much room.
    fn load(fetching: usize, neighbours: &[PeerId]) -> Load<'_> {
        let room = Room {
            in_processing: 0,
            most: 64,
            memory: Memory::Free,
        };
        Load {
            fetching,
            room,
            neighbours,
            progress: Progress::Running,
        }
    }

    fn full(fetching: usize, neighbours: &[PeerId]) -> Load<'_> {
        let mut load = load(fetching, neighbours);
        load.room.memory = Memory::Full;
        load
    }

    fn lending() -> Lending<usize> {
        Lending::new(OWN)
    }

    /// With so many pages lent to one helper, which has taken them.
    fn with_loans(count: usize, helper: PeerId) -> Lending<usize> {
        let mut lending = lending();
        for number in 0..count {
            lending.lend(page(number), helper, Refused::No, number, NOW);
            lending.on_taken(helper, &page(number));
        }
        lending
    }

    #[test]
    fn a_fetch_is_lent_only_when_there_is_enough_to_do_here() {
        let one = [peer(1)];
        let (here, lend) = (Choice::Here, Choice::Lend(peer(1)));
        let mut short = lending();
        short.note_shortage(NOW - Duration::from_millis(999));
        let mut recovered = lending();
        recovered.note_shortage(NOW - Duration::from_millis(1000));
        let mut doubting = lending();
        doubting.doubt(page(9).domain(), NOW);
        let mut sure_again = lending();
        sure_again.doubt(page(9).domain(), NOW - DOUBTED_FOR);
        let free = lending;
        for (case, lending, fetch, load, expected) in [
            ("few fetches", free(), page(9), load(OWN, &one), here),
            ("too many", free(), page(9), load(OWN + 1, &one), lend),
            (
                "and nobody there",
                free(),
                page(9),
                load(OWN + 1, &[]),
                here,
            ),
            (
                "never robots.txt",
                free(),
                robots(9),
                load(OWN + 1, &one),
                Choice::Later(CROWDED),
            ),
            (
                "a helper called the domain closed",
                doubting,
                page(9),
                load(OWN + 1, &one),
                Choice::Later(CROWDED),
            ),
            ("long ago", sure_again, page(9), load(OWN + 1, &one), lend),
            ("no room for pages", free(), page(9), full(1, &one), lend),
            (
                "no share of the computer",
                short,
                page(9),
                load(1, &one),
                lend,
            ),
            ("enough again", recovered, page(9), load(1, &one), here),
        ] {
            let choice = lending.assign(&fetch, Refused::No, &load, NOW);
            assert_eq!(choice, expected, "{case}");
        }
    }

    #[test]
    fn a_refused_domain_is_lent_or_waits() {
        let one = [peer(1)];
        let assign = |lending: &Lending<usize>, neighbours: &[PeerId]| {
            lending.assign(&page(999), Refused::ByVolunteer, &load(1, neighbours), NOW)
        };
        assert_eq!(assign(&lending(), &one), Choice::Lend(peer(1)));
        assert_eq!(assign(&lending(), &[]), Choice::Later(PUT_OFF));
        let mut asking = lending();
        for number in 0..MAX_ASKED {
            asking.lend(page(number), peer(1), Refused::No, number, NOW);
        }
        assert_eq!(assign(&asking, &one), Choice::Lend(peer(1)));
        let lent = with_loans(MAX_LOANS, peer(1));
        assert_eq!(assign(&lent, &one), Choice::Later(PUT_OFF));
    }

    #[test]
    fn a_refused_domain_waits_when_its_helper_has_no_time() {
        let mut lending = lending();
        let two = [peer(1), peer(2)];
        lending.lend(page(1), peer(1), Refused::ByVolunteer, 7, NOW);
        let again = lending.on_turned_away(peer(1), &page(1), &load(1, &two), NOW);
        assert_eq!(again, Some((7, Choice::Later(PUT_OFF))));
    }

    #[test]
    fn helpers_are_asked_in_turn() {
        let three = [peer(1), peer(2), peer(3)];
        let mut lending = lending();
        let mut asked = Vec::new();
        for number in 0..6 {
            let load = load(OWN + 1 + number, &three);
            let Choice::Lend(helper) = lending.assign(&page(number), Refused::No, &load, NOW)
            else {
                panic!("loan {number} was not made");
            };
            lending.lend(page(number), helper, Refused::No, number, NOW);
            lending.on_taken(helper, &page(number));
            asked.push(helper);
        }
        assert_eq!(asked, [three, three].concat());
    }

    #[test]
    fn few_helpers_are_asked_at_a_time_and_few_fetches_lent() {
        let one = [peer(1)];
        let mut lending = lending();
        for number in 0..MAX_ASKED {
            assert!(lending.may_lend(&load(0, &one), NOW));
            lending.lend(page(number), peer(1), Refused::No, number, NOW);
        }
        assert!(!lending.may_lend(&load(0, &one), NOW));
        let busy = load(OWN + MAX_ASKED + 1, &one);
        let choice = lending.assign(&page(9), Refused::No, &busy, NOW);
        assert_eq!(choice, Choice::Here);
        lending.on_taken(peer(1), &page(0));
        assert!(lending.may_lend(&load(0, &one), NOW));
        lending.on_taken(peer(1), &page(0));
        lending.on_taken(peer(2), &page(1));
        lending.lend(page(2), peer(1), Refused::No, 2, NOW);
        assert!(!lending.may_lend(&load(0, &one), NOW), "one answer each");
        assert!(with_loans(MAX_LOANS - 1, peer(1)).may_lend(&load(0, &one), NOW));
        assert!(!with_loans(MAX_LOANS, peer(1)).may_lend(&load(0, &one), NOW));
    }

    #[test]
    fn a_fetch_that_was_turned_away_goes_to_another_helper_here_or_back() {
        let (one, two) = ([peer(1)], [peer(1), peer(2)]);
        for (case, fetch, load, expected) in [
            ("another", page(1), load(1, &two), Choice::Lend(peer(2))),
            (
                "another, full",
                page(1),
                full(1, &two),
                Choice::Lend(peer(2)),
            ),
            ("here", page(1), load(1, &one), Choice::Here),
            ("no room", page(1), full(1, &one), Choice::Back),
            (
                "robots.txt needs none",
                robots(1),
                full(1, &one),
                Choice::Here,
            ),
        ] {
            let mut lending = lending();
            lending.lend(fetch.clone(), peer(1), Refused::No, 7, NOW);
            let again = lending.on_turned_away(peer(1), &fetch, &load, NOW);
            assert_eq!(again, Some((7, expected)), "{case}");
            assert_eq!((lending.lent_count(), lending.asked), (0, 0), "{case}");
        }
    }

    #[test]
    fn pages_at_helpers_take_no_room_until_they_come_back() {
        let one = [peer(1)];
        let mut lending = lending();
        let mut load = load(1, &one);
        load.room.in_processing = load.room.most;
        assert!(lending.is_full(&load));
        lending.lend(page(1), peer(1), Refused::No, 1, NOW);
        assert!(!lending.is_full(&load));
        lending.lend(robots(2), peer(1), Refused::No, 2, NOW);
        assert_eq!((lending.lent_count(), lending.lent_pages()), (2, 1));
        let again = lending.on_turned_away(peer(1), &page(1), &load, NOW);
        assert_eq!(
            again,
            Some((1, Choice::Back)),
            "its own place is taken again"
        );
    }

    #[test]
    fn a_helper_without_time_is_left_alone_for_longer_each_time() {
        let one = [peer(1)];
        let mut lending = lending();
        let mut at = NOW;
        for rest in [100, 200, 400, 800, 1600, 1600] {
            lending.lend(page(1), peer(1), Refused::No, 1, at);
            lending.on_turned_away(peer(1), &page(1), &load(1, &one), at);
            let end = at + Duration::from_millis(rest);
            let just_before = end - Duration::from_millis(1);
            assert!(!lending.may_lend(&load(1, &one), just_before), "{rest} ms");
            assert!(lending.may_lend(&load(1, &one), end), "{rest} ms");
            at = end;
        }
        let late = at + Duration::from_millis(1601);
        lending.lend(page(1), peer(1), Refused::No, 1, late);
        lending.on_turned_away(peer(1), &page(1), &load(1, &one), late);
        let end = late + Duration::from_millis(100);
        assert!(lending.may_lend(&load(1, &one), end), "all was forgotten");
    }

    #[test]
    fn a_result_ends_a_rest() {
        let one = [peer(1)];
        let mut lending = with_loans(1, peer(1));
        lending.lend(page(5), peer(1), Refused::No, 5, NOW);
        lending.on_turned_away(peer(1), &page(5), &load(1, &one), NOW);
        assert!(!lending.may_lend(&load(1, &one), NOW));
        assert_eq!(lending.on_result(peer(1), &page(0)), Some(0));
        assert!(lending.may_lend(&load(1, &one), NOW));
    }

    #[test]
    fn only_the_peer_that_a_fetch_was_lent_to_can_end_the_loan() {
        let both = [peer(1), peer(2)];
        let mut lending = with_loans(1, peer(1));
        assert_eq!(lending.on_result(peer(2), &page(0)), None);
        assert_eq!(lending.on_result(peer(1), &robots(0)), None);
        let foreign = lending.on_turned_away(peer(2), &page(0), &load(1, &both), NOW);
        assert_eq!(foreign, None);
        assert_eq!(lending.on_result(peer(1), &page(0)), Some(0));
        assert_eq!(lending.on_result(peer(1), &page(0)), None, "only once");
    }

    #[test]
    fn a_result_may_come_before_the_answer() {
        let one = [peer(1)];
        let mut lending = lending();
        lending.lend(page(1), peer(1), Refused::No, 1, NOW);
        assert_eq!(lending.on_result(peer(1), &page(1)), Some(1));
        lending.on_taken(peer(1), &page(1));
        assert_eq!(lending.asked, 0);
        let late = lending.on_turned_away(peer(1), &page(1), &load(1, &one), NOW);
        assert_eq!(late, None);
    }

    #[test]
    fn a_loan_is_given_up_after_a_time_and_sooner_if_the_helper_is_gone() {
        let one = [peer(1)];
        for (neighbours, patience) in [(&one[..], OVERDUE), (&[], OVERDUE_IF_GONE)] {
            let mut lending = with_loans(1, peer(1));
            let end = NOW + patience;
            assert_eq!(lending.overdue(&load(1, neighbours), end), []);
            let later = end + Duration::from_millis(1);
            let overdue = lending.overdue(&load(1, neighbours), later);
            assert_eq!(overdue, [(page(0), 0)]);
            assert_eq!(lending.on_result(peer(1), &page(0)), None);
            assert_eq!((lending.lent_count(), lending.lent_pages()), (0, 0));
        }
    }

    #[test]
    fn a_fetch_that_is_lent_again_changes_hands() {
        let mut lending = lending();
        assert_eq!(lending.lend(page(1), peer(1), Refused::No, 1, NOW), None);
        assert_eq!(lending.lend(page(1), peer(2), Refused::No, 2, NOW), Some(1));
        assert_eq!((lending.lent_count(), lending.asked), (1, 1));
        assert_eq!(lending.on_result(peer(1), &page(1)), None);
        assert_eq!(lending.on_result(peer(2), &page(1)), Some(2));
    }

    #[test]
    fn the_frontier_may_have_one_fetch_more_while_a_helper_may_take_it() {
        let one = [peer(1)];
        let limit = |lending: &Lending<usize>, load: Load| lending.fetch_limit(&load, NOW);
        assert_eq!(limit(&lending(), load(0, &[])), OWN);
        assert_eq!(limit(&lending(), load(0, &one)), OWN + 1);
        assert_eq!(limit(&lending(), load(OWN, &one)), OWN + 1);
        assert_eq!(limit(&lending(), load(OWN + 1, &one)), OWN);
        let lent = with_loans(3, peer(1));
        assert_eq!(limit(&lent, load(3 + OWN, &one)), OWN + 3 + 1);
        assert_eq!(limit(&lent, load(3 + OWN + 1, &one)), OWN + 3);
        let still = Load {
            progress: Progress::Still,
            ..load(0, &one)
        };
        assert_eq!(limit(&lent, still), 0);
    }

    #[test]
    fn fetches_for_others_count_but_the_own_crawl_goes_on() {
        let mut lending = lending();
        for limit in [3, 2, 1, 1, 1] {
            lending.on_borrowed();
            assert_eq!(lending.fetch_limit(&load(0, &[]), NOW), limit);
        }
        assert_eq!(lending.fetching_here(&load(1, &[])), 6);
        lending.on_request_ended();
        assert_eq!(lending.fetching_here(&load(1, &[])), 5);
        assert_eq!(lending.borrowed_count(), 5);
    }

    #[test]
    fn a_peer_borrows_while_it_has_less_to_do_than_it_may() {
        let mut busy = lending();
        (0..OWN).for_each(|_| busy.on_borrowed());
        let mut answered = lending();
        (0..OWN).for_each(|_| answered.on_borrowed());
        answered.on_request_ended();
        let crowd = |in_processing| {
            let mut load = load(0, &[]);
            load.room.in_processing = in_processing;
            load
        };
        let still = Load {
            progress: Progress::Still,
            ..load(0, &[])
        };
        let mut doubting = lending();
        doubting.doubt(page(9).domain(), NOW);
        let mut sure_again = lending();
        sure_again.doubt(page(9).domain(), NOW - DOUBTED_FOR);
        let free = lending;
        for (case, lending, load, expected) in [
            ("free", free(), load(OWN - 1, &[]), true),
            ("at enough fetches", free(), load(OWN, &[]), false),
            ("at enough for others", busy, load(0, &[]), false),
            ("one has answered", answered, load(0, &[]), true),
            ("no memory", free(), full(0, &[]), false),
            ("room for one page", free(), crowd(63), true),
            ("no room", free(), crowd(64), false),
            ("paused", free(), still, false),
        ] {
            assert_eq!(lending.may_borrow(&load), expected, "{case}");
        }
    }

    #[test]
    fn what_is_fetched_for_others_takes_room_until_they_know() {
        let mut lending = Lending::<usize>::new(100);
        let mut load = load(0, &[]);
        load.room.in_processing = load.room.most - 1;
        lending.on_borrowed();
        lending.on_request_ended();
        assert!(!lending.may_borrow(&load));
        lending.on_returned();
        assert!(lending.may_borrow(&load));
    }

    #[test]
    fn counts_of_borrowed_fetches_do_not_go_below_nothing() {
        let mut lending = lending();
        lending.on_borrowed();
        lending.on_returned();
        assert_eq!(lending.fetching_here(&load(0, &[])), 0, "its request ended");
        lending.on_request_ended();
        lending.on_returned();
        assert_eq!((lending.requests, lending.borrowed_count()), (0, 0));
    }

    #[test]
    fn fewer_own_fetches_make_a_peer_lend() {
        let one = [peer(1)];
        let mut lending = lending();
        let assign =
            |lending: &Lending<usize>| lending.assign(&page(1), Refused::No, &load(2, &one), NOW);
        assert_eq!(assign(&lending), Choice::Here);
        lending.set_own(1);
        assert_eq!(assign(&lending), Choice::Lend(peer(1)));
    }
}
