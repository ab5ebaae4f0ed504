//! Answering a peer that asks about content.

use super::message::{CONTENT, ContentAsk, FACTS, FACTS_IN, Facts, FactsAsk, MAX_FACTS};
use crate::{
    page::content::{Sighting, Verdict},
    swarm::{service::Answering, tenancy::Claim, wire},
};
use apoidea_overlay::{Refusal, Request};
use apoidea_store::Commit;
use bytes::Bytes;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) fn answer(
    answering: &Answering,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    let answer = match *kind {
        CONTENT => wire::decode(body).and_then(|asks| content(answering, asks)),
        FACTS => wire::decode(body).and_then(|facts| take_facts(answering, facts)),
        FACTS_IN => wire::decode(body).and_then(|ask| facts_in(answering, &ask)),
        _ => return None,
    };
    Some(answer)
}

fn content(answering: &Answering, asks: Vec<ContentAsk>) -> Result<Bytes, Refusal> {
    if asks.len() > MAX_FACTS {
        return Err(Refusal::Malformed);
    }
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
    let sights: Vec<Sighting> = asks.into_iter().map(Sighting::from).collect();
    let verdicts = answering
        .index
        .judge_now(&sights)
        .into_iter()
        .map(|verdict| match verdict {
            Verdict::New => None,
            Verdict::Duplicate(fact) => Some(fact),
            Verdict::Unchanged => None,
        });
    Ok(wire::encode(&verdicts.collect::<Vec<_>>()))
}

fn take_facts(answering: &Answering, facts: Facts) -> Result<Bytes, Refusal> {
    if facts.len() > MAX_FACTS {
        return Err(Refusal::Malformed);
    }
    let mut commit = Commit::new();
    for (content, fact) in facts {
        if matches!(answering.store.fact(&content), Ok(None)) {
            commit.put_fact(&content, fact);
        }
    }
    answering.store.apply(&commit).map_err(|_| Refusal::Busy)?;
    Ok(Bytes::new())
}

fn facts_in(answering: &Answering, ask: &FactsAsk) -> Result<Bytes, Refusal> {
    answering.leaving.note_question();
    let from = ask.after.unwrap_or(ask.arc.from);
    if ask.after == Some(ask.arc.to) {
        return Ok(wire::encode(&Facts::new()));
    }
    let facts = answering
        .store
        .facts_in(from, ask.arc.to, MAX_FACTS)
        .map_err(|_| Refusal::Busy)?;
    Ok(wire::encode(
        &wire::portions(facts, MAX_FACTS)
            .into_iter()
            .next()
            .unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
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
