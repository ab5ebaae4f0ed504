//! What the swarm asks of the crawler, the only one who changes what is known of a domain.

use super::{
    change::Delta,
    lease::{LeaseAsk, LeaseResult},
    value::Value,
    wire::{DeltaAnswer, LinksAnswer},
};
use crate::handle::{Command, Stopped};
use apoidea_crawl::Versions;
use apoidea_model::{Domain, LinkBatch, PeerId};
use apoidea_overlay::Arc as RingArc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

/// Something to be done by the crawler.
#[derive(Debug)]
pub(crate) enum SwarmOrder {
    /// Admit links of another peer; answered when they are durable here and at the holders of the
    /// copies.
    Admit(LinkBatch, oneshot::Sender<LinksAnswer>),
    /// Take in changes to domains that this peer holds copies of.
    Deltas(Vec<Delta>, oneshot::Sender<Vec<DeltaAnswer>>),
    /// Take in another peer's copy of a domain.
    Adopt(PeerId, Domain, Box<Value>, oneshot::Sender<()>),
    /// Stop crawling the domains of this arc.
    Lose(RingArc),
    /// Is nothing of this arc under way?
    Drained(RingArc, oneshot::Sender<bool>),
    /// Begin to crawl the domains of this arc.
    Activate(RingArc, oneshot::Sender<()>),
    /// Drop the copy of a domain, if it is still this one.
    Forget(Domain, Versions),
    /// Fetch something for a neighbour; dropped if there is no time.
    Lease(PeerId, LeaseAsk, oneshot::Sender<()>),
    /// Take in what came of a fetch that was left to a neighbour.
    Leased(PeerId, Box<LeaseResult>),
    /// Start nothing more, and answer when nothing is under way and nothing waits to be sent to
    /// holders.
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

/// Nothing starts as long as this is kept, also after rest is reached: whoever asked for it is not
/// done yet.
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
pub(crate) struct Orders(pub mpsc::Sender<Command>);

impl Orders {
    pub(crate) async fn admit(&self, batch: LinkBatch) -> Result<LinksAnswer, Stopped> {
        self.ask(|reply| SwarmOrder::Admit(batch, reply)).await
    }

    pub(crate) async fn deltas(&self, deltas: Vec<Delta>) -> Result<Vec<DeltaAnswer>, Stopped> {
        self.ask(|reply| SwarmOrder::Deltas(deltas, reply)).await
    }

    pub(crate) async fn adopt(
        &self,
        from: PeerId,
        domain: Domain,
        value: Value,
    ) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Adopt(from, domain, Box::new(value), reply))
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
    pub(crate) async fn lease(&self, from: PeerId, ask: LeaseAsk) -> Result<(), Stopped> {
        self.ask(|reply| SwarmOrder::Lease(from, ask, reply)).await
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
        let _ = self.0.send(Command::Swarm(order)).await;
    }

    async fn ask<T>(
        &self,
        order: impl FnOnce(oneshot::Sender<T>) -> SwarmOrder,
    ) -> Result<T, Stopped> {
        let (reply, answer) = oneshot::channel();
        self.0
            .send(Command::Swarm(order(reply)))
            .await
            .map_err(|_| Stopped)?;
        answer.await.map_err(|_| Stopped)
    }
}
