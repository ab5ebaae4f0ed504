//! Carries links from the outbox to the owners of their domains, in batches.
//!
//! A link leaves the outbox when its owner has acknowledged it, which the owner does when it is
//! durable there. The outbox is read from the front again and again. An owner that cannot be reached
//! holds nobody else up: it is asked rarely, and links for it are held beside the outbox.

use crate::{
    sink::Sink,
    swarm::{
        links::{
            absences::Absences,
            answer::taken,
            message::{LINKS, LinksAnswer},
            sent_log::SentLog,
            takers::Takers,
        },
        orders::Orders,
        tenancy::Tenancy,
        trust::{
            checker::{Checks, Wish},
            voucher::{Seal, Voucher, fingerprints},
        },
        wire,
    },
};
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, PeerId};
use apoidea_overlay::{Overlay, Signer};
use apoidea_store::{Commit, CommitError, OutboxRecord, Store};
use futures::{StreamExt, stream};
use std::{
    collections::{BTreeSet, HashMap, HashSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};
use tokio::{sync::Notify, time};

/// Links collect for so long, so that batches are large; a link is in no hurry.
const COLLECT: Duration = Duration::from_secs(1);
/// After an owner could not be reached.
const AGAIN: Duration = Duration::from_secs(1);
/// Records read at a time.
const AT_ONCE: usize = 512;
/// Batches under way at a time.
const PARALLEL: usize = 8;

/// Pages with links that are held; about 500 MiB. Further links stay in the outbox, which stops the
/// peer when it is full.
const MAX_HELD: u64 = 1_000_000;
/// Held links are tried again so often, some at a time.
const RELEASE_EVERY: Duration = Duration::from_secs(60);

/// Empties the outbox.
pub(crate) struct Courier {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub orders: Orders,
    pub tenancy: Arc<Tenancy>,
    /// Takes the numbers of delivered records.
    pub delivered: Sink<Vec<u64>>,
    /// Rung when there is something to carry.
    pub bell: Arc<Notify>,
    /// What owners have acknowledged.
    pub sent: SentLog,
    /// Sees to it that they have it.
    pub checks: Checks,
    /// Reads their signatures.
    pub signer: Signer,
    /// Owners that do not answer.
    pub absences: Absences,
    /// Owners that have acknowledged something lately.
    pub takers: Arc<Takers>,
}

/// The links of some records, sorted.
#[derive(Debug, Default)]
struct Sorted {
    batches: Vec<(Addressee, Vec<Place>)>,
    /// The places of links whose owner is absent.
    absent: HashSet<Place>,
}

/// How a round went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Clear,
    SomeLeft,
}

/// The peer and the crawl that a batch is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Addressee {
    owner: PeerId,
    crawl: CrawlId,
}

/// The place of a link in the records that were read: record and place in it.
type Place = (usize, usize);

/// The links of a batch that are the sender's no more.
#[derive(Debug, Default)]
struct Accepted {
    places: Vec<Place>,
    /// Those of them that another peer has taken, with its signed word.
    taken: Option<(Voucher, Vec<Place>)>,
}

impl Courier {
    /// Carries until the task is dropped.
    pub(crate) async fn run(self) {
        let (mut released, mut release_at) = (None, time::Instant::now());
        loop {
            if !self.absences.is_any_absent() || release_at <= time::Instant::now() {
                release_at = time::Instant::now() + RELEASE_EVERY;
                released = self.release(released);
            }
            // A peer without a place of its own may have asked the hosts of others a moment ago.
            // They hear of that first.
            let round = match self.tenancy.is_settled() {
                true => self.empty().await,
                false => Round::SomeLeft,
            };
            let again = if round == Round::SomeLeft || released.is_some() {
                AGAIN
            } else {
                Duration::from_secs(60)
            };
            tokio::select! {
                () = self.bell.notified() => {}
                () = time::sleep(again) => {}
            }
            time::sleep(COLLECT).await;
        }
    }

    /// Goes through the outbox once. Links that come meanwhile are left to collect.
    async fn empty(&self) -> Round {
        let (mut after, mut round, mut is_last) = (None, Round::Clear, false);
        while !is_last {
            let records = match self.store.outbox(after, AT_ONCE) {
                Ok(records) => records,
                Err(error) => {
                    tracing::warn!(%error, "the outbox cannot be read");
                    return Round::SomeLeft;
                }
            };
            is_last = records.len() < AT_ONCE;
            after = records.last().map(|record| record.sequence);
            if self.carry(records).await == Round::SomeLeft {
                round = Round::SomeLeft;
            }
        }
        round
    }

    /// Lets some held records wait with the others again; gives the last of them, unless it was the
    /// last of all.
    fn release(&self, after: Option<u64>) -> Option<u64> {
        let records = self.store.held(after, AT_ONCE).unwrap_or_default();
        let mut commit = Commit::new();
        records
            .iter()
            .for_each(|record| commit.release_outbox(record));
        self.apply(&commit).ok()?;
        let last = records.last().map(|record| record.sequence);
        last.filter(|_| records.len() == AT_ONCE)
    }

    async fn carry(&self, records: Vec<OutboxRecord>) -> Round {
        let Sorted { batches, absent } = self.sort(&records).await;
        let sends = batches
            .into_iter()
            .map(|(to, places)| self.send(to, &records, places));
        let mut sends = pin!(stream::iter(sends).buffer_unordered(PARALLEL));
        let mut delivery = Delivery::of(&records);
        // A delivered record leaves the outbox at once: an owner that does not answer holds up no
        // other owner's links.
        while let Some((to, Accepted { places, taken })) = sends.next().await {
            let mut commit = Commit::new();
            if let Some((_, places)) = &taken {
                self.takers.note(to.owner);
                let links = links_at(&records, places);
                self.sent.keep(to.owner, to.crawl, links, &mut commit);
            }
            let delivered = delivery.accept(places);
            if self.drop_delivered(delivered, commit).is_err() {
                return Round::SomeLeft;
            }
            if let Some((voucher, _)) = taken {
                self.checks.wish(Wish::Taken(voucher));
            }
        }
        self.keep_rest(&records, &delivery, &absent)
    }

    /// Sorts the links by their owner and crawl, in batches: no batch mixes crawls.
    async fn sort(&self, records: &[OutboxRecord]) -> Sorted {
        let mut owners: HashMap<Domain, Option<PeerId>> = HashMap::new();
        let mut sorted: HashMap<Addressee, Vec<Place>> = HashMap::new();
        let mut absent = HashSet::new();
        for (r, record) in records.iter().enumerate() {
            for (l, link) in record.links.iter().enumerate() {
                let domain = link.url.domain();
                let owner = match owners.get(&domain) {
                    Some(owner) => *owner,
                    None => {
                        let found = self.overlay.owners(domain.key(), 1).await.ok();
                        let owner = found.and_then(|found| found.first().copied());
                        owners.insert(domain, owner);
                        owner
                    }
                };
                if owner.is_some_and(|owner| self.absences.is_absent(owner)) {
                    absent.insert((r, l));
                }
                if let Some(owner) = owner.filter(|owner| self.absences.is_due(*owner)) {
                    let crawl = record.crawl;
                    let to = Addressee { owner, crawl };
                    sorted.entry(to).or_default().push((r, l));
                }
            }
        }
        let batches = sorted.into_iter().flat_map(|(to, places)| {
            // One batch shows whether a doubtful owner answers again.
            let most = match self.absences.is_doubtful(to.owner) {
                true => 1,
                false => usize::MAX,
            };
            let batches = batches(records, places).into_iter().take(most);
            batches.map(move |batch| (to, batch))
        });
        Sorted {
            batches: batches.collect(),
            absent,
        }
    }

    /// Sends one batch; gives the links that are with the owner.
    async fn send(
        &self,
        to: Addressee,
        records: &[OutboxRecord],
        places: Vec<Place>,
    ) -> (Addressee, Accepted) {
        let links = links_at(records, &places);
        let accepted = match self.offer(to, links).await {
            Some(LinksAnswer::Taken {
                declined,
                dropped,
                seal,
            }) => {
                let accepted = Accepted {
                    places: taken(&places, &declined, &[]).copied().collect(),
                    taken: None,
                };
                let places = taken(&places, &declined, &dropped).copied().collect();
                match to.owner == self.overlay.me() {
                    true => accepted,
                    false => self.vouched_for(to.owner, records, places, seal, accepted),
                }
            }
            Some(LinksAnswer::UnknownCrawl) => {
                let (links, crawl) = (places.len(), to.crawl);
                tracing::debug!(owner = ?to.owner, ?crawl, links, "the owner takes no part in the crawl; its links are dropped");
                Accepted {
                    places,
                    taken: None,
                }
            }
            None => Accepted::default(),
        };
        (to, accepted)
    }

    /// Links count as taken with the owner's signature only.
    fn vouched_for(
        &self,
        owner: PeerId,
        records: &[OutboxRecord],
        taken: Vec<Place>,
        seal: Option<Seal>,
        accepted: Accepted,
    ) -> Accepted {
        if taken.is_empty() {
            return accepted;
        }
        let urls = taken.iter().map(|&(r, l)| &records[r].links[l].url);
        let links = fingerprints(urls);
        match seal.and_then(|seal| Voucher::new(owner, links, seal, &self.signer)) {
            Some(voucher) => Accepted {
                taken: Some((voucher, taken)),
                ..accepted
            },
            None => {
                tracing::debug!(?owner, "an owner does not sign for links");
                Accepted::default()
            }
        }
    }

    /// The owner's answer; none if it could not be asked.
    async fn offer(&self, to: Addressee, links: Vec<Link>) -> Option<LinksAnswer> {
        let Addressee { owner, crawl } = to;
        let batch = LinkBatch { crawl, links };
        if owner == self.overlay.me() {
            return self.orders.admit(to.owner, batch).await.ok();
        }
        let batch = wire::encode(&batch);
        match self.overlay.request(owner, LINKS, batch).await {
            Ok(answer) => {
                self.absences.note_answer(owner);
                wire::decode(&answer).ok()
            }
            Err(error) => {
                tracing::debug!(?owner, %error, "links were not delivered");
                match error.is_absence() {
                    true => {
                        self.absences.note_silence(owner);
                        self.takers.note_silence(owner);
                    }
                    false => self.absences.note_refusal(owner),
                }
                None
            }
        }
    }

    /// Drops records whose links are all with their owners.
    fn drop_delivered(&self, delivered: Vec<u64>, mut commit: Commit) -> Result<(), CommitError> {
        delivered
            .iter()
            .for_each(|&sequence| commit.remove_outbox(sequence));
        self.apply(&commit)?;
        if !delivered.is_empty() {
            self.delivered.tell(delivered);
        }
        Ok(())
    }

    /// Keeps the rest of records of which some links are with their owners, and holds those whose
    /// owners are all absent.
    fn keep_rest(
        &self,
        records: &[OutboxRecord],
        delivery: &Delivery,
        absent: &HashSet<Place>,
    ) -> Round {
        let (mut commit, mut round) = (Commit::new(), Round::Clear);
        let may_hold = self.store.held_count().is_ok_and(|held| held < MAX_HELD);
        for (r, record) in records.iter().enumerate() {
            let left: Vec<Link> = delivery.left(r).map(|l| record.links[l].clone()).collect();
            let is_held =
                !left.is_empty() && may_hold && delivery.left(r).all(|l| absent.contains(&(r, l)));
            if is_held {
                commit.hold_outbox(record.sequence, record.crawl, &left);
                continue;
            }
            if !left.is_empty() {
                round = Round::SomeLeft;
            }
            if !left.is_empty() && left.len() < record.links.len() {
                commit.put_outbox(record.sequence, record.crawl, &left);
            }
        }
        if self.apply(&commit).is_err() {
            Round::SomeLeft
        } else {
            round
        }
    }

    fn apply(&self, commit: &Commit) -> Result<(), CommitError> {
        let applied = self.store.apply(commit);
        if let Err(error) = &applied {
            tracing::warn!(%error, "delivered links stay in the outbox");
        }
        applied
    }
}

/// The links of some records that are not with their owners yet.
struct Delivery {
    sequences: Vec<u64>,
    left: Vec<BTreeSet<usize>>,
}

impl Delivery {
    fn of(records: &[OutboxRecord]) -> Self {
        let sequences = records.iter().map(|record| record.sequence).collect();
        Delivery {
            sequences,
            left: records
                .iter()
                .map(|record| (0..record.links.len()).collect())
                .collect(),
        }
    }

    /// Takes in the links that an owner accepted; gives the records that are delivered by that.
    fn accept(&mut self, accepted: Vec<Place>) -> Vec<u64> {
        let mut delivered = Vec::new();
        for (r, l) in accepted {
            if self.left[r].remove(&l) && self.left[r].is_empty() {
                delivered.push(self.sequences[r]);
            }
        }
        delivered
    }

    fn left(&self, record: usize) -> impl Iterator<Item = usize> {
        self.left[record].iter().copied()
    }
}

fn links_at(records: &[OutboxRecord], places: &[Place]) -> Vec<Link> {
    let places = places.iter();
    places.map(|&(r, l)| records[r].links[l].clone()).collect()
}

/// Cuts the links for one owner into batches that fit into a frame.
fn batches(records: &[OutboxRecord], places: Vec<Place>) -> Vec<Vec<Place>> {
    let mut batches: Vec<Vec<Place>> = Vec::new();
    let mut room = 0;
    for (r, l) in places {
        let bytes = wire::plain_bytes(&records[r].links[l]);
        match batches.last_mut() {
            Some(batch) if bytes <= room && batch.len() < LinkBatch::MAX_LINKS => {
                batch.push((r, l))
            }
            _ => {
                batches.push(vec![(r, l)]);
                room = wire::FRAME_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestPeer, link, obedient_crawler, signer_at};
    use apoidea_overlay::RequestError;
    use bytes::Bytes;
    use std::sync::Mutex;
    use tokio::sync::mpsc;

    const ME: u8 = 0x20;
    const OWNER: u8 = 0x60;
    const OTHER: u8 = 0xa0;

    /// A courier, with the peer that it works for and the records that it has reported.
    struct Fixture {
        me: TestPeer,
        courier: Courier,
        reported: Arc<Mutex<Vec<u64>>>,
        /// The other owners.
        owner: Signer,
        other: Signer,
        wishes: mpsc::Receiver<Wish>,
    }

    /// The answer of an owner that takes all links of a batch but these.
    fn taken_by(owner: &Signer, sender: PeerId, batch: &Bytes, declined: &[u16]) -> Bytes {
        let batch: LinkBatch = wire::decode(batch).unwrap();
        let urls = taken(&batch.links, declined, &[]).map(|link| &link.url);
        wire::encode(&LinksAnswer::Taken {
            seal: Some(Seal::set(owner, sender, &fingerprints(urls))),
            declined: declined.to_vec(),
            dropped: Vec::new(),
        })
    }

    impl Fixture {
        fn new() -> Self {
            let [mine, owner, other] = [ME, OWNER, OTHER].map(signer_at);
            let (me, inbox) = TestPeer::owner([mine.me(), owner.me(), other.me()]);
            obedient_crawler(inbox);
            let (wish, wishes) = mpsc::channel(64);
            let reported = Arc::new(Mutex::new(Vec::new()));
            let report = reported.clone();
            let courier = Courier {
                overlay: me.ring.clone(),
                store: me.store.clone(),
                orders: me.orders.clone(),
                tenancy: me.tenancy.clone(),
                delivered: Sink::new(move |mut sequences| {
                    report.lock().unwrap().append(&mut sequences)
                }),
                bell: Default::default(),
                sent: SentLog::open(&me.store).unwrap(),
                checks: Checks(wish),
                signer: mine,
                absences: Absences::default(),
                takers: Arc::default(),
            };
            Fixture {
                me,
                courier,
                reported,
                owner,
                other,
                wishes,
            }
        }

        fn id(&self, place: u8) -> PeerId {
            match place {
                OWNER => self.owner.me(),
                OTHER => self.other.me(),
                _ => self.courier.signer.me(),
            }
        }

        /// Puts links to one domain of each of these owners into the outbox.
        fn put(&self, sequence: u64, crawl: CrawlId, owners: &[u8]) {
            let links: Vec<Link> = owners
                .iter()
                .map(|&owner| link(&self.me.ring.domain_of(self.id(owner)), sequence))
                .collect();
            let mut commit = Commit::new();
            commit.put_outbox(sequence, crawl, &links);
            self.me.store.commit(&commit).unwrap();
        }

        /// All other owners take all links, except those at these places of a batch.
        fn decline(&self, declined: &'static [u16]) {
            let owners = [self.owner.clone(), self.other.clone()];
            let me = self.id(ME);
            self.me.ring.answer_with(move |to, _, batch| {
                let owner = owners.iter().find(|owner| owner.me() == to);
                Ok(taken_by(owner.unwrap(), me, &batch, declined))
            });
        }

        /// The records in the outbox and how many links they have.
        fn outbox(&self) -> Vec<(u64, usize)> {
            let records = self.me.store.outbox(None, 100).unwrap();
            let count = |record: &OutboxRecord| (record.sequence, record.links.len());
            records.iter().map(count).collect()
        }

        fn reported(&self) -> Vec<u64> {
            let mut reported = self.reported.lock().unwrap().clone();
            reported.sort();
            reported
        }
    }

    #[tokio::test]
    async fn a_batch_has_one_owner_and_one_crawl() {
        let fixture = Fixture::new();
        fixture.decline(&[]);
        fixture.put(1, CrawlId::OPEN, &[OWNER, OTHER]);
        fixture.put(2, CrawlId::OPEN, &[OWNER, ME]);
        fixture.put(3, CrawlId(9), &[OWNER]);
        assert_eq!(fixture.courier.empty().await, Round::Clear);
        let ring = &fixture.me.ring;
        let mut sizes: Vec<(u64, usize)> = ring
            .sent::<LinkBatch>(fixture.id(OWNER), LINKS)
            .iter()
            .map(|batch| (batch.crawl.0, batch.links.len()))
            .collect();
        sizes.sort();
        assert_eq!(sizes, [(0, 2), (9, 1)]);
        assert_eq!(ring.sent::<LinkBatch>(fixture.id(OTHER), LINKS).len(), 1);
        assert_eq!(ring.asked(LINKS).len(), 3, "own links do not travel");
        assert_eq!(fixture.outbox(), []);
        assert_eq!(fixture.reported(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn declined_links_stay_and_the_others_of_their_record_do_not() {
        let fixture = Fixture::new();
        fixture.decline(&[1]);
        fixture.put(1, CrawlId::OPEN, &[OWNER, OWNER, OWNER]);
        assert_eq!(fixture.courier.empty().await, Round::SomeLeft);
        assert_eq!(fixture.outbox(), [(1, 1)]);
        assert_eq!(fixture.reported(), [0; 0]);
        fixture.decline(&[]);
        assert_eq!(fixture.courier.empty().await, Round::Clear);
        assert_eq!(fixture.outbox(), []);
        assert_eq!(fixture.reported(), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_does_not_answer_holds_nobody_up() {
        let fixture = Fixture::new();
        fixture.decline(&[]);
        fixture.me.ring.silence(fixture.id(OWNER));
        fixture.put(1, CrawlId::OPEN, &[OWNER]);
        fixture.put(2, CrawlId::OPEN, &[OTHER]);
        let round = time::timeout(AGAIN, fixture.courier.empty()).await;
        assert!(round.is_err(), "the round waits for the owner");
        assert_eq!(fixture.outbox(), [(1, 1)]);
        assert_eq!(fixture.reported(), [2]);
    }

    #[tokio::test]
    async fn a_record_is_reported_once_all_its_owners_have_their_links() {
        let fixture = Fixture::new();
        let (owner, me) = (fixture.owner.clone(), fixture.id(ME));
        fixture.me.ring.answer_with(move |to, _, batch| match to {
            to if to == owner.me() => Ok(taken_by(&owner, me, &batch, &[])),
            _ => Err(RequestError::Unreachable(String::new())),
        });
        fixture.put(1, CrawlId::OPEN, &[OWNER, OTHER]);
        assert_eq!(fixture.courier.empty().await, Round::SomeLeft);
        assert_eq!(
            (fixture.outbox(), fixture.reported()),
            (vec![(1, 1)], vec![])
        );
        fixture.decline(&[]);
        // A silent owner is asked again a second later.
        time::sleep(Duration::from_secs(1)).await;
        fixture.courier.empty().await;
        fixture.courier.empty().await;
        assert_eq!((fixture.outbox(), fixture.reported()), (vec![], vec![1]));
        assert_eq!(fixture.me.ring.asked(LINKS).len(), 3);
    }

    #[tokio::test]
    async fn links_of_a_crawl_that_the_owner_takes_no_part_in_are_dropped() {
        let fixture = Fixture::new();
        let unknown = |_, _, _: Bytes| Ok(wire::encode(&LinksAnswer::UnknownCrawl));
        fixture.me.ring.answer_with(unknown);
        fixture.put(1, CrawlId(9), &[OWNER]);
        assert_eq!(fixture.courier.empty().await, Round::Clear);
        assert_eq!((fixture.outbox(), fixture.reported()), (vec![], vec![1]));
    }

    #[tokio::test]
    async fn links_stay_while_the_ring_does_not_know_their_owner() {
        let fixture = Fixture::new();
        fixture.decline(&[]);
        fixture.put(1, CrawlId::OPEN, &[OWNER]);
        fixture.me.ring.set_lost(true);
        assert_eq!(fixture.courier.empty().await, Round::SomeLeft);
        assert_eq!(fixture.outbox(), [(1, 1)]);
        fixture.me.ring.set_lost(false);
        assert_eq!(fixture.courier.empty().await, Round::Clear);
        assert_eq!(fixture.outbox(), []);
    }

    #[tokio::test]
    async fn many_links_travel_in_several_batches() {
        let fixture = Fixture::new();
        fixture.decline(&[]);
        fixture.put(1, CrawlId::OPEN, &[OWNER; 2 * LinkBatch::MAX_LINKS + 1]);
        assert_eq!(fixture.courier.empty().await, Round::Clear);
        let batches: Vec<LinkBatch> = fixture.me.ring.sent(fixture.id(OWNER), LINKS);
        let mut sizes: Vec<usize> = batches.iter().map(|batch| batch.links.len()).collect();
        sizes.sort();
        assert_eq!(sizes, [1, LinkBatch::MAX_LINKS, LinkBatch::MAX_LINKS]);
        assert_eq!(fixture.reported(), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn links_that_come_together_travel_together_and_are_tried_again() {
        let fixture = Fixture::new();
        let owner = fixture.id(OWNER);
        let (me, bell) = (fixture.me, fixture.courier.bell.clone());
        let ring = me.ring.clone();
        tokio::spawn(fixture.courier.run());
        let put = |sequence| {
            let mut commit = Commit::new();
            let domain = ring.domain_of(owner);
            commit.put_outbox(sequence, CrawlId::OPEN, &[link(&domain, sequence)]);
            me.store.commit(&commit).unwrap();
            bell.notify_one();
        };
        time::sleep(COLLECT * 3).await;
        put(1);
        time::sleep(COLLECT / 2).await;
        put(2);
        time::sleep(COLLECT).await;
        let sizes = || -> Vec<usize> {
            let batches: Vec<LinkBatch> = ring.sent(owner, LINKS);
            batches.iter().map(|batch| batch.links.len()).collect()
        };
        assert_eq!(sizes(), [2]);
        // The owner cannot be reached: all links are tried again, without another bell.
        time::sleep((AGAIN + COLLECT) * 4).await;
        assert!(sizes().len() >= 3 && sizes().iter().all(|size| *size == 2));
    }

    #[tokio::test]
    async fn links_that_the_owner_does_not_sign_for_stay() {
        let mut fixture = Fixture::new();
        let (owner, other) = (fixture.id(OWNER), fixture.other.clone());
        let me = fixture.id(ME);
        // Another peer's signature, and none at all.
        fixture.me.ring.answer_with(move |to, _, batch| match to {
            to if to == owner => Ok(taken_by(&other, me, &batch, &[])),
            _ => Ok(wire::encode(&LinksAnswer::Taken {
                declined: Vec::new(),
                dropped: Vec::new(),
                seal: None,
            })),
        });
        fixture.put(1, CrawlId::OPEN, &[OWNER, OTHER]);
        assert_eq!(fixture.courier.empty().await, Round::SomeLeft);
        assert_eq!(fixture.outbox(), [(1, 2)]);
        assert!(fixture.wishes.try_recv().is_err());
    }

    #[tokio::test]
    async fn what_an_owner_has_taken_is_kept_for_a_while_and_may_be_checked() {
        let mut fixture = Fixture::new();
        fixture.decline(&[1]);
        fixture.put(1, CrawlId::OPEN, &[OWNER, OWNER, OWNER]);
        fixture.courier.empty().await;
        let sent = fixture.me.store.sent(None, 9).unwrap();
        let sent: Vec<_> = sent
            .iter()
            .map(|batch| (batch.owner, batch.links.len()))
            .collect();
        assert_eq!(sent, [(fixture.id(OWNER), 2)]);
        let Ok(Wish::Taken(voucher)) = fixture.wishes.try_recv() else {
            panic!("nothing to check");
        };
        assert_eq!(voucher.owner(), fixture.id(OWNER));
    }

    #[tokio::test(start_paused = true)]
    async fn links_of_an_absent_owner_are_held_and_nobody_waits_for_it() {
        let fixture = Fixture::new();
        let (owner, other, me) = (fixture.id(OWNER), fixture.other.clone(), fixture.id(ME));
        fixture.me.ring.answer_with(move |to, _, batch| match to {
            to if to == owner => Err(RequestError::Unreachable(String::new())),
            _ => Ok(taken_by(&other, me, &batch, &[])),
        });
        for sequence in 0..8 {
            fixture.put(sequence, CrawlId::OPEN, &[OWNER, OTHER]);
            fixture.courier.empty().await;
            time::sleep(AGAIN).await;
        }
        let sent = fixture.me.ring.sent::<LinkBatch>(fixture.id(OWNER), LINKS);
        assert!(sent.len() <= 4, "{} batches to nobody", sent.len());
        assert_eq!(fixture.outbox(), []);
        let store = &fixture.me.store;
        assert_eq!(store.held_count().unwrap(), 8);
        assert_eq!(store.outbox_count().unwrap(), 0);
        // It answers again: everything is delivered, and reported only now.
        assert_eq!(fixture.reported(), [0; 0]);
        fixture.decline(&[]);
        time::sleep(Duration::from_secs(60)).await;
        assert_eq!(fixture.courier.release(None), None);
        fixture.courier.empty().await;
        fixture.courier.empty().await;
        assert_eq!(store.held_count().unwrap(), 0);
        assert_eq!(fixture.reported(), (0..8).collect::<Vec<_>>());
    }
}
