//! The place of every page between its fetch and the moment when no crash can lose it (Apoidea's
//! Processing-Jobs).
//!
//! A page is in exactly one [`Stage`]. It stays in its domain's queue on disk, and is not fetched
//! again, until its records are durable.
//!
//! ```text
//!  begin ─▶ fetching ── answered ──▶ processing ── processed ──▶ processed
//!              │                         │                          │ write (its links are queued)
//!              │ settle (no page)        │                          ▼
//!              │                         │ end                   writing
//!              ├─────────────▶ done ◀────┼──────── durable ─────────┘
//!              │ end            │ tellable (its round is held)
//!              ▼                ├──▶ told: nothing left to do
//!        back in its queue      └──▶ errand (its links wait in the outbox) ── delivered ──▶ told
//! ```
//!
//! The number of pages before *done* and the memory they take are bounded: beyond that no fetch
//! starts. A value without clock or disk: the crawler reports events and asks what follows.

use apoidea_model::{Domain, PageId, Slot};
use std::collections::{HashMap, HashSet, VecDeque};

/// Most bytes of bodies and records in processing: a few seconds of a fast connection, and a
/// quarter of what the smallest peer may take.
const MAX_BYTES: u64 = 24 << 20;

/// The place of a page. `P` is what its processing made of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage<P> {
    /// Its server is being asked, here or by a helper.
    Fetching,
    /// Its server has answered. A body that is put aside on the disk takes no bytes.
    Processing {
        /// Memory that it takes.
        bytes: u64,
    },
    /// Its records are made. Its links enter their queues next, once the disk works.
    Processed {
        /// Memory that it takes.
        bytes: u64,
        /// The result.
        page: Box<P>,
    },
    /// Its links are in their queues, and its records on their way to the disk.
    Writing {
        /// Memory that it takes.
        bytes: u64,
        /// The place of its links.
        sent: Sent,
    },
    /// It is settled and durable here. The replicas do not know yet.
    Done {
        /// The place of its links.
        sent: Sent,
    },
    /// The replicas know. Some of its links wait in this record of the outbox.
    Errand {
        /// The number of the record.
        record: u64,
    },
}

/// The place of a page's links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// The outbox record with the links for other owners.
    pub record: Option<u64>,
    /// The round that brings links to other domains of this peer to their replicas; zero without
    /// such links.
    pub round: u64,
}

/// The stages of all pages under way.
#[derive(Debug)]
pub struct Pages<P> {
    domains: HashMap<Domain, DomainPages<P>>,
    /// Processed pages, the first to come first.
    processed: VecDeque<PageId>,
    /// Done pages, the first to come first.
    done: VecDeque<PageId>,
    /// Errands by their outbox record.
    errands: HashMap<u64, PageId>,
    load: PagesLoad,
}

/// The pages of one domain.
#[derive(Debug)]
struct DomainPages<P> {
    stages: HashMap<Slot, Stage<P>>,
    in_processing: usize,
}

/// The pages in processing, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PagesLoad {
    /// From the start of the fetch until they are durable.
    pub in_processing: usize,
    /// Of these, pages that their servers have answered.
    pub answered: usize,
    /// Memory that they take.
    pub bytes: u64,
}

impl<P> Stage<P> {
    /// Would a crash repeat the fetch?
    pub fn is_in_processing(&self) -> bool {
        !matches!(self, Stage::Done { .. } | Stage::Errand { .. })
    }

    /// Memory that the page takes, once its server has answered.
    fn bytes(&self) -> Option<u64> {
        match self {
            Stage::Processing { bytes }
            | Stage::Processed { bytes, .. }
            | Stage::Writing { bytes, .. } => Some(*bytes),
            Stage::Fetching | Stage::Done { .. } | Stage::Errand { .. } => None,
        }
    }
}

impl<P> Default for Pages<P> {
    fn default() -> Self {
        Pages {
            domains: HashMap::new(),
            processed: VecDeque::new(),
            done: VecDeque::new(),
            errands: HashMap::new(),
            load: PagesLoad::default(),
        }
    }
}

impl PagesLoad {
    /// Does all memory for pages in processing belong to some?
    pub fn is_memory_full(&self) -> bool {
        self.bytes >= MAX_BYTES
    }
}

impl<P> Pages<P> {
    /// Most pages in processing, unless there may be more fetches than that.
    pub const MAX: usize = 1024;

    /// Most pages in processing in a swarm, where others repeat them after a crash: three pages on
    /// their way to the disk behind every fetch, and enough that few fetches need not wait.
    pub fn most_in_swarm(fetches: usize) -> usize {
        (4 * fetches).max(64)
    }

    /// The stage of a page, if it is under way.
    pub fn stage(&self, page: &PageId) -> Option<&Stage<P>> {
        self.domains.get(&page.domain)?.stages.get(&page.slot)
    }

    /// The pages in processing, counted.
    pub fn load(&self) -> PagesLoad {
        self.load
    }

    /// Is a page of this domain in processing?
    pub fn has(&self, domain: &Domain) -> bool {
        self.domains
            .get(domain)
            .is_some_and(|pages| pages.in_processing > 0)
    }

    /// The pages of one domain that are in processing.
    pub fn of(&self, domain: &Domain) -> HashSet<Slot> {
        let stages = self.domains.get(domain).map(|pages| pages.stages.iter());
        stages
            .into_iter()
            .flatten()
            .filter(|(_, stage)| stage.is_in_processing())
            .map(|(slot, _)| *slot)
            .collect()
    }

    /// The domains of all pages in processing.
    pub fn domains(&self) -> impl Iterator<Item = &Domain> {
        self.domains
            .iter()
            .filter(|(_, pages)| pages.in_processing > 0)
            .map(|(domain, _)| domain)
    }

    /// A fetch begins.
    pub fn begin(&mut self, page: &PageId) {
        if !self.stage(page).is_some_and(Stage::is_in_processing) {
            self.set(page, Stage::Fetching);
        }
    }

    /// The server has answered with a page of this size, or its body was put aside.
    pub fn answered(&mut self, page: &PageId, bytes: u64) {
        if let Some(Stage::Fetching | Stage::Processing { .. }) = self.stage(page) {
            self.set(page, Stage::Processing { bytes });
        }
    }

    /// The records of a page are made, and take so much memory.
    pub fn processed(&mut self, page: PageId, result: P, bytes: u64) {
        let result = Box::new(result);
        self.set(
            &page,
            Stage::Processed {
                bytes,
                page: result,
            },
        );
        self.processed.push_back(page);
    }

    /// The page whose links enter their queues next.
    pub fn next_processed(&mut self) -> Option<(&PageId, &P)> {
        while let Some(page) = self.processed.front()
            && !matches!(self.stage(page), Some(Stage::Processed { .. }))
        {
            self.processed.pop_front();
        }
        let page = self.processed.front()?;
        match self.stage(page)? {
            Stage::Processed { page: result, .. } => Some((page, result)),
            _ => None,
        }
    }

    /// The links of that page are in their queues: its records are written now.
    pub fn write_next(&mut self, sent: Sent) -> Option<(PageId, P)> {
        self.next_processed()?;
        let page = self.processed.pop_front()?;
        let bytes = self.stage(&page)?.bytes().unwrap_or(0);
        match self.set(&page, Stage::Writing { bytes, sent }) {
            Some(Stage::Processed { page: result, .. }) => Some((page, *result)),
            _ => None,
        }
    }

    /// The records of a page are on the disk: it is done. Gives whether it was being written.
    pub fn durable(&mut self, page: &PageId) -> bool {
        let Some(Stage::Writing { sent, .. }) = self.stage(page) else {
            return false;
        };
        let sent = *sent;
        self.settle(page, sent);
        true
    }

    /// A URL is done, with or without a page.
    pub fn settle(&mut self, page: &PageId, sent: Sent) {
        self.set(page, Stage::Done { sent });
        self.done.push_back(page.clone());
    }

    /// A page leaves processing without a result: it is still in its queue.
    pub fn end(&mut self, page: &PageId) {
        if self.stage(page).is_some_and(Stage::is_in_processing) {
            self.remove(page);
        }
    }

    /// Takes out the done pages that the replicas may learn of, now that everything up to the round
    /// `held` is with them.
    pub fn tellable(&mut self, held: u64) -> Vec<(PageId, Sent)> {
        self.take_done(|_, sent| sent.round <= held)
    }

    /// Takes out done pages.
    pub fn take_done(
        &mut self,
        mut is_taken: impl FnMut(&PageId, Sent) -> bool,
    ) -> Vec<(PageId, Sent)> {
        let mut taken = Vec::new();
        for page in std::mem::take(&mut self.done) {
            let Some(Stage::Done { sent }) = self.stage(&page) else {
                continue;
            };
            let sent = *sent;
            if is_taken(&page, sent) {
                self.remove(&page);
                taken.push((page, sent));
            } else {
                self.done.push_back(page);
            }
        }
        taken
    }

    /// Takes out done pages of domains none of whose pages is in processing.
    pub fn take_done_at_rest(
        &mut self,
        mut is_taken: impl FnMut(&PageId, Sent) -> bool,
    ) -> Vec<(PageId, Sent)> {
        let busy: HashSet<Domain> = self.domains().cloned().collect();
        self.take_done(|page, sent| !busy.contains(&page.domain) && is_taken(page, sent))
    }

    /// Takes out all done pages, and those being written: the peer stops.
    pub fn take_all_done(&mut self) -> Vec<(PageId, Sent)> {
        let pages = self.domains.iter().flat_map(|(domain, pages)| {
            let writing = pages.stages.iter().filter_map(|(slot, stage)| match stage {
                Stage::Writing { sent, .. } => Some((*slot, *sent)),
                _ => None,
            });
            writing.map(|(slot, sent)| {
                let domain = domain.clone();
                (PageId { domain, slot }, sent)
            })
        });
        let writing: Vec<(PageId, Sent)> = pages.collect();
        writing.iter().for_each(|(page, _)| _ = self.remove(page));
        let done = self.take_done(|_, _| true);
        writing.into_iter().chain(done).collect()
    }

    /// The replicas learn that a page is done, and its links wait in the outbox.
    pub fn send_on_errand(&mut self, page: PageId, record: u64) {
        if !self.stage(&page).is_some_and(Stage::is_in_processing) {
            self.set(&page, Stage::Errand { record });
        }
        self.errands.insert(record, page);
    }

    /// The links of an outbox record are with their owners. Gives the page they were found on.
    pub fn delivered(&mut self, record: u64) -> Option<PageId> {
        let page = self.errands.remove(&record)?;
        if let Some(Stage::Errand { record: now }) = self.stage(&page)
            && *now == record
        {
            self.remove(&page);
        }
        Some(page)
    }

    /// Are the links of this page in the outbox?
    pub fn is_on_errand(&self, page: &PageId) -> bool {
        matches!(self.stage(page), Some(Stage::Errand { .. }))
    }

    /// Does a page of this domain wait to be told to the replicas?
    pub fn has_untold(&self, domain: &Domain) -> bool {
        let pages = self.domains.get(domain);
        pages.is_some_and(|pages| {
            let mut stages = pages.stages.values();
            stages.any(|stage| matches!(stage, Stage::Done { .. }))
        })
    }

    /// Is no page done that the replicas do not know of?
    pub fn is_all_told(&self) -> bool {
        self.done.is_empty()
    }

    /// Does no page under way wait for anything, its links included?
    pub fn is_empty(&self) -> bool {
        self.load.in_processing == 0 && self.done.is_empty() && self.errands.is_empty()
    }

    /// Puts a page into a stage; gives its last one.
    fn set(&mut self, page: &PageId, stage: Stage<P>) -> Option<Stage<P>> {
        let before = self.remove(page);
        let is_in_processing = stage.is_in_processing();
        if is_in_processing {
            self.load.in_processing += 1;
            self.load.answered += usize::from(stage.bytes().is_some());
            let bytes = stage.bytes().unwrap_or(0);
            self.load.bytes = self.load.bytes.saturating_add(bytes);
        }
        let pages = self.domains.entry(page.domain.clone()).or_default();
        pages.in_processing += usize::from(is_in_processing);
        pages.stages.insert(page.slot, stage);
        before
    }

    fn remove(&mut self, page: &PageId) -> Option<Stage<P>> {
        let pages = self.domains.get_mut(&page.domain)?;
        let stage = pages.stages.remove(&page.slot)?;
        if stage.is_in_processing() {
            pages.in_processing -= 1;
            self.load.in_processing -= 1;
            self.load.answered -= usize::from(stage.bytes().is_some());
            self.load.bytes = self.load.bytes.saturating_sub(stage.bytes().unwrap_or(0));
        }
        if pages.stages.is_empty() {
            self.domains.remove(&page.domain);
        }
        Some(stage)
    }
}

impl<P> Default for DomainPages<P> {
    fn default() -> Self {
        DomainPages {
            stages: HashMap::new(),
            in_processing: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(host: u8, sequence: u64) -> PageId {
        PageId {
            domain: format!("host{host}.test").parse().unwrap(),
            slot: Slot { rank: 0, sequence },
        }
    }

    fn sent(record: Option<u64>, round: u64) -> Sent {
        Sent { record, round }
    }

    /// Brings a page to the disk.
    fn write(pages: &mut Pages<u32>, page: &PageId, sent: Sent) {
        pages.begin(page);
        pages.answered(page, 100);
        pages.processed(page.clone(), 7, 40);
        let written = pages.write_next(sent).unwrap();
        assert_eq!(written, (page.clone(), 7));
    }

    #[test]
    fn a_page_passes_its_stages_one_after_the_other() {
        let mut pages = Pages::<u32>::default();
        let page = page(1, 1);
        pages.begin(&page);
        assert_eq!(pages.stage(&page), Some(&Stage::Fetching));
        pages.answered(&page, 100);
        assert_eq!(pages.stage(&page), Some(&Stage::Processing { bytes: 100 }));
        pages.processed(page.clone(), 7, 40);
        assert_eq!(pages.next_processed(), Some((&page, &7)));
        let sent = sent(Some(3), 2);
        assert_eq!(pages.write_next(sent), Some((page.clone(), 7)));
        assert_eq!(
            pages.stage(&page),
            Some(&Stage::Writing { bytes: 40, sent })
        );
        assert!(pages.durable(&page) && !pages.durable(&page));
        assert_eq!(pages.stage(&page), Some(&Stage::Done { sent }));
        assert_eq!(pages.tellable(1), [], "its round is not held yet");
        assert_eq!(pages.tellable(2), [(page.clone(), sent)]);
        pages.send_on_errand(page.clone(), 3);
        assert!(pages.is_on_errand(&page) && !pages.is_empty());
        assert_eq!(pages.delivered(3), Some(page));
        assert!(pages.is_empty() && pages.delivered(3).is_none());
    }

    #[test]
    fn large_pages_fill_the_memory_until_they_shrink_or_go() {
        let mut pages = Pages::<u32>::default();
        for sequence in 0..12 {
            pages.begin(&page(1, sequence));
            pages.answered(&page(1, sequence), 2 << 20);
        }
        assert!(pages.load().is_memory_full());
        pages.answered(&page(1, 3), 0);
        assert!(!pages.load().is_memory_full(), "one was put aside");
        pages.answered(&page(1, 3), 2 << 20);
        pages.end(&page(1, 4));
        pages.end(&page(1, 4));
        assert!(!pages.load().is_memory_full(), "one has ended");
        (0..12).for_each(|sequence| pages.end(&page(1, sequence)));
        assert_eq!(pages.load(), PagesLoad::default());
        assert!(!pages.has(&page(1, 0).domain) && pages.is_empty());
    }

    #[test]
    fn a_page_counts_as_answered_from_the_answer_until_it_is_durable() {
        let mut pages = Pages::<u32>::default();
        let answered = |pages: &Pages<u32>| (pages.load().answered, pages.load().in_processing);
        (0..3).for_each(|sequence| pages.begin(&page(1, sequence)));
        assert_eq!(answered(&pages), (0, 3));
        pages.answered(&page(1, 0), 0);
        pages.answered(&page(1, 0), 5);
        pages.answered(&page(1, 1), 7);
        pages.begin(&page(1, 1));
        assert_eq!(answered(&pages), (2, 3));
        pages.processed(page(1, 0), 1, 5);
        pages.write_next(Sent::default());
        assert_eq!(answered(&pages), (2, 3));
        pages.durable(&page(1, 0));
        assert_eq!(answered(&pages), (1, 2));
    }

    #[test]
    fn a_domain_has_pages_in_processing_until_the_last_is_durable() {
        let mut pages = Pages::<u32>::default();
        let domain = page(1, 1).domain;
        write(&mut pages, &page(1, 1), Sent::default());
        pages.begin(&page(1, 2));
        assert_eq!(pages.of(&domain).len(), 2);
        pages.durable(&page(1, 1));
        assert_eq!(pages.of(&domain), HashSet::from([page(1, 2).slot]));
        assert_eq!(pages.domains().collect::<Vec<_>>(), [&domain]);
        pages.end(&page(1, 2));
        assert!(!pages.has(&domain) && pages.has_untold(&domain));
        assert_eq!(pages.domains().count(), 0);
    }

    #[test]
    fn a_url_without_a_page_is_done_at_once() {
        let mut pages = Pages::<u32>::default();
        pages.begin(&page(1, 1));
        pages.settle(&page(1, 1), Sent::default());
        pages.settle(&page(1, 2), Sent::default());
        assert_eq!(pages.load(), PagesLoad::default());
        let told: Vec<PageId> = pages
            .tellable(0)
            .into_iter()
            .map(|(page, _)| page)
            .collect();
        assert_eq!(told, [page(1, 1), page(1, 2)]);
        assert!(pages.is_all_told());
    }

    #[test]
    fn pages_that_failed_to_be_written_keep_their_turn() {
        let mut pages = Pages::<u32>::default();
        for sequence in 0..3 {
            pages.processed(page(1, sequence), 0, 1);
        }
        assert_eq!(pages.next_processed(), Some((&page(1, 0), &0)));
        assert_eq!(pages.next_processed(), Some((&page(1, 0), &0)));
        pages.end(&page(1, 0));
        assert_eq!(pages.next_processed(), Some((&page(1, 1), &0)));
    }

    #[test]
    fn done_pages_leave_with_their_domain_once_it_is_at_rest() {
        let mut pages = Pages::<u32>::default();
        pages.settle(&page(1, 1), sent(None, 9));
        pages.settle(&page(2, 1), sent(None, 9));
        pages.begin(&page(2, 2));
        let taken = pages.take_done_at_rest(|_, _| true);
        assert_eq!(taken, [(page(1, 1), sent(None, 9))]);
        pages.end(&page(2, 2));
        assert_eq!(pages.take_done_at_rest(|_, _| false), []);
        assert_eq!(pages.take_done_at_rest(|_, _| true).len(), 1);
    }

    #[test]
    fn a_peer_that_stops_tells_what_is_being_written_too() {
        let mut pages = Pages::<u32>::default();
        write(&mut pages, &page(1, 1), sent(None, 9));
        write(&mut pages, &page(1, 2), sent(None, 9));
        pages.durable(&page(1, 2));
        pages.begin(&page(1, 3));
        let told = pages.take_all_done();
        assert_eq!(told.len(), 2);
        assert_eq!(pages.load().in_processing, 1, "a fetch is not done");
    }

    #[test]
    fn a_page_that_is_fetched_again_does_not_lose_its_errand() {
        let mut pages = Pages::<u32>::default();
        pages.settle(&page(1, 1), sent(Some(5), 0));
        pages.tellable(0);
        pages.send_on_errand(page(1, 1), 5);
        pages.begin(&page(1, 1));
        assert!(pages.has(&page(1, 1).domain));
        assert_eq!(pages.delivered(5), Some(page(1, 1)));
        assert_eq!(pages.stage(&page(1, 1)), Some(&Stage::Fetching));
    }

    #[test]
    fn in_a_swarm_fewer_pages_are_in_processing() {
        for (fetches, most) in [(1, 64), (16, 64), (32, 128), (100, 400)] {
            assert_eq!(Pages::<u32>::most_in_swarm(fetches), most);
        }
    }

    #[derive(Debug, Clone)]
    enum Event {
        Begin(u64),
        Answered(u64, u64),
        Processed(u64),
        Write(Option<u64>, u64),
        Durable(u64),
        Settle(u64),
        End(u64),
        Tell(u64),
        Delivered(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        let page = 0..6u64;
        prop_oneof![
            page.clone().prop_map(Event::Begin),
            (page.clone(), 0..(30u64 << 20)).prop_map(|(page, bytes)| Event::Answered(page, bytes)),
            page.clone().prop_map(Event::Processed),
            (prop::option::of(0..9u64), 0..4u64).prop_map(|(r, round)| Event::Write(r, round)),
            page.clone().prop_map(Event::Durable),
            page.clone().prop_map(Event::Settle),
            page.prop_map(Event::End),
            (0..4u64).prop_map(Event::Tell),
            (0..9u64).prop_map(Event::Delivered),
        ]
    }

    fn id(number: u64) -> PageId {
        page((number % 2) as u8, number)
    }

    proptest! {
        /// Whatever happens, the counts are those of the stages, a page that was done is told or
        /// still waits to be, and an errand ends with its record.
        #[test]
        fn no_sequence_of_events_loses_a_page(events in prop::collection::vec(event(), 0..120)) {
            let mut pages = Pages::<u64>::default();
            let (mut done, mut told, mut records) = (0, 0, HashSet::new());
            for event in events {
                match event {
                    Event::Begin(page) => {
                        // Only the queue begins a fetch, and done pages are not in it.
                        if !matches!(pages.stage(&id(page)), Some(Stage::Done { .. })) {
                            pages.begin(&id(page));
                        }
                    }
                    Event::Answered(page, bytes) => pages.answered(&id(page), bytes),
                    Event::Processed(page) => {
                        if let Some(Stage::Processing { .. }) = pages.stage(&id(page)) {
                            pages.processed(id(page), page, 10);
                        }
                    }
                    Event::Write(record, round) => {
                        if let Some((page, number)) = pages.write_next(sent(record, round)) {
                            prop_assert_eq!(page, id(number));
                        }
                    }
                    Event::Durable(page) => done += usize::from(pages.durable(&id(page))),
                    Event::Settle(page) => {
                        if let Some(Stage::Fetching) = pages.stage(&id(page)) {
                            pages.settle(&id(page), Sent::default());
                            done += 1;
                        }
                    }
                    Event::End(page) => pages.end(&id(page)),
                    Event::Tell(held) => {
                        for (page, sent) in pages.tellable(held) {
                            told += 1;
                            prop_assert!(sent.round <= held);
                            if let Some(record) = sent.record.filter(|r| !records.contains(r)) {
                                records.insert(record);
                                pages.send_on_errand(page, record);
                            }
                        }
                    }
                    Event::Delivered(record) => {
                        prop_assert_eq!(pages.delivered(record).is_some(), records.remove(&record));
                    }
                }
                let stages: Vec<_> = (0..6).filter_map(|page| pages.stage(&id(page))).collect();
                let in_processing = stages.iter().filter(|stage| stage.is_in_processing());
                let expected = PagesLoad {
                    in_processing: in_processing.clone().count(),
                    answered: in_processing.clone().filter(|s| s.bytes().is_some()).count(),
                    bytes: in_processing.filter_map(|stage| stage.bytes()).sum(),
                };
                prop_assert_eq!(pages.load(), expected);
                let of: usize = [0, 1].iter().map(|&host| pages.of(&page(host, 0).domain).len()).sum();
                prop_assert_eq!(of, expected.in_processing);
                let waiting = stages.iter().filter(|s| matches!(s, Stage::Done { .. })).count();
                prop_assert_eq!(done, told + waiting);
            }
            told += pages.take_done(|_, _| true).len();
            prop_assert_eq!(done, told);
        }
    }
}
