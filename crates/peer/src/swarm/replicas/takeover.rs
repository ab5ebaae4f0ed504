//! Taking over and handing over parts of the ring, whatever the reason: a join, a leave, a crash, a
//! return.
//!
//! A peer that gains an arc asks all peers that may have replicas of it for their domains and
//! versions, fetches the replicas that are newer than its own, and only then acts on the arc. A
//! peer that loses an arc stops crawling it, and offers its replicas to the new owner.

use crate::{
    clock::now,
    swarm::{
        REPLICATION_FACTOR,
        content::message::{FACTS_IN, FactsAsk, MAX_FACTS},
        orders::{Orders, SwarmOrder},
        replicas::{
            apart::Company,
            merge,
            message::{CENSUS, CensusAsk, CensusPage, ROUNDS, RoundsAsk},
            provenance::Provenance,
            puller,
            rounds::{self, MAX_ROUNDS},
            sweep::Sweeper,
        },
        tenancy::{Tenancy, Weight, whole_ring},
        wire::{self, List},
    },
};
use apoidea_crawl::Versions;
use apoidea_model::{ContentHash, Domain, PeerId};
use apoidea_overlay::{Arc as RingArc, ArcChange, LookupError, Overlay, RequestError, Signed};
use apoidea_store::{Commit, Fact, Store};
use futures::future;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{self, Instant},
};

/// A former owner may still finish fetches, or not know yet that it is not the owner any more.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// A peer that is there answers within this.
pub(super) const LAST_WORDS: Duration = Duration::from_millis(2500);
pub(super) const AGAIN: Duration = Duration::from_millis(200);
/// A tick that comes so much late means that the machine slept: meanwhile others may have taken
/// over.
const ASLEEP: Duration = Duration::from_secs(10);
pub(super) const TICK: Duration = Duration::from_secs(1);
/// Follows the ring.
#[derive(Clone)]
pub(crate) struct Takeover {
    pub overlay: Arc<dyn Overlay>,
    pub store: Store,
    pub tenancy: Arc<Tenancy>,
    pub orders: Orders,
    pub sweeper: Sweeper,
    pub provenance: Arc<Provenance>,
}

/// The replicas that a peer says it has.
pub(super) type Census = Vec<(Domain, Versions)>;

impl Takeover {
    /// Follows the ring until the task is dropped.
    pub(crate) async fn run(self, mut changes: Receiver<ArcChange>) {
        let from = self.wait_for_a_place(&mut changes).await;
        self.clone().take_first_place(from);
        let mut last_tick = Instant::now();
        let mut was_cut_off = false;
        let mut company = None;
        loop {
            let tick = company.as_ref().map_or(TICK, |_| AGAIN);
            let change = time::timeout(tick, changes.recv()).await;
            if last_tick.elapsed() > ASLEEP {
                self.begin(whole_ring(), None);
            }
            last_tick = Instant::now();
            was_cut_off = self.keep_in_touch(was_cut_off);
            company = company.and_then(|company| self.meet(company));
            match change {
                Ok(Ok(ArcChange::Gained { arc, from })) => self.begin(arc, from),
                Ok(Ok(ArcChange::Lost { arc, to: Some(to) })) => self.lose(arc, Some(to)).await,
                Ok(Ok(ArcChange::Lost { arc, to: None })) => {
                    // Outside the ring: whatever place comes next is as new as the first.
                    self.tenancy.note_no_place();
                    self.lose(arc, None).await;
                    let place = self.wait_for_a_place(&mut changes).await;
                    self.clone().take_first_place(place);
                    last_tick = Instant::now();
                    let was_alone = arc.from == arc.to;
                    company = was_alone.then(Company::begin);
                }
                Ok(Err(RecvError::Lagged(_))) => {
                    self.orders.tell(SwarmOrder::Lose(whole_ring())).await;
                    self.begin(whole_ring(), None);
                }
                Ok(Err(RecvError::Closed)) => return,
                Err(_) => {}
            }
        }
    }

    /// Until this peer has a place on the ring, or knows that it is alone, nothing is its own.
    async fn wait_for_a_place(
        &self,
        changes: &mut Receiver<ArcChange>,
    ) -> (RingArc, Option<PeerId>) {
        let mut place = (whole_ring(), None);
        let has_place = || {
            let position = self.overlay.position(self.overlay.me());
            position.is_some_and(|position| self.overlay.owns(position))
        };
        while !has_place() {
            if let Ok(Ok(ArcChange::Gained { arc, from })) =
                time::timeout(AGAIN, changes.recv()).await
            {
                place = (arc, from);
            }
        }
        place
    }

    /// The first place: until it is taken over, nothing is owned.
    fn take_first_place(self, (arc, from): (RingArc, Option<PeerId>)) {
        self.tenancy.note_place(arc, from);
        self.note_stand_ins(arc);
        tokio::spawn(async move {
            self.hear(arc, from, whole_ring()).await;
            self.tenancy.end_taking_over(whole_ring());
            self.act_on(arc).await;
        });
    }

    fn begin(&self, arc: RingArc, from: Option<PeerId>) {
        self.tenancy.begin_taking_over(arc, from);
        self.clone().take_over_soon(arc, from);
    }

    fn take_over_soon(self, arc: RingArc, from: Option<PeerId>) {
        tokio::spawn(async move { self.take_over(arc, from).await });
    }

    /// Hears all peers that may have replicas of the arc, then begins to act on it.
    pub(super) async fn take_over(&self, arc: RingArc, from: Option<PeerId>) {
        self.hear(arc, from, arc).await;
        self.outwait(arc, from).await;
        self.tenancy.end_taking_over(arc);
        self.act_on(arc).await;
    }

    async fn act_on(&self, arc: RingArc) {
        // A peer that is stopping acts on nothing any more.
        let _ = self.orders.activate(arc).await;
        self.sweeper.hurry();
    }

    /// Fetches the knowledge of other peers that this one lacks: content facts first, which are
    /// `open` then no more. A peer on the ring is asked until it has answered: without its
    /// word this peer would do again all that is done already.
    async fn hear(&self, arc: RingArc, from: Option<PeerId>, open: RingArc) {
        let begun = Instant::now();
        let facts = async {
            let sources = loop {
                match self.sources(arc, from).await {
                    Ok(sources) => break sources,
                    Err(_) if begun.elapsed() < PATIENCE => time::sleep(AGAIN).await,
                    Err(_) => break Vec::new(),
                }
            };
            let facts = sources
                .iter()
                .map(|source| time::timeout(LAST_WORDS, self.facts(*source, arc)));
            future::join_all(facts).await;
            self.tenancy.end_taking_over_facts(open);
        };
        let domains = async {
            let mut heard = BTreeSet::new();
            while begun.elapsed() < PATIENCE {
                // A last owner that is not on the ring any more has left, and answers at once, or
                // it is dead.
                let from = from.filter(|_| begun.elapsed() < LAST_WORDS);
                if let Ok(sources) = self.sources(arc, from).await {
                    let sources = sources.into_iter();
                    let open: Vec<PeerId> =
                        sources.filter(|source| !heard.contains(source)).collect();
                    if open.is_empty() {
                        return;
                    }
                    heard.extend(self.hear_from(open, arc, begun + PATIENCE).await);
                }
                time::sleep(AGAIN).await;
            }
            tracing::debug!("not every peer with replicas of an arc was heard");
        };
        future::join(facts, domains).await;
    }

    /// Fetches the replicas of some peers that this one lacks; gives the peers that have told and
    /// given everything. What a peer has not given by the deadline is fetched later: one slow source
    /// must not keep the arc from its owner.
    async fn hear_from(
        &self,
        sources: Vec<PeerId>,
        arc: RingArc,
        deadline: Instant,
    ) -> Vec<PeerId> {
        let censuses = sources.into_iter().map(|source| async move {
            let census = time::timeout(LAST_WORDS, self.census(source, arc))
                .await
                .ok()?;
            match census {
                Ok(held) => Some((source, held)),
                Err(error) => {
                    tracing::debug!(?source, %error, "a peer with replicas was not heard");
                    None
                }
            }
        });
        let told: Vec<_> = future::join_all(censuses)
            .await
            .into_iter()
            .flatten()
            .collect();
        self.read_rounds(&told, arc, deadline).await;
        let mut heard: BTreeSet<PeerId> = told.iter().map(|(source, _)| *source).collect();
        let fetched = self
            .choose(told)
            .into_iter()
            .map(|(source, domains)| async move {
                let (count, late) = (domains.len(), domains.clone());
                let pull = puller::pull(self.overlay.as_ref(), &self.orders, source, domains);
                match time::timeout_at(deadline, pull).await {
                    Ok(Ok(())) => {
                        tracing::debug!(?source, count, "replicas were fetched");
                        None
                    }
                    Err(_) => {
                        tracing::debug!(?source, count, "replicas are fetched later");
                        late.into_iter()
                            .for_each(|domain| self.sweeper.puller.want(domain, source));
                        None
                    }
                    Ok(Err(error)) => {
                        tracing::warn!(?source, count, %error, "replicas were not fetched");
                        Some(source)
                    }
                }
            });
        for source in future::join_all(fetched).await.into_iter().flatten() {
            heard.remove(&source);
        }
        heard.into_iter().collect()
    }

    /// Takes in the last changes of owners that are gone, as they signed them, where a peer has
    /// more of them than this one.
    async fn read_rounds(&self, told: &[(PeerId, Census)], arc: RingArc, deadline: Instant) {
        // A peer that is gone may have no position in the view any more.
        let position = |owner: PeerId| self.overlay.position(owner).unwrap_or(owner.key());
        let owners = self.provenance.rounds.owners_in(arc, position);
        let lacks = |(domain, versions): &(Domain, Versions)| {
            let mine = merge::versions(&self.store, domain);
            mine.is_ok_and(|mine| !mine.contain(versions))
        };
        for (source, held) in told {
            if !held.iter().any(lacks) {
                continue;
            }
            for owner in owners.iter().filter(|owner| *owner != source) {
                let read = self.read_rounds_of(*owner, *source, arc);
                // What is not read in time costs a few fetches.
                let _ = time::timeout_at(deadline, read).await;
            }
        }
    }

    async fn read_rounds_of(&self, owner: PeerId, source: PeerId, arc: RingArc) {
        for place in 0..MAX_ROUNDS as u16 {
            let ask = wire::encode(&RoundsAsk { owner, place });
            let answer = self.overlay.request(source, ROUNDS, ask).await;
            let round = answer.ok().and_then(|answer| wire::decode(&answer).ok());
            let Some(round) = round.and_then(|round: Option<Signed>| round) else {
                return;
            };
            let signer = &self.provenance.signer;
            let deltas = rounds::open(signer, &round, owner, arc, now());
            if !deltas.is_empty() && self.orders.take_rounds(deltas).await.is_err() {
                return;
            }
        }
    }

    /// The peers that may have replicas of the arc: those after this peer, and its last owner.
    async fn sources(
        &self,
        arc: RingArc,
        from: Option<PeerId>,
    ) -> Result<Vec<PeerId>, LookupError> {
        let me = self.overlay.me();
        let key = if arc == whole_ring() {
            let position = self.overlay.position(me);
            position.ok_or(LookupError::NotJoined)?
        } else {
            arc.to
        };
        let next = self.overlay.owners(key, REPLICATION_FACTOR + 1).await?;
        let last = from.filter(|from| !next.contains(from));
        let sources = next.into_iter().chain(last);
        Ok(sources.filter(|peer| *peer != me).collect())
    }

    /// The replicas that a peer has of an arc.
    pub(super) async fn census(
        &self,
        source: PeerId,
        arc: RingArc,
    ) -> Result<Census, RequestError> {
        let (mut held, mut after) = (Vec::new(), None);
        loop {
            let ask = wire::encode(&CensusAsk { arc, after });
            let answer = self.overlay.request(source, CENSUS, ask).await?;
            let CensusPage {
                held: page,
                after: next,
            } = wire::decode(&answer)?;
            held.extend(
                page.into_iter()
                    .filter(|(domain, _)| self.overlay.owns(domain.key())),
            );
            match next {
                Some(next) => after = Some(next),
                None => return Ok(held),
            }
        }
    }

    /// The domains to fetch from each peer, so that nothing is lacking afterwards: the latest
    /// replicas first, and of the others those that contain something else. Replicas that no last
    /// owner vouches for are read later: they bring links, and nothing waits for those.
    fn choose(&self, heard: Vec<(PeerId, Census)>) -> BTreeMap<PeerId, Vec<Domain>> {
        let mut replicas: BTreeMap<Domain, Vec<(Versions, PeerId)>> = BTreeMap::new();
        for (source, held) in heard {
            held.into_iter().for_each(|(domain, versions)| {
                replicas.entry(domain).or_default().push((versions, source))
            });
        }
        let mut wanted: BTreeMap<PeerId, Vec<Domain>> = BTreeMap::new();
        for (domain, replicas) in replicas {
            let is_vouched = |(_, source): &(Versions, PeerId)| {
                self.tenancy.weigh(*source, domain.key()) == Weight::Vouched
            };
            let (mut replicas, others): (Vec<_>, Vec<_>) =
                replicas.into_iter().partition(is_vouched);
            replicas.sort_by_key(|(versions, _)| std::cmp::Reverse(versions.rank()));
            let mut mine = merge::versions(&self.store, &domain).unwrap_or_default();
            for (versions, source) in replicas {
                if !mine.contain(&versions) {
                    mine = mine.joined(&versions);
                    wanted.entry(source).or_default().push(domain.clone());
                }
            }
            for (versions, source) in others {
                if !mine.contain(&versions) {
                    self.provenance.heard.note_later(domain.clone(), source);
                }
            }
        }
        wanted
    }

    /// Takes over a peer's content facts of an arc; facts that are known already stay.
    async fn facts(&self, source: PeerId, arc: RingArc) {
        let mut after = None;
        loop {
            let ask = wire::encode(&FactsAsk { arc, after });
            let Ok(answer) = self.overlay.request(source, FACTS_IN, ask).await else {
                return;
            };
            let Ok(List(facts)) = wire::decode::<List<(ContentHash, Fact), MAX_FACTS>>(&answer)
            else {
                return;
            };
            let Some((last, _)) = facts.last() else {
                return;
            };
            after = Some(last.key());
            let mut commit = Commit::new();
            for (content, fact) in facts {
                if self.overlay.owns(content.key()) && matches!(self.store.fact(&content), Ok(None))
                {
                    commit.put_fact(&content, fact);
                }
            }
            if let Err(error) = self.store.apply(&commit) {
                tracing::warn!(%error, "content facts were not taken over");
                return;
            }
        }
    }

    async fn lose(&self, arc: RingArc, to: Option<PeerId>) {
        self.orders.tell(SwarmOrder::Lose(arc)).await;
        let takeover = self.clone();
        tokio::spawn(async move {
            let deadline = Instant::now() + PATIENCE;
            while !takeover.orders.is_drained(arc).await && Instant::now() < deadline {
                time::sleep(AGAIN).await;
            }
            if let Some(to) = to {
                takeover.sweeper.offer_arc(arc, to).await;
            }
            takeover.sweeper.hurry();
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        replicas::message::{Delta, OFFER, REPLICAS},
        tenancy::Claim,
        testing::{Log, TestPeer, fact, obedient_crawler, peer, signer, versions},
    };
    use apoidea_crawl::Step;
    use apoidea_model::Key;
    use apoidea_overlay::Touch;

    const ME: u8 = 0x60;
    const BEFORE: u8 = 0x20;
    const NEXT: u8 = 0xa0;
    const LAST: u8 = 0xe0;
    const GONE: u8 = 0x40;

    fn my_arc() -> RingArc {
        RingArc {
            from: peer(BEFORE).key(),
            to: peer(ME).key(),
        }
    }

    fn here() -> (TestPeer, Takeover, Log) {
        let (me, inbox) = TestPeer::new([ME, BEFORE, NEXT, LAST].map(peer));
        let takeover = Takeover {
            overlay: me.ring.clone(),
            store: me.store.clone(),
            tenancy: me.tenancy.clone(),
            orders: me.orders.clone(),
            sweeper: me.sweeper(),
            provenance: me.provenance.clone(),
        };
        (me, takeover, obedient_crawler(inbox))
    }

    /// A census without anything in it, and no facts.
    fn nothing(kind: apoidea_overlay::Kind) -> bytes::Bytes {
        match kind {
            CENSUS => wire::encode(&CensusPage {
                held: Vec::new(),
                after: None,
            }),
            _ => wire::encode(&Vec::<(ContentHash, Fact)>::new()),
        }
    }

    fn my_key() -> Key {
        peer(ME).key()
    }

    #[tokio::test(start_paused = true)]
    async fn all_who_may_have_a_replica_and_the_last_owner_are_asked() {
        let (me, takeover, _log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        takeover.take_over(my_arc(), Some(peer(GONE))).await;
        let mut asked = me.ring.asked(CENSUS);
        asked.sort();
        assert_eq!(asked, [BEFORE, GONE, NEXT, LAST].map(peer));
        let mut asked = me.ring.asked(FACTS_IN);
        asked.sort();
        assert_eq!(asked, [BEFORE, GONE, NEXT, LAST].map(peer));
    }

    #[tokio::test(start_paused = true)]
    async fn an_arc_is_acted_on_when_its_replicas_are_here() {
        let (me, takeover, log) = here();
        let (next, _inbox) = TestPeer::owner([NEXT, ME].map(peer));
        let domain = me.ring.domain_of(peer(ME));
        next.hold(&domain, &versions(&[(peer(GONE), 2)]), 3);
        let content = me.ring.contents_of(peer(ME), 1)[0];
        next.know(&content, fact("a.test"));
        me.tenancy.note_place(my_arc(), None);
        let service = next.service();
        service
            .answering()
            .unwrap()
            .leaving
            .is_leaving
            .store(true, std::sync::atomic::Ordering::Relaxed);
        me.ring.answer_from(peer(NEXT), service);
        me.ring.set_members([ME, NEXT].map(peer));
        takeover.take_over(my_arc(), None).await;
        assert_eq!(
            *log.lock().unwrap(),
            [format!("adopt {domain} 3"), "activate".to_owned()]
        );
        assert_eq!(me.store.fact(&content).unwrap(), Some(fact("a.test")));
    }

    #[tokio::test]
    async fn the_latest_replica_is_chosen_and_others_that_know_something_else() {
        let (me, takeover, _log) = here();
        for last in [NEXT, LAST] {
            me.tenancy.begin_taking_over(my_arc(), Some(peer(last)));
        }
        let [old, new, mixed, known] =
            [0, 1, 2, 3].map(|i| me.ring.domains_of(peer(ME), 4).remove(i));
        let by = |changes: &[(u8, u32)]| {
            versions(
                &changes
                    .iter()
                    .map(|&(by, count)| (peer(by), count))
                    .collect::<Vec<_>>(),
            )
        };
        me.hold(&known, &by(&[(ME, 3)]), 0);
        me.hold(&old, &by(&[(GONE, 1)]), 0);
        let told = vec![
            (
                peer(NEXT),
                vec![
                    (old.clone(), by(&[(GONE, 2)])),
                    (new.clone(), by(&[(GONE, 1)])),
                    (mixed.clone(), by(&[(GONE, 5)])),
                    (known.clone(), by(&[(ME, 2)])),
                ],
            ),
            (
                peer(LAST),
                vec![
                    (old.clone(), by(&[(GONE, 2)])),
                    (new.clone(), by(&[(GONE, 4)])),
                    (mixed.clone(), by(&[(NEXT, 1)])),
                ],
            ),
        ];
        let mut chosen = takeover.choose(told);
        chosen.values_mut().for_each(|domains| domains.sort());
        let sorted = |mut domains: Vec<Domain>| {
            domains.sort();
            domains
        };
        let from_next = sorted(vec![old, mixed.clone()]);
        let from_last = sorted(vec![new, mixed]);
        assert_eq!(
            chosen,
            BTreeMap::from([(peer(NEXT), from_next), (peer(LAST), from_last)])
        );
    }

    #[tokio::test]
    async fn a_replica_that_no_last_owner_vouches_for_is_read_later_and_hides_no_other() {
        let (me, takeover, _log) = here();
        me.tenancy.begin_taking_over(my_arc(), Some(peer(GONE)));
        let domain = me.ring.domain_of(peer(ME));
        let told = vec![
            (
                peer(NEXT),
                vec![(domain.clone(), versions(&[(peer(GONE), 9)]))],
            ),
            (
                peer(GONE),
                vec![(domain.clone(), versions(&[(peer(GONE), 5)]))],
            ),
        ];
        let chosen = takeover.choose(told);
        assert_eq!(chosen, BTreeMap::from([(peer(GONE), vec![domain.clone()])]));
        let later = me.provenance.heard.take_later(whole_ring());
        assert_eq!(later, [(domain, peer(NEXT))]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_rounds_of_a_dead_owner_are_read_where_another_has_more_of_them() {
        let gone = signer();
        let (before, me_at) = (peer(0), peer(0xff));
        let (me, inbox) = TestPeer::new([me_at, before, peer(NEXT)]);
        let log = obedient_crawler(inbox);
        let takeover = Takeover {
            overlay: me.ring.clone(),
            store: me.store.clone(),
            tenancy: me.tenancy.clone(),
            orders: me.orders.clone(),
            sweeper: me.sweeper(),
            provenance: me.provenance.clone(),
        };
        let arc = RingArc {
            from: before.key(),
            to: gone.me().key(),
        };
        let mut names = (0..).map(|i| format!("d{i}.test").parse::<Domain>().unwrap());
        let domain = names.find(|name| arc.contains(name.key())).unwrap();
        let announced = Delta::announcement(domain.clone(), versions(&[(gone.me(), 2)]));
        let step = Step {
            base: 1,
            ..announced.step
        };
        let delta = Delta { step, ..announced };
        let round = rounds::sign(&gone, std::slice::from_ref(&delta));
        let forged = rounds::sign(&signer(), std::slice::from_ref(&delta));
        let told = vec![(
            peer(NEXT),
            vec![(domain.clone(), versions(&[(gone.me(), 2)]))],
        )];
        me.ring.answer_with(move |_, _, body| {
            let ask: RoundsAsk = wire::decode(&body)?;
            let kept = [&forged, &round].get(usize::from(ask.place)).copied();
            Ok(wire::encode(&kept))
        });
        let deadline = Instant::now() + PATIENCE;
        takeover.read_rounds(&told, arc, deadline).await;
        assert!(me.ring.asked(ROUNDS).is_empty(), "its owner is not known");
        let known = rounds::sign(&gone, &[]);
        me.provenance.rounds.keep(gone.me(), known);
        takeover.read_rounds(&told, arc, deadline).await;
        assert_eq!(*log.lock().unwrap(), ["rounds 1"]);
        me.ring.requests.lock().unwrap().clear();
        me.hold(&domain, &versions(&[(gone.me(), 2)]), 1);
        takeover.read_rounds(&told, arc, deadline).await;
        assert!(me.ring.asked(ROUNDS).is_empty(), "nothing is lacking");
    }

    #[tokio::test(start_paused = true)]
    async fn facts_are_taken_over_before_domains_that_a_former_owner_still_works_on() {
        let (me, takeover, log) = here();
        me.ring.answer_with(|_, kind, _| match kind {
            CENSUS => Err(apoidea_overlay::Refusal::Busy.into()),
            kind => Ok(nothing(kind)),
        });
        let changes = me.ring.arc_changes();
        let begun = Instant::now();
        tokio::spawn(takeover.run(changes));
        time::sleep(LAST_WORDS).await;
        assert_eq!(me.tenancy.claim_to_fact(my_key()), Claim::Owned);
        assert_eq!(me.tenancy.claim(my_key()), Claim::TakingOver);
        assert!(log.lock().unwrap().is_empty());
        time::sleep(PATIENCE).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned, "patience ends");
        assert_eq!(*log.lock().unwrap(), ["activate"]);
        assert!(begun.elapsed() < PATIENCE * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn an_arc_is_not_owned_while_the_ring_does_not_say_whom_to_ask() {
        let (me, takeover, _log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        me.ring.set_lost(true);
        tokio::spawn(takeover.run(me.ring.arc_changes()));
        time::sleep(LAST_WORDS).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::TakingOver);
        assert_eq!(me.tenancy.claim_to_fact(my_key()), Claim::TakingOver);
        me.ring.set_lost(false);
        time::sleep(LAST_WORDS).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
        assert_eq!(me.ring.asked(CENSUS).len(), 3);
        assert_eq!(me.ring.asked(FACTS_IN).len(), 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_arc_is_offered_to_its_new_owner_once_nothing_of_it_is_under_way() {
        let (me, takeover, log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        tokio::spawn(takeover.run(me.ring.arc_changes()));
        time::sleep(LAST_WORDS).await;
        let domain = me.ring.domain_of(peer(ME));
        me.hold(&domain, &versions(&[(peer(ME), 1)]), 1);
        me.ring
            .set_members([ME, BEFORE, NEXT, LAST, 0x5f].map(peer));
        let (arc, to) = (my_arc(), Some(peer(0x5f)));
        me.ring.change(ArcChange::Lost { arc, to });
        time::sleep(LAST_WORDS).await;
        assert_eq!(*log.lock().unwrap(), ["activate", "lose", "drained"]);
        assert_eq!(me.ring.asked(OFFER), [peer(0x5f)]);
        assert!(me.ring.asked(REPLICAS).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn the_place_of_a_silent_owner_is_taken_when_it_must_have_noticed() {
        let (me, takeover, log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        me.tenancy.end_taking_over(whole_ring());
        let grace = Duration::from_secs(14);
        me.ring.grant_grace(peer(GONE), grace);
        let begun = Instant::now();
        me.tenancy.begin_taking_over(my_arc(), Some(peer(GONE)));
        takeover.take_over(my_arc(), Some(peer(GONE))).await;
        assert!(begun.elapsed() >= grace);
        assert_eq!(*log.lock().unwrap(), ["activate"]);
        let begun = Instant::now();
        takeover.take_over(my_arc(), Some(peer(BEFORE))).await;
        assert!(begun.elapsed() < grace / 2, "it said goodbye");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_was_cut_off_takes_its_place_over_again() {
        let (me, takeover, log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        tokio::spawn(takeover.run(me.ring.arc_changes()));
        time::sleep(LAST_WORDS).await;
        assert!(!me.tenancy.is_cut_off());
        me.ring.set_touch(Touch::Few);
        assert!(me.tenancy.is_cut_off());
        time::sleep(TICK * 2).await;
        me.ring.requests.lock().unwrap().clear();
        me.ring.answer_with(|_, kind, _| match kind {
            CENSUS => Err(apoidea_overlay::Refusal::Busy.into()),
            kind => Ok(nothing(kind)),
        });
        me.ring.set_touch(Touch::All);
        time::sleep(TICK * 2).await;
        assert!(me.tenancy.is_cut_off(), "others still work in its place");
        assert_eq!(me.tenancy.claim(my_key()), Claim::TakingOver);
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        time::sleep(LAST_WORDS).await;
        assert!(!me.tenancy.is_cut_off());
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
        assert_eq!(*log.lock().unwrap(), ["activate", "lose", "activate"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_was_alone_hears_everybody_that_it_meets_before_it_goes_on() {
        let (me, takeover, _log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        me.ring.set_members([ME].map(peer));
        tokio::spawn(takeover.run(me.ring.arc_changes()));
        time::sleep(LAST_WORDS).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
        me.ring.set_members([ME, BEFORE].map(peer));
        let (from, to) = (my_key(), my_key());
        me.ring.change(ArcChange::Lost {
            arc: RingArc { from, to },
            to: None,
        });
        time::sleep(LAST_WORDS).await;
        assert!(me.ring.asked(CENSUS).contains(&peer(BEFORE)));
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
        me.ring.answer_with(|_, kind, _| match kind {
            CENSUS => Err(apoidea_overlay::Refusal::Busy.into()),
            kind => Ok(nothing(kind)),
        });
        me.ring.set_members([ME, BEFORE, NEXT].map(peer));
        time::sleep(AGAIN * 3).await;
        assert!(me.ring.asked(CENSUS).contains(&peer(NEXT)));
        assert_eq!(me.tenancy.claim(my_key()), Claim::TakingOver);
        assert_eq!(me.tenancy.weigh(peer(NEXT), my_key()), Weight::LinksOnly);
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        time::sleep(LAST_WORDS).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_left_the_ring_begins_anew_when_it_comes_back() {
        let (me, takeover, log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        tokio::spawn(takeover.run(me.ring.arc_changes()));
        time::sleep(LAST_WORDS).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
        me.ring.set_members([BEFORE, NEXT, LAST].map(peer));
        me.ring.change(ArcChange::Lost {
            arc: my_arc(),
            to: None,
        });
        time::sleep(LAST_WORDS).await;
        me.ring.requests.lock().unwrap().clear();
        me.ring.silence(peer(NEXT));
        me.ring.set_members([ME, BEFORE, NEXT, LAST].map(peer));
        time::sleep(LAST_WORDS / 2).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::TakingOver);
        time::sleep(PATIENCE * 2).await;
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
        assert!(me.ring.asked(CENSUS).contains(&peer(BEFORE)));
        let lines = log.lock().unwrap().clone();
        assert_eq!(lines, ["activate", "lose", "drained", "activate"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_missed_changes_gives_everything_up_and_takes_it_over_again() {
        let (me, takeover, log) = here();
        me.ring.answer_with(|_, kind, _| Ok(nothing(kind)));
        let changes = me.ring.arc_changes();
        for _ in 0..20 {
            let (arc, from) = (my_arc(), None);
            me.ring.change(ArcChange::Gained { arc, from });
        }
        tokio::spawn(takeover.run(changes));
        time::sleep(LAST_WORDS).await;
        assert!(log.lock().unwrap().contains(&"lose".to_owned()));
        assert_eq!(me.tenancy.claim(my_key()), Claim::Owned);
    }
}
