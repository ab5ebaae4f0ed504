//! The orders of the swarm to the crawler, which alone changes what is known of a domain.

use crate::{
    page::news::Borrow,
    swarm::{
        lending::message::LoanResult,
        links::message::LinksAnswer,
        replicas::{
            known_pages::SentPage,
            message::{Delta, DeltaAnswer},
            replica::Replica,
        },
        watching::message::{WatchAnswer, WatchAsk},
    },
};
use apoidea_crawl::Versions;
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, PeerId};
use apoidea_overlay::Arc as RingArc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The peer is ending and takes no more orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the peer is stopping")]
pub struct Stopped;

/// Something to be done by the crawler.
#[derive(Debug)]
pub(crate) enum SwarmOrder {
    /// Admit links of another peer; answered when they are durable here and at the replicas.
    Admit(PeerId, LinkBatch, oneshot::Sender<LinksAnswer>),
    /// Send links again whose owner has dropped them.
    SendAgain(CrawlId, Vec<Link>, oneshot::Sender<()>),
    /// Take in changes to domains of which this peer has replicas.
    Deltas(Vec<Delta>, oneshot::Sender<Vec<DeltaAnswer>>),
    /// Take in another peer's replica of a domain.
    Adopt(PeerId, Domain, Box<Replica>, oneshot::Sender<()>),
    /// Take in changes that the last owner of domains signed, which are taken over from it.
    Rounds(Vec<Delta>, oneshot::Sender<()>),
    /// Take in another peer's records of the pages of a domain.
    Pages(PeerId, Domain, Vec<SentPage>, oneshot::Sender<()>),
    /// Stop crawling the domains of this arc.
    Lose(RingArc),
    /// Is nothing of this arc under way?
    Drained(RingArc, oneshot::Sender<bool>),
    /// Begin to crawl the domains of this arc.
    Activate(RingArc, oneshot::Sender<()>),
    /// Drop the replica of a domain, if it is still this one.
    Forget(Domain, Versions),
    /// Send the URLs that wait at a domain to its owner as links, and drop the replica, if it is
    /// still this one: the owner takes no replica from a peer so far away.
    PassOn(Domain, Versions),
    /// Fetch something for a neighbour; dropped if there is no time.
    Borrow(PeerId, Borrow, oneshot::Sender<()>),
    /// Take in the result of a lent fetch.
    Result(PeerId, Box<LoanResult>),
    /// Begin, renew or end a peer's watch; answered when that is durable.
    Watch(PeerId, WatchAsk, oneshot::Sender<WatchAnswer>),
    /// Start nothing more, and answer when nothing is under way and nothing waits to be told
    /// to replicas.
    Quiesce(Quiescing),
}

/// A wish for rest, as the crawler keeps it.
#[derive(Debug)]
pub(crate) struct Quiescing {
    /// Told once there is rest.
    pub reached: Option<oneshot::Sender<()>>,
    /// Cancelled when nobody wants it any more.
    pub over: CancellationToken,
}

/// Nothing starts as long as this is kept, also after rest is reached: the peer that asked for it
/// is not done yet.
pub(crate) struct Stillness {
    reached: oneshot::Receiver<()>,
    _kept: DropGuard,
}

impl Stillness {
    /// Waits until nothing is under way.
    pub(crate) async fn reached(&mut self) -> Result<(), Stopped> {
        (&mut self.reached).await.map_err(|_| Stopped)
    }
}

/// Gives orders to the crawler.
#[derive(Clone)]
pub(crate) struct Orders(pub mpsc::Sender<SwarmOrder>);

impl Orders {
    pub(crate) async fn admit(
        &self,
        sender: PeerId,
        batch: LinkBatch,
    ) -> Result<LinksAnswer, Stopped> {
        self.ask(|reply| SwarmOrder::Admit(sender, batch, reply))
            .await
    }

    /// Answered when the links are in an outbox or a queue.
    pub(crate) async fn send_again(&self, crawl: CrawlId, links: Vec<Link>) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::SendAgain(crawl, links, reply))
            .await
    }

    pub(crate) async fn deltas(&self, deltas: Vec<Delta>) -> Result<Vec<DeltaAnswer>, Stopped> {
        self.ask(|reply| SwarmOrder::Deltas(deltas, reply)).await
    }

    pub(crate) async fn adopt(
        &self,
        from: PeerId,
        domain: Domain,
        replica: Replica,
    ) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Adopt(from, domain, Box::new(replica), reply))
            .await
    }

    pub(crate) async fn take_rounds(&self, deltas: Vec<Delta>) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Rounds(deltas, reply)).await
    }

    pub(crate) async fn pages(
        &self,
        from: PeerId,
        domain: Domain,
        pages: Vec<SentPage>,
    ) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Pages(from, domain, pages, reply))
            .await
    }

    /// A crawler that has stopped has nothing under way.
    pub(crate) async fn is_drained(&self, arc: RingArc) -> bool {
        self.ask(|reply| SwarmOrder::Drained(arc, reply))
            .await
            .unwrap_or(true)
    }

    pub(crate) async fn activate(&self, arc: RingArc) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Activate(arc, reply)).await
    }

    /// An error if there is no time.
    pub(crate) async fn borrow(&self, owner: PeerId, borrow: Borrow) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Borrow(owner, borrow, reply))
            .await
    }

    pub(crate) async fn watch(&self, peer: PeerId, ask: WatchAsk) -> Result<WatchAnswer, Stopped> {
        self.ask(|reply| SwarmOrder::Watch(peer, ask, reply)).await
    }

    pub(crate) async fn quiesce(&self) -> Stillness {
        let (reply, reached) = oneshot::channel();
        let over = CancellationToken::new();
        let stillness = Stillness {
            reached,
            _kept: over.clone().drop_guard(),
        };
        self.tell(SwarmOrder::Quiesce(Quiescing {
            reached: Some(reply),
            over,
        }))
        .await;
        stillness
    }

    pub(crate) async fn tell(&self, order: SwarmOrder) {
        // A crawler that has stopped needs no orders.
        let _ = self.0.send(order).await;
    }

    async fn ask<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<T>) -> SwarmOrder,
    ) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0.send(order(reply)).await.map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        tenancy::whole_ring,
        testing::{TestRing, link, peer},
    };
    use apoidea_model::CrawlId;
    use futures::FutureExt;

    fn channel() -> (Orders, mpsc::Receiver<SwarmOrder>) {
        let (orders, inbox) = mpsc::channel(4);
        (Orders(orders), inbox)
    }

    fn batch() -> LinkBatch {
        let domain = TestRing::new([peer(1)]).domain_of(peer(1));
        LinkBatch {
            crawl: CrawlId::OPEN,
            links: vec![link(&domain, 1)],
        }
    }

    #[tokio::test]
    async fn a_stopped_crawler_takes_no_orders_and_has_nothing_under_way() {
        let (orders, inbox) = channel();
        drop(inbox);
        assert_eq!(orders.admit(peer(1), batch()).await.unwrap_err(), Stopped);
        assert_eq!(orders.activate(whole_ring()).await, Err(Stopped));
        assert!(orders.is_drained(whole_ring()).await);
        orders.tell(SwarmOrder::Lose(whole_ring())).await;
        assert_eq!(orders.quiesce().await.reached().await, Err(Stopped));
    }

    #[tokio::test]
    async fn an_order_that_the_crawler_drops_is_not_done() {
        let (orders, mut inbox) = channel();
        let dropped = async { drop(inbox.recv().await) };
        let borrow = Borrow::Robots(batch().links.remove(0).url);
        let (borrowed, ()) = tokio::join!(orders.borrow(peer(2), borrow), dropped);
        assert_eq!(borrowed, Err(Stopped));
    }

    #[tokio::test]
    async fn stillness_lasts_until_it_is_given_up_also_after_it_is_reached() {
        let (orders, mut inbox) = channel();
        let mut stillness = orders.quiesce().await;
        let Some(SwarmOrder::Quiesce(mut quiescing)) = inbox.recv().await else {
            panic!("another order came");
        };
        assert_eq!(stillness.reached().now_or_never(), None);
        quiescing.reached.take().unwrap().send(()).unwrap();
        assert_eq!(stillness.reached().await, Ok(()));
        assert!(!quiescing.over.is_cancelled());
        drop(stillness);
        assert!(quiescing.over.is_cancelled());
    }
}
