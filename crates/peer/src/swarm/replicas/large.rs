//! Replicas larger than a frame, kept while a peer fetches them in pieces.

use crate::swarm::wire;
use apoidea_model::{Domain, PeerId};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// Replicas that are fetched at the same time. Each peer has one of these places.
const MAX_LARGE: usize = 4;
/// A place is free again when its peer has not asked for a piece for so long.
const IDLE: Duration = Duration::from_secs(15);

/// Replicas that peers are fetching, one for each peer.
#[derive(Default)]
pub(crate) struct LargeReplicas(Vec<Large>);

struct Large {
    reader: PeerId,
    id: u64,
    domain: Domain,
    bytes: Bytes,
    asked: Instant,
}

impl LargeReplicas {
    /// Keeps a replica for a peer, in place of the one that this peer fetched before. Gives its
    /// number; none if all places are taken.
    pub(crate) fn keep(&mut self, reader: PeerId, domain: Domain, bytes: Bytes) -> Option<u64> {
        self.0
            .retain(|large| large.reader != reader && large.asked.elapsed() < IDLE);
        let (id, asked) = (rand::random(), Instant::now());
        let has_room = self.0.len() < MAX_LARGE;
        has_room.then(|| {
            self.0.push(Large {
                reader,
                id,
                domain,
                bytes,
                asked,
            });
            id
        })
    }

    /// The piece of a peer's replica from this offset on; none if the replica is not kept any more.
    pub(crate) fn piece(
        &mut self,
        reader: PeerId,
        domain: &Domain,
        id: u64,
        offset: u32,
    ) -> Option<Bytes> {
        let is_asked =
            |large: &&mut Large| (large.reader, large.id, &large.domain) == (reader, id, domain);
        let large = self.0.iter_mut().find(is_asked)?;
        large.asked = Instant::now();
        let from = (offset as usize).min(large.bytes.len());
        let to = from
            .saturating_add(wire::FRAME_BYTES)
            .min(large.bytes.len());
        Some(large.bytes.slice(from..to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::peer;
    use tokio::time;

    fn domain() -> Domain {
        "a.test".parse().unwrap()
    }

    fn keep(large: &mut LargeReplicas, reader: u8) -> Option<u64> {
        large.keep(
            peer(reader),
            domain(),
            Bytes::from(vec![reader; wire::FRAME_BYTES + 1]),
        )
    }

    fn piece(large: &mut LargeReplicas, reader: u8, id: u64, offset: u32) -> Option<usize> {
        let piece = large.piece(peer(reader), &domain(), id, offset);
        piece.map(|piece| piece.len())
    }

    #[tokio::test(start_paused = true)]
    async fn a_replica_is_read_piece_by_piece_by_its_own_reader_only() {
        let mut large = LargeReplicas::default();
        let id = keep(&mut large, 1).unwrap();
        assert_eq!(piece(&mut large, 1, id, 0), Some(wire::FRAME_BYTES));
        assert_eq!(piece(&mut large, 1, id, wire::FRAME_BYTES as u32), Some(1));
        assert_eq!(piece(&mut large, 1, id, u32::MAX), Some(0));
        assert_eq!(piece(&mut large, 2, id, 0), None);
        assert_eq!(piece(&mut large, 1, id ^ 1, 0), None);
    }

    #[tokio::test(start_paused = true)]
    async fn readers_take_no_place_from_each_other() {
        let mut large = LargeReplicas::default();
        let first = keep(&mut large, 0).unwrap();
        for reader in 1..MAX_LARGE as u8 {
            assert!(keep(&mut large, reader).is_some());
            assert!(keep(&mut large, reader).is_some(), "in place of its own");
        }
        assert_eq!(keep(&mut large, 99), None);
        assert!(piece(&mut large, 0, first, 0).is_some());
        time::advance(IDLE / 2).await;
        assert!(piece(&mut large, 0, first, 0).is_some());
        time::advance(IDLE / 2 + IDLE / 4).await;
        assert!(keep(&mut large, 99).is_some(), "the others ask no more");
        assert!(piece(&mut large, 0, first, 0).is_some());
    }
}
