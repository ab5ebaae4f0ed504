//! Answering a peer that watches, and one that has something to tell.

use super::message::{NUDGE, WATCH, WatchAnswer, WatchAsk};
use crate::swarm::{
    rights::Sender,
    service::Answering,
    tenancy::Claim,
    wire::{self},
};
use apoidea_model::Domain;
use apoidea_overlay::{Refusal, Request};
use bytes::Bytes;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) async fn answer(
    answering: &Answering,
    sender: &Sender<'_>,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    match *kind {
        WATCH => Some(watch(answering, sender, body).await),
        NUDGE => Some(nudge(answering, body)),
        _ => None,
    }
}

async fn watch(answering: &Answering, sender: &Sender<'_>, body: &[u8]) -> Result<Bytes, Refusal> {
    let ask: WatchAsk = wire::decode(body)?;
    let answer = match answering.tenancy.claim(ask.domain.key()) {
        Claim::Owned => answering.orders.watch(sender.id, ask).await,
        Claim::TakingOver | Claim::Foreign => Ok(WatchAnswer::Elsewhere),
    };
    Ok(wire::encode(&answer.map_err(|_| Refusal::Busy)?))
}

/// Says whether this peer watches anything there at all: an owner forgets watches that nobody has.
fn nudge(answering: &Answering, body: &[u8]) -> Result<Bytes, Refusal> {
    let domain: Domain = wire::decode(body)?;
    Ok(wire::encode(&answering.watchlist.nudge(&domain)))
}
