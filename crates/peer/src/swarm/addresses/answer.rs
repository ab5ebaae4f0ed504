//! Answering a peer that wants to ask addresses.

use super::message::{MAX_WISHES, TURNS, TurnGrant, TurnWish};
use crate::{
    clock::now,
    swarm::{
        rights::Sender,
        service::Answering,
        wire::{self, List},
    },
};
use apoidea_crawl::AddressWish;
use apoidea_overlay::{Refusal, Request};
use bytes::Bytes;

/// Answers a request of this conversation; `None` if it belongs to another one.
pub(in crate::swarm) fn answer(
    answering: &Answering,
    sender: &Sender<'_>,
    Request { kind, body }: &Request,
) -> Option<Result<Bytes, Refusal>> {
    (*kind == TURNS).then(|| turns(answering, sender, body))
}

fn turns(answering: &Answering, sender: &Sender<'_>, body: &[u8]) -> Result<Bytes, Refusal> {
    let List(wishes) = wire::decode::<List<TurnWish, MAX_WISHES>>(body)?;
    let wishes: Vec<AddressWish> = wishes.into_iter().map(AddressWish::from).collect();
    let grants = answering.clocks.ask(sender.id, &wishes, now());
    let grants: Vec<TurnGrant> = grants.into_iter().map(TurnGrant::from).collect();
    Ok(wire::encode(&grants))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestPeer, ask, peer};

    fn wishes(count: u32) -> Vec<TurnWish> {
        let wish = |number: u32| TurnWish {
            address: (0x2000_0000 + number).to_be_bytes().into(),
            wanted_ms: 2000,
        };
        (0..count).map(wish).collect()
    }

    #[tokio::test]
    async fn peers_share_an_address_and_have_others_for_themselves() {
        let (me, _inbox) = TestPeer::owner([1, 2, 3, 4].map(peer));
        let service = me.service();
        let answers = async |from, count| -> Vec<TurnGrant> {
            let answer = ask(&service, peer(from), TURNS, &wishes(count)).await;
            wire::decode(&answer.unwrap()).unwrap()
        };
        let all = |grant: &TurnGrant| {
            matches!(
                grant,
                TurnGrant::Every {
                    interval_ms: 2000,
                    ..
                }
            )
        };
        assert!(answers(3, 1).await.iter().all(all));
        let second = answers(4, 2).await;
        assert!(matches!(second[0], TurnGrant::Wait(_)) && all(&second[1]));
        let half = answers(3, 1).await;
        assert!(matches!(
            half[..],
            [TurnGrant::Every {
                interval_ms: 4000,
                ..
            }]
        ));
    }

    #[tokio::test]
    async fn too_many_wishes_and_noise_are_refused() {
        let (me, _inbox) = TestPeer::owner([1, 2, 3, 4].map(peer));
        let service = me.service();
        let most = u32::try_from(MAX_WISHES).unwrap();
        let answer = ask(&service, peer(3), TURNS, &wishes(most + 1)).await;
        assert_eq!(answer, Err(Refusal::Malformed));
        let noise = ask(&service, peer(3), TURNS, &vec![9u64; 3]).await;
        assert_eq!(noise, Err(Refusal::Malformed));
    }
}
