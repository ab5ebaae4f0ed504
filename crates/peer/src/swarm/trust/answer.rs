//! Answering a peer that wants an owner's work checked.

use super::{
    checker::Wish,
    message::{CHECK, CheckAnswer, EVIDENCE},
    voucher::Voucher,
};
use crate::swarm::{rights::Sender, service::Answering, wire};
use apoidea_overlay::{Refusal, Request};
use bytes::Bytes;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) async fn answer(
    answering: &Answering,
    _: &Sender<'_>,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    if ![CHECK, EVIDENCE].contains(kind) {
        return None;
    }
    let voucher = wire::decode::<Voucher>(body);
    let voucher = match voucher {
        Ok(voucher) if voucher.is_sound(&answering.signer) => voucher,
        _ => return Some(Err(Refusal::Malformed)),
    };
    match *kind {
        CHECK => Some(Ok(check(answering, voucher).await)),
        _ => {
            answering.checks.wish(Wish::Evidence(voucher));
            Some(Ok(Bytes::new()))
        }
    }
}

async fn check(answering: &Answering, voucher: Voucher) -> Bytes {
    let answer = answering.held.look(&voucher).await;
    if matches!(answer, CheckAnswer::Missing(missing) if missing > 0) {
        // Seen at first hand. What it means is for the checker to say.
        answering.checks.wish(Wish::SeenMissing(voucher));
    }
    wire::encode(&answer)
}
