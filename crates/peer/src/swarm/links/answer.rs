//! Answering a peer that sends links.

use super::message::{LINKS, LinksAnswer};
use crate::swarm::{
    rights::Sender,
    service::Answering,
    tenancy::Claim,
    trust::voucher::{Seal, fingerprints},
    wire::{self, List},
};
use apoidea_model::{CrawlId, Link, LinkBatch, PageUrl};
use apoidea_overlay::{Refusal, Request};
use bytes::Bytes;
use serde::Deserialize;
use std::collections::HashSet;

/// A batch as it comes: longer ones are refused before their links are read.
#[derive(Deserialize)]
struct SentBatch {
    crawl: CrawlId,
    links: List<Link, { LinkBatch::MAX_LINKS }>,
}

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) async fn answer(
    answering: &Answering,
    sender: &Sender<'_>,
    request: &Request,
) -> Option<Result<Bytes, Refusal>> {
    match request.kind {
        LINKS => Some(links(answering, sender, request).await),
        _ => None,
    }
}

async fn links(
    answering: &Answering,
    sender: &Sender<'_>,
    request: &Request,
) -> Result<Bytes, Refusal> {
    let SentBatch { crawl, links } = wire::decode(&request.body)?;
    let batch = LinkBatch {
        crawl,
        links: links.0,
    };
    if batch.crawl.check().is_err() {
        return Ok(wire::encode(&LinksAnswer::UnknownCrawl));
    }
    let is_foreign = |url: &PageUrl| answering.tenancy.claim(url.domain().key()) == Claim::Foreign;
    if batch.links.iter().all(|link| is_foreign(&link.url)) {
        return Err(Refusal::NotMine);
    }
    let urls: Vec<PageUrl> = batch.links.iter().map(|link| link.url.clone()).collect();
    let answer = answering.orders.admit(sender.id, batch).await;
    let mut answer = answer.map_err(|_| Refusal::Busy)?;
    if let LinksAnswer::Taken {
        declined,
        dropped,
        seal,
    } = &mut answer
    {
        let taken = fingerprints(taken(&urls, declined, dropped));
        *seal = Some(Seal::set(&answering.signer, sender.id, &taken));
    }
    Ok(wire::encode(&answer))
}

/// The links of a batch that the owner has taken.
pub(in crate::swarm) fn taken<'a, T>(
    links: &'a [T],
    declined: &[u16],
    dropped: &[u16],
) -> impl Iterator<Item = &'a T> {
    let others: HashSet<u16> = declined.iter().chain(dropped).copied().collect();
    let places = (0u16..).zip(links);
    places.filter_map(move |(place, link)| (!others.contains(&place)).then_some(link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        testing::{TestPeer, ask, link, obedient_crawler, peer, signer_at},
        trust::voucher::Voucher,
    };
    use apoidea_model::Domain;

    const ME: u8 = 0x40;
    const OTHER: u8 = 0x80;

    fn batch(crawl: CrawlId, domains: &[&Domain]) -> LinkBatch {
        let links = domains.iter().map(|domain| link(domain, 1)).collect();
        LinkBatch { crawl, links }
    }

    #[tokio::test]
    async fn links_of_this_peers_domains_go_to_its_crawler() {
        let other = signer_at(OTHER);
        let (me, inbox) = TestPeer::owner([peer(ME), other.me()]);
        let log = obedient_crawler(inbox);
        let (mine, theirs) = (me.ring.domain_of(peer(ME)), me.ring.domain_of(other.me()));
        let batch = batch(CrawlId::OPEN, &[&theirs, &mine]);
        let answer = ask(&me.service(), other.me(), LINKS, &batch).await.unwrap();
        let LinksAnswer::Taken { declined, seal, .. } = wire::decode(&answer).unwrap() else {
            panic!("the crawl is known");
        };
        assert!(declined.is_empty());
        let links = fingerprints(batch.links.iter().map(|link| &link.url));
        let voucher = Voucher::new(me.signer.me(), links, seal.unwrap(), &other);
        assert_eq!(voucher.unwrap().count(), 2);
        assert_eq!(*log.lock().unwrap(), ["admit 2"]);
    }

    #[tokio::test]
    async fn a_batch_of_foreign_links_is_refused() {
        let (me, inbox) = TestPeer::owner([ME, OTHER].map(peer));
        obedient_crawler(inbox);
        let theirs = me.ring.domain_of(peer(OTHER));
        let batch = batch(CrawlId::OPEN, &[&theirs, &theirs]);
        let answer = ask(&me.service(), peer(OTHER), LINKS, &batch).await;
        assert_eq!(answer, Err(Refusal::NotMine));
    }

    #[tokio::test]
    async fn links_of_an_unknown_crawl_are_not_taken() {
        let (me, inbox) = TestPeer::owner([ME, OTHER].map(peer));
        obedient_crawler(inbox);
        let batch = batch(CrawlId(7), &[&me.ring.domain_of(peer(ME))]);
        let answer = ask(&me.service(), peer(OTHER), LINKS, &batch)
            .await
            .unwrap();
        assert!(matches!(
            wire::decode(&answer),
            Ok(LinksAnswer::UnknownCrawl)
        ));
    }

    #[tokio::test]
    async fn too_many_links_are_refused() {
        let (me, inbox) = TestPeer::owner([ME, OTHER].map(peer));
        obedient_crawler(inbox);
        let mine = me.ring.domain_of(peer(ME));
        let full = batch(CrawlId::OPEN, &[&mine; LinkBatch::MAX_LINKS]);
        let overfull = batch(CrawlId::OPEN, &[&mine; LinkBatch::MAX_LINKS + 1]);
        let service = me.service();
        assert!(ask(&service, peer(OTHER), LINKS, &full).await.is_ok());
        let answer = ask(&service, peer(OTHER), LINKS, &overfull).await;
        assert_eq!(answer, Err(Refusal::Malformed));
    }

    #[tokio::test]
    async fn a_stopped_crawler_is_busy() {
        let (me, inbox) = TestPeer::owner([ME, OTHER].map(peer));
        drop(inbox);
        let batch = batch(CrawlId::OPEN, &[&me.ring.domain_of(peer(ME))]);
        let answer = ask(&me.service(), peer(OTHER), LINKS, &batch).await;
        assert_eq!(answer, Err(Refusal::Busy));
    }
}
