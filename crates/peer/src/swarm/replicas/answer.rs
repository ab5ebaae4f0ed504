//! Answering a peer that sends or asks for replicas.

use super::{
    known_pages::SentPage,
    merge,
    message::{
        CENSUS, CensusAsk, CensusPage, DELTAS, Delta, DeltaAnswer, FETCH, MAX_NAMES, OFFER,
        OfferAnswer, PAGES, PIECE, PagesAsk, PagesPart, Parcel, PieceAsk, REPLICAS, ROUNDS,
        RoundsAsk,
    },
    puller,
    replica::Replica,
    rounds,
};
use crate::{
    clock::now,
    lock::lock,
    state_codec::decode_state,
    swarm::{
        rights::Sender,
        service::Answering,
        tenancy::{Claim, whole_ring},
        wire::{self, List},
    },
};
use apoidea_crawl::{Stance, Versions};
use apoidea_model::{Domain, PeerId};
use apoidea_overlay::{Refusal, Request, Signed, Touch};
use bytes::Bytes;
use std::sync::atomic::Ordering::Relaxed;

/// Records of pages looked at for one answer.
const PAGES_AT_ONCE: usize = 1000;
/// Domains looked at for one page of a census.
const SCANNED: usize = 5000;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) async fn answer(
    answering: &Answering,
    sender: &Sender<'_>,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    let answer = match *kind {
        DELTAS => match wire::decode(body) {
            Ok(sent) => deltas(answering, sender, sent).await,
            Err(refusal) => Err(refusal),
        },
        FETCH => match wire::decode(body) {
            Ok(domains) => fetch(answering, sender, domains).await,
            Err(refusal) => Err(refusal),
        },
        CENSUS => match wire::decode(body) {
            Ok(ask) => census(answering, sender, ask).await,
            Err(refusal) => Err(refusal),
        },
        OFFER => wire::decode(body).and_then(|offers| offer(answering, sender, offers)),
        REPLICAS => wire::decode(body).and_then(|domains| replicas(answering, sender, domains)),
        PAGES => wire::decode(body).and_then(|ask| pages(answering, sender, &ask)),
        PIECE => wire::decode(body).and_then(|ask| piece(answering, sender, &ask)),
        ROUNDS => wire::decode(body).and_then(|ask| signed_round(answering, sender, &ask)),
        _ => return None,
    };
    Some(answer)
}

/// Takes changes from the owners of their domains only, and only those that this peer has to hold.
/// The round is kept for a while, for a peer that has missed it.
async fn deltas(
    answering: &Answering,
    sender: &Sender<'_>,
    round: Signed,
) -> Result<Bytes, Refusal> {
    let (deltas, now) = (rounds::read(&round).ok_or(Refusal::Malformed)?, now());
    let may_change = |delta: &Delta| {
        sender.may(delta.domain.key()) && rounds::is_own_step(sender.id, delta.step, now)
    };
    let is_theirs: Vec<bool> = deltas.iter().map(may_change).collect();
    let taken = deltas
        .into_iter()
        .zip(&is_theirs)
        .filter(|(_, is_theirs)| **is_theirs);
    let taken: Vec<Delta> = taken.map(|(delta, _)| delta).collect();
    let urls: usize = taken.iter().map(|delta| delta.puts.len() + 1).sum();
    if !answering
        .budgets
        .take_replica_urls(sender.id, urls as u64, now)
    {
        return Err(Refusal::Busy);
    }
    let mut answers = answering
        .orders
        .deltas(taken)
        .await
        .map_err(|_| Refusal::Busy)?
        .into_iter();
    let answer = |is_theirs| {
        if is_theirs {
            answers.next()
        } else {
            Some(DeltaAnswer::Stranger)
        }
    };
    let all: Vec<DeltaAnswer> = is_theirs.into_iter().filter_map(answer).collect();
    if all.contains(&DeltaAnswer::Applied) {
        answering.provenance.rounds.keep(sender.id, round);
    }
    Ok(wire::encode(&all))
}

/// Answers when the replicas are here.
async fn fetch(
    answering: &Answering,
    sender: &Sender<'_>,
    List(mut taken): List<Domain, MAX_NAMES>,
) -> Result<Bytes, Refusal> {
    taken.retain(|domain| sender.may(domain.key()));
    let (overlay, orders) = (answering.overlay.as_ref(), &answering.orders);
    let pulled = puller::pull(overlay, orders, sender.id, taken).await;
    pulled.map(|()| Bytes::new()).map_err(|_| Refusal::Busy)
}

/// Names the replicas here that are near the sender, once none of them can change: the new owner
/// would do again the work that is under way. A peer that is cut off does not know what others do
/// in its name, and nobody begins to work by its word.
async fn census(
    answering: &Answering,
    sender: &Sender<'_>,
    ask: CensusAsk,
) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    let is_leaving = answering.leaving.is_leaving.load(Relaxed);
    let place = match ask.arc == whole_ring() {
        true => answering.overlay.position(sender.id),
        false => Some(ask.arc.to),
    };
    let is_mine = place.is_some_and(|place| answering.tenancy.claim(place) != Claim::Foreign);
    let is_cut_off = answering.overlay.touch() == Touch::Few;
    if !is_leaving && (is_mine || is_cut_off || !answering.orders.is_drained(ask.arc).await) {
        return Err(Refusal::Busy);
    }
    let domains = answering
        .store
        .domains("", ask.after.as_ref(), SCANNED)
        .map_err(|_| Refusal::Busy)?;
    let is_last = domains.len() < SCANNED;
    let (mut held, mut bytes) = (Vec::new(), 0);
    let mut after = None;
    for (domain, state) in domains {
        if bytes > wire::FRAME_BYTES {
            after = held
                .last()
                .map(|(domain, _): &(Domain, Versions)| domain.clone());
            return Ok(wire::encode(&CensusPage { held, after }));
        }
        after = Some(domain.clone());
        if ask.arc.contains(domain.key()) && sender.may(domain.key()) {
            let entry = (domain.clone(), decode_state(&domain, &state).versions);
            bytes += wire::plain_bytes(&entry);
            held.push(entry);
        }
    }
    let after = after.filter(|_| !is_last);
    if after.is_none() && is_leaving {
        answering.leaving.censuses.fetch_add(1, Relaxed);
    }
    Ok(wire::encode(&CensusPage { held, after }))
}

fn offer(
    answering: &Answering,
    sender: &Sender<'_>,
    offers: List<(Domain, Versions), MAX_NAMES>,
) -> Result<Bytes, Refusal> {
    let answers: Vec<OfferAnswer> = offers
        .0
        .into_iter()
        .map(|(domain, versions)| consider(answering, sender, domain, &versions))
        .collect();
    Ok(wire::encode(&answers))
}

fn consider(
    answering: &Answering,
    sender: &Sender<'_>,
    domain: Domain,
    theirs: &Versions,
) -> OfferAnswer {
    if !sender.may(domain.key()) {
        return OfferAnswer::Stranger;
    }
    let Ok(mine) = merge::versions(&answering.store, &domain) else {
        return OfferAnswer::Wanted;
    };
    if answering
        .provenance
        .heard
        .of(&domain, sender.id)
        .contain(theirs)
    {
        return OfferAnswer::Held;
    }
    match mine.stance(theirs) {
        Stance::Same => OfferAnswer::Held,
        Stance::Skip => OfferAnswer::Newer,
        Stance::Replace | Stance::Merge => {
            answering.puller.want(domain, sender.id);
            OfferAnswer::Wanted
        }
    }
}

/// The replicas of domains near the sender. Of all others it learns nothing.
fn replicas(
    answering: &Answering,
    sender: &Sender<'_>,
    domains: List<Domain, MAX_NAMES>,
) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    let (mut parcels, mut room) = (Vec::new(), wire::FRAME_BYTES);
    for domain in domains.0 {
        if !sender.may(domain.key()) {
            parcels.push(Parcel::Unknown(domain));
            continue;
        }
        let replica = Replica::read(&answering.store, &domain).map_err(|_| Refusal::Busy)?;
        let Some(mut replica) = replica else {
            parcels.push(Parcel::Unknown(domain));
            continue;
        };
        replica.heard = answering.provenance.heard.of(&domain, sender.id);
        let bytes = wire::plain_bytes(&replica) + domain.as_str().len();
        if bytes > wire::FRAME_BYTES {
            // One large replica in an answer: it stays here until its pieces are fetched, and more
            // of them would drive each other out.
            match wrap(answering, sender.id, domain, &replica) {
                Some(parcel) => parcels.push(parcel),
                None if parcels.is_empty() => return Err(Refusal::Busy),
                None => {}
            }
            break;
        }
        if bytes > room {
            break;
        }
        room -= bytes;
        parcels.push(Parcel::Whole(domain, replica));
    }
    Ok(wire::encode(&parcels))
}

/// Keeps a large replica until it is fetched in pieces.
fn wrap(
    answering: &Answering,
    reader: PeerId,
    domain: Domain,
    replica: &Replica,
) -> Option<Parcel> {
    let whole: Bytes = postcard::to_stdvec(replica)
        .expect("names, numbers and lists always serialise")
        .into();
    let bytes = u32::try_from(whole.len()).unwrap_or(u32::MAX);
    let id = lock(&answering.large).keep(reader, domain.clone(), whole)?;
    Some(Parcel::Large { domain, id, bytes })
}

/// One of the last rounds of an owner near the sender.
fn signed_round(
    answering: &Answering,
    sender: &Sender<'_>,
    ask: &RoundsAsk,
) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    let position = answering.overlay.position(ask.owner);
    if !sender.may(position.unwrap_or(ask.owner.key())) {
        return Err(Refusal::NotYours);
    }
    let round = answering.provenance.rounds.of(ask.owner, ask.place);
    Ok(wire::encode(&round))
}

fn piece(answering: &Answering, sender: &Sender<'_>, ask: &PieceAsk) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    let piece = lock(&answering.large).piece(sender.id, &ask.domain, ask.id, ask.offset);
    // A peer that was too slow has to ask for the replica again.
    piece.ok_or(Refusal::Busy)
}

/// The records of a domain near the sender, as many as fit.
fn pages(answering: &Answering, sender: &Sender<'_>, ask: &PagesAsk) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    if !sender.may(ask.domain.key()) {
        return Err(Refusal::NotMine);
    }
    let records = answering.store.pages(&ask.domain, ask.after, PAGES_AT_ONCE);
    let records = records.map_err(|_| Refusal::Busy)?;
    let is_all = records.len() < PAGES_AT_ONCE;
    let (mut pages, mut room) = (Vec::new(), wire::FRAME_BYTES);
    for record in &records {
        let page = SentPage::of(record);
        let bytes = wire::plain_bytes(&page);
        if bytes > room {
            break;
        }
        room -= bytes;
        pages.push(page);
    }
    let is_end = is_all && pages.len() == records.len();
    let last = pages.last().map(|page| page.url.hash());
    let after = last.filter(|_| !is_end);
    Ok(wire::encode(&PagesPart { pages, after }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{
        TestPeer, ask, obedient_crawler, peer, signed, signer, versions, waiting_url,
    };
    use apoidea_crawl::Step;
    use apoidea_overlay::{Arc as RingArc, Kind};
    use futures::FutureExt;
    use serde::{Serialize, de::DeserializeOwned};

    const ME: u8 = 0x50;
    const OWNER: u8 = 0x40;
    const STRANGER: u8 = 0xc0;
    const MEMBERS: [u8; 6] = [ME, OWNER, 0x60, 0x80, 0xa0, STRANGER];
    /// URLs that certainly do not fit into a frame.
    const MANY: u64 = 4000;

    async fn asked<T: DeserializeOwned>(
        me: &TestPeer,
        from: u8,
        kind: Kind,
        message: &impl Serialize,
    ) -> Result<T, Refusal> {
        let answer = ask(&me.service(), peer(from), kind, message).await?;
        wire::decode(&answer)
    }

    fn arc_of(owner: u8, before: u8) -> RingArc {
        RingArc {
            from: peer(before).key(),
            to: peer(owner).key(),
        }
    }

    #[tokio::test]
    async fn changes_are_taken_from_the_owner_of_the_domain_only() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let near = me.ring.domain_of(peer(OWNER));
        let far = me.ring.domain_of(peer(0x60));
        let change =
            |domain: &Domain| Delta::announcement(domain.clone(), versions(&[(peer(OWNER), 1)]));
        let sent = vec![change(&far), change(&near)];
        let answers = asked::<Vec<DeltaAnswer>>(&me, OWNER, DELTAS, &signed(&sent)).await;
        assert_eq!(
            answers,
            Ok(vec![DeltaAnswer::Stranger, DeltaAnswer::Applied])
        );
        assert_eq!(*log.lock().unwrap(), [format!("deltas {near}")]);
    }

    #[tokio::test]
    async fn a_change_under_the_tenure_of_another_peer_is_not_taken() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let domain = me.ring.domain_of(peer(OWNER));
        let step = |by| {
            let versions = versions(&[(peer(by), 1)]);
            let announced = Delta::announcement(domain.clone(), versions);
            let step = Step {
                base: 0,
                ..announced.step
            };
            Delta { step, ..announced }
        };
        let sent = signed(&[step(0x60), step(OWNER)]);
        let answers = asked::<Vec<DeltaAnswer>>(&me, OWNER, DELTAS, &sent).await;
        assert_eq!(
            answers,
            Ok(vec![DeltaAnswer::Stranger, DeltaAnswer::Applied])
        );
        assert_eq!(*log.lock().unwrap(), [format!("deltas {domain}")]);
    }

    #[tokio::test]
    async fn the_rounds_of_an_owner_are_shown_to_peers_near_it_only() {
        let owner = signer();
        let others = (0..20).map(|place| peer(5 + 12 * place));
        let members = [peer(ME), owner.me()].into_iter().chain(others);
        let (me, _inbox) = TestPeer::owner(members);
        let round = owner.sign(apoidea_overlay::Purpose::new("round"), &7u32);
        me.provenance.rounds.keep(owner.me(), round.clone());
        let service = me.service();
        let kept = async |from, place| {
            let owner = owner.me();
            let answer = ask(&service, from, ROUNDS, &RoundsAsk { owner, place }).await?;
            wire::decode::<Option<Signed>>(&answer)
        };
        let next = me.ring.near_key(owner.me().key());
        assert_eq!(kept(next[1], 0).await, Ok(Some(round)));
        assert_eq!(kept(next[1], 1).await, Ok(None));
        assert_eq!(kept(next[12], 0).await, Err(Refusal::NotYours));
    }

    #[tokio::test]
    async fn too_many_names_are_refused() {
        let (me, _inbox) = TestPeer::owner(MEMBERS.map(peer));
        let names = vec![me.ring.domain_of(peer(OWNER)); MAX_NAMES + 1];
        let offers: Vec<(Domain, Versions)> = names
            .iter()
            .map(|name| (name.clone(), Versions::default()))
            .collect();
        let changes: Vec<Delta> = offers
            .iter()
            .map(|(name, versions)| Delta::announcement(name.clone(), versions.clone()))
            .collect();
        let service = me.service();
        let refused = Err(Refusal::Malformed);
        assert_eq!(
            ask(&service, peer(OWNER), DELTAS, &signed(&changes)).await,
            refused
        );
        assert_eq!(ask(&service, peer(OWNER), FETCH, &names).await, refused);
        assert_eq!(ask(&service, peer(OWNER), REPLICAS, &names).await, refused);
        assert_eq!(ask(&service, peer(OWNER), OFFER, &offers).await, refused);
    }

    #[tokio::test]
    async fn a_fetch_is_answered_when_the_replicas_are_here() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let (owner, _orders) = TestPeer::owner([OWNER, ME].map(peer));
        let mine = me.ring.domain_of(peer(OWNER));
        let far = me.ring.domain_of(peer(0x60));
        for domain in [&mine, &far] {
            owner.hold(domain, &versions(&[(peer(OWNER), 1)]), 3);
        }
        me.ring.answer_from(peer(OWNER), owner.service());
        let answer = ask(&me.service(), peer(OWNER), FETCH, &vec![&mine, &far]).await;
        assert_eq!(answer, Ok(Bytes::new()));
        assert_eq!(*log.lock().unwrap(), [format!("adopt {mine} 3")]);
    }

    #[tokio::test]
    async fn a_census_names_the_domains_of_the_arc_page_by_page() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        obedient_crawler(inbox);
        let versions = versions(&[OWNER, 0x60, 0x80].map(|by| (peer(by), 2)));
        let mut domains = me.ring.domains_of(peer(OWNER), 3000);
        let mut commit = apoidea_store::Commit::new();
        let mut state = apoidea_crawl::DomainState::default();
        state.versions = versions.clone();
        for domain in domains.iter().chain(&me.ring.domains_of(peer(0x60), 10)) {
            commit.put_domain(domain, state.encode());
        }
        me.store.commit(&commit).unwrap();
        let (mut held, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let census = CensusAsk {
                arc: arc_of(OWNER, STRANGER),
                after,
            };
            let page: CensusPage = asked(&me, OWNER, CENSUS, &census).await.unwrap();
            held.extend(page.held);
            pages += 1;
            let Some(next) = page.after else { break };
            after = Some(next);
        }
        domains.sort();
        let named: Vec<Domain> = held.iter().map(|(domain, _)| domain.clone()).collect();
        assert_eq!(named, domains);
        assert!(pages > 1 && held.iter().all(|(_, held)| *held == versions));
    }

    #[tokio::test]
    async fn a_census_waits_while_the_arc_is_still_this_peers_or_under_way() {
        let (me, mut inbox) = TestPeer::owner(MEMBERS.map(peer));
        let ask_for = |arc| CensusAsk { arc, after: None };
        let own = asked::<CensusPage>(&me, OWNER, CENSUS, &ask_for(arc_of(ME, OWNER))).await;
        assert_eq!(own.unwrap_err(), Refusal::Busy);
        let census = ask_for(arc_of(OWNER, STRANGER));
        let busy = async {
            if let Some(crate::swarm::orders::SwarmOrder::Drained(_, reply)) = inbox.recv().await {
                reply.send(false).unwrap();
            }
        };
        let (answer, ()) = tokio::join!(asked::<CensusPage>(&me, OWNER, CENSUS, &census), busy);
        assert_eq!(answer.unwrap_err(), Refusal::Busy);
    }

    #[tokio::test]
    async fn a_leaving_peer_answers_a_census_of_its_own_arc() {
        let (me, _inbox) = TestPeer::owner(MEMBERS.map(peer));
        let service = me.service();
        let leaving = &service.answering().unwrap().leaving;
        leaving.is_leaving.store(true, Relaxed);
        let census = CensusAsk {
            arc: arc_of(ME, OWNER),
            after: None,
        };
        ask(&service, peer(OWNER), CENSUS, &census).await.unwrap();
        assert_eq!(leaving.censuses.load(Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_offer_is_fetched_where_something_is_lacking() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let domains = me.ring.domains_of(peer(OWNER), 4);
        let by = |changes: &[(u8, u32)]| {
            versions(
                &changes
                    .iter()
                    .map(|&(by, count)| (peer(by), count))
                    .collect::<Vec<_>>(),
            )
        };
        let held = [
            by(&[(OWNER, 2)]),
            by(&[(OWNER, 3)]),
            by(&[(OWNER, 1)]),
            by(&[(ME, 1)]),
        ];
        for (domain, versions) in domains.iter().zip(&held) {
            me.hold(domain, versions, 1);
        }
        let offers: Vec<(Domain, Versions)> = domains
            .iter()
            .map(|domain| (domain.clone(), by(&[(OWNER, 2)])))
            .collect();
        let answers = asked::<Vec<OfferAnswer>>(&me, OWNER, OFFER, &offers)
            .await
            .unwrap();
        use OfferAnswer::{Held, Newer, Wanted};
        assert_eq!(answers, [Held, Newer, Wanted, Wanted]);
        let (owner, _orders) = TestPeer::owner([OWNER, ME].map(peer));
        offers
            .iter()
            .for_each(|(domain, versions)| owner.hold(domain, versions, 5));
        me.ring.answer_from(peer(OWNER), owner.service());
        tokio::spawn(me.puller.clone().run(me.ring.clone(), me.orders.clone()));
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let mut adopted = log.lock().unwrap().clone();
        adopted.sort();
        let mut wanted = [&domains[2], &domains[3]].map(|domain| format!("adopt {domain} 5"));
        wanted.sort();
        assert_eq!(adopted, wanted);
    }

    #[tokio::test]
    async fn replicas_that_do_not_fit_into_an_answer_are_left_for_the_next() {
        let (me, _inbox) = TestPeer::owner(MEMBERS.map(peer));
        let domains = me.ring.domains_of(peer(OWNER), 4);
        let changes = versions(&[(peer(OWNER), 1)]);
        for domain in &domains[1..] {
            me.hold(domain, &changes, 900);
        }
        let parcels: Vec<Parcel> = asked(&me, OWNER, REPLICAS, &domains).await.unwrap();
        assert!(matches!(&parcels[0], Parcel::Unknown(domain) if *domain == domains[0]));
        assert!(matches!(&parcels[1], Parcel::Whole(domain, _) if *domain == domains[1]));
        assert!(parcels.len() < domains.len());
    }

    #[tokio::test]
    async fn a_large_replica_comes_in_pieces() {
        let (me, _inbox) = TestPeer::owner(MEMBERS.map(peer));
        let domain = me.ring.domain_of(peer(OWNER));
        me.hold(&domain, &versions(&[(peer(OWNER), 1)]), MANY);
        let service = me.service();
        let answer = ask(&service, peer(OWNER), REPLICAS, &vec![&domain])
            .await
            .unwrap();
        let parcels: Vec<Parcel> = wire::decode(&answer).unwrap();
        let [Parcel::Large { id, bytes, .. }] = parcels[..] else {
            panic!("{} parcels", parcels.len());
        };
        let piece = |id, offset| {
            let domain = domain.clone();
            let ask_for = PieceAsk { domain, id, offset };
            let answer = ask(&service, peer(OWNER), PIECE, &ask_for).now_or_never();
            answer.expect("a piece is at hand")
        };
        let mut whole = Vec::new();
        while whole.len() < bytes as usize {
            let next = piece(id, whole.len() as u32).unwrap();
            assert!(next.len() <= wire::FRAME_BYTES && !next.is_empty());
            whole.extend_from_slice(&next);
        }
        let replica: Replica = postcard::from_bytes(&whole).unwrap();
        assert_eq!(replica.queue[7], waiting_url(&domain, 7));
        assert_eq!(replica.queue.len() as u64, MANY);
        assert_eq!(piece(id, u32::MAX), Ok(Bytes::new()));
        assert_eq!(piece(id.wrapping_add(1), 0), Err(Refusal::Busy));
    }
}
