//! Answering a peer that lends a fetch, or brings the result of one.

use super::message::{LOAN, LoanAsk, LoanResult, RESULT};
use crate::swarm::{orders::SwarmOrder, rights::Sender, service::Answering, wire};
use apoidea_overlay::{Refusal, Request};
use bytes::Bytes;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) async fn answer(
    answering: &Answering,
    sender: &Sender<'_>,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    match *kind {
        LOAN => Some(loan(answering, sender, body).await),
        RESULT => Some(result(answering, sender, body).await),
        _ => None,
    }
}

/// Only the owner of a domain can have something of it fetched, and only by its own neighbours: a
/// hostile owner cannot send the whole network to a site.
async fn loan(answering: &Answering, sender: &Sender<'_>, body: &[u8]) -> Result<Bytes, Refusal> {
    let ask: LoanAsk = wire::decode(body)?;
    // A helper that takes no part in the crawl leaves the fetch to others.
    if ask.crawl().check().is_err() {
        return Err(Refusal::Busy);
    }
    let borrow = ask.into_borrow();
    if !sender.may(borrow.url().domain().key()) {
        return Err(Refusal::NotYours);
    }
    let borrowed = answering.orders.borrow(sender.id, borrow).await;
    borrowed.map(|()| Bytes::new()).map_err(|_| Refusal::Busy)
}

async fn result(answering: &Answering, sender: &Sender<'_>, body: &[u8]) -> Result<Bytes, Refusal> {
    let result: LoanResult = wire::decode(body)?;
    let order = SwarmOrder::Result(sender.id, Box::new(result));
    answering.orders.tell(order).await;
    Ok(Bytes::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        lending::message::LoanAnswer,
        testing::{TestPeer, ask, obedient_crawler, peer, waiting_url},
    };
    use apoidea_crawl::lending::FetchId;
    use apoidea_model::{CrawlId, Pending};

    const ME: u8 = 0x20;
    const OWNER: u8 = 0x40;
    const STRANGER: u8 = 0xc0;
    const MEMBERS: [u8; 6] = [ME, OWNER, 0x60, 0x80, 0xa0, STRANGER];

    fn page(me: &TestPeer) -> Pending {
        waiting_url(&me.ring.domain_of(peer(OWNER)), 1)
    }

    #[tokio::test]
    async fn the_owner_of_a_domain_may_lend_its_fetches() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let url = page(&me).url;
        for loan in [
            LoanAsk::Page(Box::new(page(&me))),
            LoanAsk::Robots(url.clone()),
        ] {
            let answer = ask(&me.service(), peer(OWNER), LOAN, &loan).await;
            assert_eq!(answer, Ok(Bytes::new()));
        }
        let line = format!("borrow {}", url.as_str());
        assert_eq!(*log.lock().unwrap(), [line.clone(), line]);
    }

    #[tokio::test]
    async fn a_peer_far_from_a_domain_may_not() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let loan = LoanAsk::Page(Box::new(page(&me)));
        let answer = ask(&me.service(), peer(STRANGER), LOAN, &loan).await;
        assert_eq!(answer, Err(Refusal::NotYours));
        assert!(log.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_fetch_of_an_unknown_crawl_is_turned_away() {
        let (me, inbox) = TestPeer::owner(MEMBERS.map(peer));
        let log = obedient_crawler(inbox);
        let loan = LoanAsk::Page(Box::new(Pending {
            crawl: CrawlId(7),
            ..page(&me)
        }));
        let answer = ask(&me.service(), peer(OWNER), LOAN, &loan).await;
        assert_eq!(answer, Err(Refusal::Busy));
        assert!(log.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_helper_without_time_is_busy() {
        let (me, mut inbox) = TestPeer::owner(MEMBERS.map(peer));
        let service = me.service();
        let loan = LoanAsk::Page(Box::new(page(&me)));
        let dropped = async { drop(inbox.recv().await) };
        let (answer, ()) = tokio::join!(ask(&service, peer(OWNER), LOAN, &loan), dropped);
        assert_eq!(answer, Err(Refusal::Busy));
    }

    #[tokio::test]
    async fn a_result_reaches_the_crawler_with_the_name_of_the_helper() {
        let (me, mut inbox) = TestPeer::owner(MEMBERS.map(peer));
        let result = LoanResult {
            fetch: FetchId::Robots(me.ring.domain_of(peer(ME))),
            answer: LoanAnswer::Unsent,
        };
        let answer = ask(&me.service(), peer(STRANGER), RESULT, &result).await;
        assert_eq!(answer, Ok(Bytes::new()));
        let Some(SwarmOrder::Result(helper, told)) = inbox.recv().await else {
            panic!("another order came");
        };
        assert_eq!((helper, told.fetch), (peer(STRANGER), result.fetch));
    }
}
