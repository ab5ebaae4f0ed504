//! Has links checked that owners have taken, and draws the consequences.
//!
//! A moment after an owner has taken links, the peers right after it must have them, too. One of
//! them is asked, as often as the owner's record makes it worth while. If it lacks some, all of them
//! are asked a moment later. Only their common word counts: one holder cannot accuse an owner, and a
//! change of the ring explains the rest. The links that a liar took are sent to the next owner.

use crate::swarm::{
    REPLICATION_FACTOR,
    links::sent_log,
    orders::Orders,
    trust::{
        book::TrustBook,
        held_links::HeldLinks,
        message::{CHECK, CheckAnswer, EVIDENCE},
        voucher::Voucher,
    },
    wire,
};
use apoidea_crawl::{Matter, Verdict};
use apoidea_model::{PeerId, Time};
use apoidea_overlay::Overlay;
use apoidea_store::Store;
use futures::future;
use rand::seq::IteratorRandom;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{self, Instant},
};

/// Replicas have a link a moment after its owner has taken it.
const GRACE: Duration = Duration::from_secs(1);
/// Between two looks at the same links.
const AGAIN: Duration = Duration::from_secs(2);
/// Looks at the same links, while holders cannot be asked.
const LOOKS: u8 = 4;
/// Checks that wait, and that run at a time. Of more than that, some are not checked.
const MAX_WAITING: usize = 256;
const AT_ONCE: usize = 4;
/// Wishes that wait.
pub(crate) const MAX_WISHES: usize = 256;
/// Vouchers that show the lies of one owner to others.
const MAX_SHOWN: usize = 8;
/// Owners that somebody found wrong.
const MAX_ACCUSED: usize = 256;
/// Others' evidence against one owner that is looked at, in this time.
const MAX_HEARD: u32 = 8;
const HEARD_FOR: Duration = Duration::from_secs(60);
/// Peers after this one that are told of a liar.
const TOLD: usize = 8;

/// A reason to check.
#[derive(Debug)]
pub(crate) enum Wish {
    /// An owner has taken links of this peer.
    Taken(Voucher),
    /// This peer holds the owner's replicas, and has found links missing.
    SeenMissing(Voucher),
    /// Another peer says that links are missing.
    Evidence(Voucher),
}

/// Takes wishes; clones lead to the same checker.
#[derive(Clone)]
pub(crate) struct Checks(pub mpsc::Sender<Wish>);

impl Checks {
    /// Wishes that do not fit are dropped: chance decides about checks anyway.
    pub(crate) fn wish(&self, wish: Wish) {
        let _ = self.0.try_send(wish);
    }
}

/// Checks and judges.
pub(crate) struct Checker {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub orders: Orders,
    pub book: Arc<TrustBook>,
    pub held: Arc<HeldLinks>,
}

/// A check that waits for its time.
struct Due {
    voucher: Voucher,
    origin: Origin,
    at: Instant,
    /// Looks so far.
    looks: u8,
}

/// The source of a suspicion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Chance,
    /// A first look found links missing here.
    Suspicion,
    Others,
}

/// The result of a look at all holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    /// All links are there.
    Right,
    /// So many links are at no holder.
    Missing(u32),
    /// One holder has them and another has not: nobody can be blamed.
    Unclear,
    /// Not every holder could be asked.
    Open,
    /// The owner is not the owner any more.
    Over,
}

/// The state of a running checker.
#[derive(Default)]
struct Waiting {
    due: VecDeque<Due>,
    /// Vouchers of links that were found missing, by owner.
    shown: HashMap<PeerId, Vec<Voucher>>,
    heard: HashMap<PeerId, (Instant, u32)>,
}

impl Checker {
    /// Checks until the task is dropped.
    pub(crate) async fn run(self, mut wishes: mpsc::Receiver<Wish>) {
        let this = Arc::new(self);
        let (mut waiting, mut looks) = (Waiting::default(), JoinSet::new());
        loop {
            while looks.len() < AT_ONCE
                && let Some(due) = waiting.next()
            {
                let this = this.clone();
                looks.spawn(async move {
                    let finding = this.look(&due).await;
                    (due, finding)
                });
            }
            let soonest = waiting.soonest();
            tokio::select! {
                wish = wishes.recv() => match wish {
                    Some(wish) => this.take(wish, &mut waiting),
                    None => return,
                },
                Some(Ok((due, finding))) = looks.join_next() => {
                    this.judge(due, finding, &mut waiting).await;
                }
                () = time::sleep_until(soonest), if looks.len() < AT_ONCE => {}
            }
        }
    }

    fn take(&self, wish: Wish, waiting: &mut Waiting) {
        let (voucher, origin, wait) = match wish {
            Wish::Taken(voucher) if !self.book.wants_check(voucher.owner()) => {
                return drop(voucher);
            }
            Wish::Taken(voucher) => (voucher, Origin::Chance, GRACE),
            Wish::SeenMissing(voucher) => (voucher, Origin::Suspicion, Duration::ZERO),
            Wish::Evidence(voucher) if !waiting.hears(voucher.owner()) => return drop(voucher),
            Wish::Evidence(voucher) => (voucher, Origin::Others, Duration::ZERO),
        };
        let owner = voucher.owner();
        if owner != self.overlay.me() && !self.book.is_distrusted(owner) {
            waiting.add(Due {
                voucher,
                origin,
                at: Instant::now() + wait,
                looks: 0,
            });
        }
    }

    /// Asks one holder by chance; on suspicion all of them.
    async fn look(&self, due: &Due) -> Finding {
        let (owner, links) = (due.voucher.owner(), due.voucher.links());
        let Some((domain, _)) = links.first() else {
            return Finding::Over;
        };
        let Ok(near) = self.overlay.owners(domain.key(), REPLICATION_FACTOR).await else {
            return Finding::Open;
        };
        let holders = match near.split_first() {
            Some((first, holders)) if *first == owner && !holders.is_empty() => holders,
            _ => return Finding::Over,
        };
        let me = self.overlay.me();
        let asked: Vec<PeerId> = match due.origin {
            Origin::Chance if holders.contains(&me) => vec![me],
            Origin::Chance => holders
                .iter()
                .copied()
                .choose(&mut rand::rng())
                .into_iter()
                .collect(),
            Origin::Suspicion | Origin::Others => holders.to_vec(),
        };
        let answers = asked.iter().map(|holder| self.ask(*holder, &due.voucher));
        let answers = future::join_all(answers).await;
        let is_last = due.looks + 1 >= LOOKS;
        let mine = asked.iter().position(|holder| *holder == me);
        let mine = mine.and_then(|place| answers[place]);
        weigh(&answers, mine.filter(|_| is_last))
    }

    /// The word of a holder; none if it has none.
    async fn ask(&self, holder: PeerId, voucher: &Voucher) -> Option<u32> {
        let answer = match holder == self.overlay.me() {
            true => self.held.look(voucher).await,
            false => {
                let ask = wire::encode(voucher);
                let answer = self.overlay.request(holder, CHECK, ask).await.ok()?;
                wire::decode(&answer).ok()?
            }
        };
        match answer {
            CheckAnswer::Missing(missing) => Some(missing.min(voucher.count())),
            CheckAnswer::Unsettled | CheckAnswer::Elsewhere => None,
        }
    }

    async fn judge(&self, mut due: Due, finding: Finding, waiting: &mut Waiting) {
        let (owner, count) = (due.voucher.owner(), due.voucher.count());
        due.looks += 1;
        due.at = Instant::now() + AGAIN;
        match (finding, due.origin) {
            (Finding::Right, Origin::Chance) => {
                self.book.note(owner, Matter::Links, count, 0);
            }
            (Finding::Missing(_), Origin::Chance) => {
                due.origin = Origin::Suspicion;
                waiting.add(due);
            }
            (Finding::Missing(missing), origin) => {
                waiting.show(owner, due.voucher);
                let verdict = self.book.note(owner, Matter::Links, count, missing);
                if verdict == Verdict::Distrusted {
                    let shown = waiting.shown.remove(&owner).unwrap_or_default();
                    waiting.forget(owner);
                    // A peer that is stopping sends nothing more.
                    let _ =
                        sent_log::send_again(&self.store, &self.orders, owner, Time::ZERO).await;
                    if origin != Origin::Others {
                        self.spread(owner, shown).await;
                    }
                }
            }
            (Finding::Open, _) if due.looks < LOOKS => waiting.add(due),
            (Finding::Right | Finding::Unclear | Finding::Open | Finding::Over, _) => {}
        }
    }

    /// Shows the neighbours what was found. They look for themselves, and tell nobody.
    async fn spread(&self, liar: PeerId, shown: Vec<Voucher>) {
        let me = self.overlay.me();
        let position = self.overlay.position(liar);
        let mut told = position.map_or_else(Vec::new, |position| {
            self.overlay.near(position, REPLICATION_FACTOR + 1)
        });
        if let Some(position) = self.overlay.position(me) {
            let next = self.overlay.owners(position, TOLD + 1).await;
            told.extend(next.unwrap_or_default());
        }
        told.sort_unstable();
        told.dedup();
        told.retain(|peer| *peer != me && *peer != liar);
        for voucher in shown {
            let evidence = wire::encode(&voucher);
            let tell = |peer: &PeerId| self.overlay.request(*peer, EVIDENCE, evidence.clone());
            future::join_all(told.iter().map(tell)).await;
        }
    }
}

/// The common word of all holders. At the end, this peer's own look is enough: it cannot lie to
/// itself.
fn weigh(answers: &[Option<u32>], own: Option<u32>) -> Finding {
    let words: Vec<u32> = answers.iter().copied().flatten().collect();
    let is_complete = words.len() == answers.len();
    match (words.iter().min(), words.iter().max()) {
        (Some(0), Some(0)) if is_complete => Finding::Right,
        (Some(0), Some(_)) => Finding::Unclear,
        (Some(missing), _) if is_complete => Finding::Missing(*missing),
        _ => own.map_or(Finding::Open, Finding::Missing),
    }
}

impl Waiting {
    fn add(&mut self, due: Due) {
        if self.due.len() < MAX_WAITING {
            let place = self.due.partition_point(|other| other.at <= due.at);
            self.due.insert(place, due);
        }
    }

    /// The next check whose time has come.
    fn next(&mut self) -> Option<Due> {
        let now = Instant::now();
        let is_due = self.due.front().is_some_and(|due| due.at <= now);
        is_due.then(|| self.due.pop_front()).flatten()
    }

    fn soonest(&self) -> Instant {
        const LATER: Duration = Duration::from_secs(3600);
        let soonest = self.due.front().map(|due| due.at);
        soonest.unwrap_or_else(|| Instant::now() + LATER)
    }

    /// Is one more piece of evidence against this owner looked at?
    fn hears(&mut self, owner: PeerId) -> bool {
        if self.heard.len() >= MAX_ACCUSED {
            self.heard
                .retain(|_, (since, _)| since.elapsed() < HEARD_FOR);
        }
        if self.heard.len() >= MAX_ACCUSED && !self.heard.contains_key(&owner) {
            return false;
        }
        let heard = self.heard.entry(owner).or_insert((Instant::now(), 0));
        if heard.0.elapsed() >= HEARD_FOR {
            *heard = (Instant::now(), 0);
        }
        heard.1 += 1;
        heard.1 <= MAX_HEARD
    }

    fn show(&mut self, owner: PeerId, voucher: Voucher) {
        if self.shown.len() >= MAX_ACCUSED && !self.shown.contains_key(&owner) {
            self.shown.clear();
        }
        let shown = self.shown.entry(owner).or_default();
        if shown.len() < MAX_SHOWN && !shown.contains(&voucher) {
            shown.push(voucher);
        }
    }

    fn forget(&mut self, owner: PeerId) {
        self.due.retain(|due| due.voucher.owner() != owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        testing::{Log, TestPeer, link, obedient_crawler, peer, signer_at},
        trust::{
            book::Openness,
            voucher::{Seal, fingerprints},
        },
    };
    use apoidea_model::CrawlId;
    use apoidea_overlay::{RequestError, Signer};
    use apoidea_store::{Commit, SentBatch};
    use std::sync::Mutex;

    const HOLDERS: [u8; 2] = [0x50, 0x60];

    /// A peer that sends links to an owner, whose replicas two others hold.
    struct Fixture {
        me: TestPeer,
        mine: Signer,
        owner: Signer,
        checker: Checker,
        log: Log,
        /// What the holders say.
        words: Arc<Mutex<Vec<Option<CheckAnswer>>>>,
    }

    fn fixture() -> Fixture {
        let (mine, owner) = (signer_at(0xc0), signer_at(0x40));
        let members = [mine.me(), owner.me(), peer(0x50), peer(0x60), peer(0x80)];
        let (me, inbox) = TestPeer::owner(members);
        let log = obedient_crawler(inbox);
        let words = Arc::new(Mutex::new(vec![Some(CheckAnswer::Missing(0)); 2]));
        let said = words.clone();
        me.ring.answer_with(move |to, kind, _| {
            let holder = HOLDERS.iter().position(|holder| peer(*holder) == to);
            let gone = || RequestError::Unreachable(String::new());
            match kind {
                CHECK => {
                    let word = said.lock().unwrap()[holder.unwrap()];
                    word.map(|word| wire::encode(&word)).ok_or_else(gone)
                }
                _ => Ok(Default::default()),
            }
        });
        let checker = Checker {
            overlay: me.ring.clone(),
            store: me.store.clone(),
            orders: me.orders.clone(),
            book: Arc::new(TrustBook::open(me.store.clone(), Openness::Open).unwrap()),
            held: Arc::new(me.held_links()),
        };
        Fixture {
            me,
            mine,
            owner,
            checker,
            log,
            words,
        }
    }

    impl Fixture {
        fn say(&self, words: [Option<CheckAnswer>; 2]) {
            *self.words.lock().unwrap() = words.to_vec();
        }

        fn voucher(&self) -> Voucher {
            let domain = self.me.ring.domain_of(self.owner.me());
            let urls: Vec<_> = (0..4).map(|page| link(&domain, page).url).collect();
            let links = fingerprints(urls.iter());
            let seal = Seal::set(&self.owner, self.mine.me(), &links);
            Voucher::new(self.owner.me(), links, seal, &self.mine).unwrap()
        }

        /// Takes a wish, and looks until nothing waits.
        async fn check(&self, wish: Wish) {
            let mut waiting = Waiting::default();
            self.checker.take(wish, &mut waiting);
            while let Some(due) = waiting.due.pop_front() {
                let finding = self.checker.look(&due).await;
                self.checker.judge(due, finding, &mut waiting).await;
            }
        }

        fn is_liar(&self) -> bool {
            self.checker.book.is_distrusted(self.owner.me())
        }
    }

    #[tokio::test]
    async fn an_owner_that_has_all_links_is_right_and_one_holder_is_asked() {
        let fixture = fixture();
        fixture.check(Wish::Taken(fixture.voucher())).await;
        let standing = &fixture.checker.book.standings()[0];
        assert_eq!((standing.checked, standing.right), (1, 1));
        assert_eq!(fixture.me.ring.asked(CHECK).len(), 1);
    }

    #[tokio::test]
    async fn links_that_no_holder_has_were_dropped_and_are_sent_again() {
        let fixture = fixture();
        let domain = fixture.me.ring.domain_of(fixture.owner.me());
        let mut commit = Commit::new();
        for (number, owner) in [(1, fixture.owner.me()), (2, peer(0x80))] {
            commit.put_sent(&SentBatch {
                number,
                owner,
                crawl: CrawlId::OPEN,
                links: vec![link(&domain, number), link(&domain, number + 9)],
            });
        }
        fixture.me.store.apply(&commit).unwrap();
        fixture.say([Some(CheckAnswer::Missing(4)), Some(CheckAnswer::Missing(3))]);
        fixture.check(Wish::Taken(fixture.voucher())).await;
        assert!(fixture.is_liar());
        let lies = &fixture.checker.book.standings()[0].lies;
        assert_eq!(lies[0].count, 3, "those that all of them lack");
        assert_eq!(*fixture.log.lock().unwrap(), ["send again 2"]);
        let left = fixture.me.store.sent_numbers().unwrap();
        assert_eq!(left, [2], "of other owners");
        let told = fixture.me.ring.asked(EVIDENCE);
        assert!(HOLDERS.iter().all(|holder| told.contains(&peer(*holder))));
        assert!(!told.contains(&fixture.owner.me()));
    }

    #[tokio::test]
    async fn the_word_of_one_holder_is_not_enough() {
        let fixture = fixture();
        for other in [
            Some(CheckAnswer::Missing(0)),
            Some(CheckAnswer::Unsettled),
            None,
        ] {
            fixture.say([Some(CheckAnswer::Missing(4)), other]);
            fixture.check(Wish::SeenMissing(fixture.voucher())).await;
            assert!(!fixture.is_liar(), "{other:?}");
        }
        assert!(fixture.checker.book.standings().is_empty());
    }

    #[tokio::test]
    async fn the_evidence_of_others_is_looked_at_and_not_passed_on() {
        let fixture = fixture();
        fixture.check(Wish::Evidence(fixture.voucher())).await;
        assert!(!fixture.is_liar(), "the links are there");
        assert_eq!(
            fixture.me.ring.asked(CHECK).len(),
            2,
            "all holders are asked"
        );
        fixture.say([Some(CheckAnswer::Missing(4)); 2]);
        fixture.check(Wish::Evidence(fixture.voucher())).await;
        assert!(fixture.is_liar());
        assert!(fixture.me.ring.asked(EVIDENCE).is_empty());
    }

    #[tokio::test]
    async fn an_owner_that_lost_its_place_is_not_blamed() {
        let fixture = fixture();
        fixture.say([Some(CheckAnswer::Missing(4)); 2]);
        let mut members = fixture.me.ring.members();
        members.retain(|member| *member != fixture.owner.me());
        let voucher = fixture.voucher();
        fixture.me.ring.set_members(members);
        fixture.check(Wish::Taken(voucher)).await;
        assert!(fixture.me.ring.asked(CHECK).is_empty() && !fixture.is_liar());
    }

    #[tokio::test]
    async fn evidence_without_end_is_not_heard() {
        let fixture = fixture();
        let mut waiting = Waiting::default();
        for _ in 0..50 {
            let wish = Wish::Evidence(fixture.voucher());
            fixture.checker.take(wish, &mut waiting);
        }
        assert_eq!(waiting.due.len(), MAX_HEARD as usize);
    }

    #[test]
    fn an_own_look_is_enough_where_the_other_holder_is_gone() {
        assert_eq!(weigh(&[Some(0)], None), Finding::Right);
        assert_eq!(weigh(&[Some(2), Some(5)], None), Finding::Missing(2));
        assert_eq!(weigh(&[Some(2), Some(0)], Some(2)), Finding::Unclear);
        assert_eq!(weigh(&[Some(2), None], None), Finding::Open);
        assert_eq!(weigh(&[Some(2), None], Some(2)), Finding::Missing(2));
        assert_eq!(weigh(&[None, None], None), Finding::Open);
    }
}
