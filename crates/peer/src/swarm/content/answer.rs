//! Answering a peer that asks about content.

use super::message::{
    CONTENT, ContentAsk, FACTS, FACTS_IN, Facts, FactsAsk, MAX_FACTS, PROOF, ProofAsk,
};
use crate::{
    clock::now,
    page::content::{Sighting, Verdict},
    swarm::{
        rights::Sender,
        service::Answering,
        tenancy::Claim,
        wire::{self, List},
    },
};
use apoidea_model::ContentHash;
use apoidea_overlay::{Refusal, Request};
use apoidea_store::{Commit, Fact};
use bytes::Bytes;

/// Pages of facts that are looked through for one answer: a stranger must not have the whole table
/// read.
const SCANNED_PAGES: usize = 20;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) async fn answer(
    answering: &Answering,
    sender: &Sender<'_>,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    let answer = match *kind {
        CONTENT => wire::decode(body).and_then(|asks| content(answering, sender, asks)),
        PROOF => match wire::decode(body) {
            Ok(ask) => proof(answering, ask).await,
            Err(refusal) => Err(refusal),
        },
        FACTS => wire::decode(body).and_then(|facts| take_facts(answering, sender, facts)),
        FACTS_IN => wire::decode(body).and_then(|ask| facts_in(answering, sender, &ask)),
        _ => return None,
    };
    Some(answer)
}

/// Shows that this peer keeps a page's content, if it does.
async fn proof(answering: &Answering, ask: ProofAsk) -> Result<Bytes, Refusal> {
    let ProofAsk {
        content,
        page,
        nonce,
    } = ask;
    let proof = answering.prover.prove(page, content, nonce).await;
    Ok(wire::encode(&proof))
}

fn content(
    answering: &Answering,
    sender: &Sender<'_>,
    List(asks): List<ContentAsk, MAX_FACTS>,
) -> Result<Bytes, Refusal> {
    let claims: Vec<Claim> = asks
        .iter()
        .map(|ask| answering.tenancy.claim_to_fact(ask.content.key()))
        .collect();
    if claims.contains(&Claim::Foreign) {
        return Err(Refusal::NotMine);
    }
    if claims.contains(&Claim::TakingOver) {
        return Err(Refusal::Busy);
    }
    let sights: Vec<Sighting> = asks.into_iter().map(|ask| ask.seen_by(sender.id)).collect();
    let room = answering.budgets.room_for_facts(sender.id, now());
    let verdicts = answering.index.judge_at_most(&sights, room);
    let new = verdicts.iter().filter(|verdict| **verdict == Verdict::New);
    let new = (new.count() as u64).min(room);
    answering.budgets.note_facts(sender.id, new, now());
    let verdicts = verdicts.into_iter().map(|verdict| match verdict {
        Verdict::New => None,
        Verdict::Duplicate(fact) => Some(fact),
        Verdict::Unchanged => None,
    });
    Ok(wire::encode(&verdicts.collect::<Vec<_>>()))
}

/// Takes the facts that are the sender's to tell and this peer's to hold. Views of the ring may
/// differ about a few of them.
fn take_facts(
    answering: &Answering,
    sender: &Sender<'_>,
    List(mut facts): List<(ContentHash, Fact), MAX_FACTS>,
) -> Result<Bytes, Refusal> {
    facts.retain(|(content, _)| sender.may(content.key()));
    if facts.is_empty() {
        return Err(Refusal::NotYours);
    }
    let is_new =
        |(content, _): &(ContentHash, Fact)| matches!(answering.store.fact(content), Ok(None));
    facts.retain(is_new);
    let new = facts.len() as u64;
    if new > answering.budgets.room_for_facts(sender.id, now()) {
        return Err(Refusal::Busy);
    }
    answering.budgets.note_facts(sender.id, new, now());
    let mut commit = Commit::new();
    for (content, fact) in facts {
        commit.put_fact(&content, fact);
    }
    answering.store.apply(&commit).map_err(|_| Refusal::Busy)?;
    Ok(Bytes::new())
}

/// The next facts of an arc that are near the sender.
fn facts_in(answering: &Answering, sender: &Sender<'_>, ask: &FactsAsk) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    let mut from = ask.after.unwrap_or(ask.arc.from);
    let mut is_end = ask.after == Some(ask.arc.to);
    let mut near = Facts::new();
    for _ in 0..SCANNED_PAGES {
        if is_end || !near.is_empty() {
            break;
        }
        let facts = answering.store.facts_in(from, ask.arc.to, MAX_FACTS);
        let mut facts = facts.map_err(|_| Refusal::Busy)?;
        is_end = facts.len() < MAX_FACTS;
        from = facts.last().map_or(from, |(content, _)| content.key());
        facts.retain(|(content, _)| sender.may(content.key()));
        near = facts;
    }
    let mut portions = wire::portions(near, MAX_FACTS).into_iter();
    Ok(wire::encode(&portions.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::content::Standing;
    use crate::swarm::{
        tenancy::whole_ring,
        testing::{TestPeer, ask, fact, peer},
    };
    use apoidea_model::{ContentHash, Time};
    use apoidea_store::Fact;

    const ME: u8 = 0x40;
    const OTHER: u8 = 0xa0;

    fn question(content: ContentHash) -> ContentAsk {
        let Fact { page, .. } = fact("asked.test");
        ContentAsk {
            content,
            page,
            time: Time::from_millis(9),
            standing: Standing::Open,
        }
    }

    async fn asked(me: &TestPeer, asks: &[ContentAsk]) -> Result<Vec<Option<Fact>>, Refusal> {
        let answer = ask(&me.service(), peer(OTHER), CONTENT, &asks).await?;
        wire::decode(&answer)
    }

    #[tokio::test]
    async fn known_content_is_answered_with_its_first_page_and_new_content_is_remembered() {
        let (me, _inbox) = TestPeer::owner([ME, OTHER].map(peer));
        let contents = me.ring.contents_of(peer(ME), 2);
        me.know(&contents[0], fact("first.test"));
        let asks = [question(contents[0]), question(contents[1])];
        let facts = asked(&me, &asks).await;
        assert_eq!(facts, Ok(vec![Some(fact("first.test")), None]));
        let remembered = me.store.fact(&contents[1]).unwrap().unwrap();
        assert_eq!(remembered.page, fact("asked.test").page);
    }

    #[tokio::test]
    async fn a_batch_with_foreign_content_is_refused() {
        let (me, _inbox) = TestPeer::owner([ME, OTHER].map(peer));
        let asks = [ME, OTHER].map(|owner| question(me.ring.contents_of(peer(owner), 1)[0]));
        assert_eq!(asked(&me, &asks).await, Err(Refusal::NotMine));
    }

    #[tokio::test]
    async fn nothing_is_said_before_the_facts_are_taken_over() {
        let (me, _inbox) = TestPeer::new([ME, OTHER].map(peer));
        let asks = [question(me.ring.contents_of(peer(ME), 1)[0])];
        assert_eq!(asked(&me, &asks).await, Err(Refusal::Busy));
        me.tenancy.end_taking_over_facts(whole_ring());
        assert_eq!(asked(&me, &asks).await, Ok(vec![None]));
    }

    #[tokio::test]
    async fn too_many_questions_or_facts_are_refused() {
        let (me, _inbox) = TestPeer::owner([ME, OTHER].map(peer));
        let contents = me.ring.contents_of(peer(ME), MAX_FACTS + 1);
        let asks: Vec<ContentAsk> = contents.iter().map(|content| question(*content)).collect();
        assert_eq!(asked(&me, &asks).await, Err(Refusal::Malformed));
        let facts: Facts = contents
            .iter()
            .map(|content| (*content, fact("a.test")))
            .collect();
        let taken = ask(&me.service(), peer(OTHER), FACTS, &facts).await;
        assert_eq!(taken, Err(Refusal::Malformed));
        assert_eq!(me.store.fact(&contents[0]).unwrap(), None);
    }

    #[tokio::test]
    async fn a_known_fact_is_not_overwritten() {
        let (me, _inbox) = TestPeer::owner([ME, OTHER].map(peer));
        let contents = me.ring.contents_of(peer(ME), 2);
        me.know(&contents[0], fact("first.test"));
        let facts: Facts = contents
            .iter()
            .map(|content| (*content, fact("late.test")))
            .collect();
        ask(&me.service(), peer(OTHER), FACTS, &facts)
            .await
            .unwrap();
        assert_eq!(
            me.store.fact(&contents[0]).unwrap(),
            Some(fact("first.test"))
        );
        assert_eq!(
            me.store.fact(&contents[1]).unwrap(),
            Some(fact("late.test"))
        );
    }

    #[tokio::test]
    async fn facts_are_taken_from_their_owner_and_others_are_left_out() {
        const FAR: u8 = 0xc0;
        let members = [0x50, 0x40, 0x60, 0x70, 0x80, 0x90, 0xa0, 0xb0, FAR];
        let (me, _inbox) = TestPeer::owner(members.map(peer));
        let theirs = me.ring.contents_of(peer(0x40), 1)[0];
        let others = me.ring.contents_of(peer(0x80), 1)[0];
        let facts: Facts = vec![(others, fact("a.test")), (theirs, fact("a.test"))];
        let service = me.service();
        let refused = ask(&service, peer(FAR), FACTS, &facts).await;
        assert_eq!(refused, Err(Refusal::NotYours));
        ask(&service, peer(0x40), FACTS, &facts).await.unwrap();
        assert_eq!(me.store.fact(&others).unwrap(), None);
        assert_eq!(me.store.fact(&theirs).unwrap(), Some(fact("a.test")));
    }

    #[tokio::test]
    async fn a_peer_reads_the_facts_near_it_whatever_arc_it_asks_for() {
        let members = [
            0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70, 0x80, 0x90, 0xa0, 0xb0,
        ];
        let (me, _inbox) = TestPeer::owner(members.map(peer));
        let near = me.ring.contents_of(peer(0xb0), 1)[0];
        let far = me.ring.contents_of(peer(0x20), 1)[0];
        for content in [&near, &far] {
            me.know(content, fact("a.test"));
        }
        let everything = FactsAsk {
            arc: whole_ring(),
            after: None,
        };
        let answer = ask(&me.service(), peer(0xb0), FACTS_IN, &everything).await;
        let facts: Facts = wire::decode(&answer.unwrap()).unwrap();
        assert_eq!(facts, [(near, fact("a.test"))]);
    }

    #[tokio::test]
    async fn the_facts_of_an_arc_are_read_page_by_page() {
        let (me, _inbox) = TestPeer::owner([ME, OTHER].map(peer));
        let mut contents = me.ring.contents_of(peer(OTHER), MAX_FACTS + 10);
        contents
            .iter()
            .for_each(|content| me.know(content, fact("a.test")));
        me.know(&me.ring.contents_of(peer(ME), 1)[0], fact("a.test"));
        let arc = apoidea_overlay::Arc {
            from: peer(ME).key(),
            to: peer(OTHER).key(),
        };
        let (service, mut found, mut after) = (me.service(), Vec::new(), None);
        loop {
            let page = ask(&service, peer(OTHER), FACTS_IN, &FactsAsk { arc, after }).await;
            let page: Facts = wire::decode(&page.unwrap()).unwrap();
            assert!(page.len() <= MAX_FACTS);
            let Some((last, _)) = page.last() else { break };
            after = Some(last.key());
            found.extend(page.into_iter().map(|(content, _)| content));
        }
        contents.sort_by_key(|content| content.key());
        assert_eq!(found, contents);
    }
}
