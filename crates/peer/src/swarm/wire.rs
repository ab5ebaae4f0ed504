//! What peers say to each other about the crawl, as bytes: compact, compressed where it pays, and
//! bounded.

use super::{change::Delta, value::Value};
use apoidea_crawl::Versions;
use apoidea_model::{ContentHash, Domain, Key, Time};
use apoidea_overlay::{Arc, Kind, Refusal};
use apoidea_store::Fact;
use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// Links for their owner.
pub(crate) const LINKS: Kind = Kind::free(0);
/// "Is this content known?"
pub(crate) const CONTENT: Kind = Kind::free(1);
/// Content facts for those who keep copies of them.
pub(crate) const FACTS: Kind = Kind::free(2);
/// Changes to domains for those who keep copies of them.
pub(crate) const DELTAS: Kind = Kind::free(3);
/// "Which domains of this arc do you have?"
pub(crate) const CENSUS: Kind = Kind::free(4);
/// "I have these domains; do you?"
pub(crate) const OFFER: Kind = Kind::free(5);
/// "Give me what you know of these domains."
pub(crate) const VALUES: Kind = Kind::free(6);
/// A piece of a value that is larger than a frame.
pub(crate) const PIECE: Kind = Kind::free(7);
/// "Which content facts of this arc do you have?"
pub(crate) const FACTS_IN: Kind = Kind::free(8);

/// "Fetch from me, now, what I know of these domains."
pub(crate) const FETCH: Kind = Kind::free(9);

/// "Fetch this for me."
pub(crate) const LEASE: Kind = Kind::free(10);
/// "This came of what you asked me to fetch."
pub(crate) const LEASED: Kind = Kind::free(11);

/// Bytes of a message that certainly fit into a frame, with room for what surrounds them.
pub(crate) const FRAME_BYTES: usize = 56 * 1024;
/// Domains named in one message: 500 of the longest names fit into a frame when compressed a
/// little.
pub(crate) const MAX_NAMES: usize = 500;
/// Facts in one message: a hash and a URL each.
pub(crate) const MAX_FACTS: usize = 256;

/// Names repeat so much that more effort gains little.
const LEVEL: i32 = 1;
/// Smaller messages gain nothing from compression.
const COMPRESS_FROM: usize = 128;
/// A message that claims to be larger when decompressed is a bomb.
const MAX_PLAIN_BYTES: usize = 1 << 20;
const PLAIN: u8 = 0;
const DEFLATED: u8 = 1;

/// Which links of a batch were not taken, by their place in it: they belong to somebody else, or it
/// is too early to say.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LinksAnswer {
    pub declined: Vec<u16>,
}

/// What the holder of a copy says to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DeltaAnswer {
    /// The copy has it.
    Applied,
    /// The copy lacks more than the change; a new one has to be fetched.
    Behind,
    /// The copy has all of it, and more: somebody else has become the owner meanwhile.
    Ahead,
    /// Either lacks something that the other has.
    Apart,
    /// The sender is nowhere near the domain on the ring: nothing is taken from it.
    Stranger,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CensusAsk {
    pub arc: Arc,
    pub after: Option<Domain>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CensusPage {
    pub held: Vec<(Domain, Versions)>,
    /// Where to go on; none at the end.
    pub after: Option<Domain>,
}

/// What becomes of an offered copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OfferAnswer {
    /// Everything in it is here.
    Held,
    /// It is being fetched.
    Wanted,
    /// The one here is newer.
    Newer,
}

/// One of the values that were asked for.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Parcel {
    /// All of it.
    Whole(Domain, Value),
    /// It has to be fetched in pieces.
    Large { domain: Domain, id: u64, bytes: u32 },
    /// There is none.
    Unknown(Domain),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PieceAsk {
    pub domain: Domain,
    pub id: u64,
    pub offset: u32,
}

/// A question about a page's content.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ContentAsk {
    pub content: ContentHash,
    pub page: apoidea_model::PageUrl,
    pub time: Time,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FactsAsk {
    pub arc: Arc,
    /// The last one read so far.
    pub after: Option<Key>,
}

pub(crate) type Deltas = Vec<Delta>;
pub(crate) type Facts = Vec<(ContentHash, Fact)>;

/// A message as it is sent.
pub(crate) fn encode<T: Serialize>(message: &T) -> Bytes {
    let plain = postcard::to_stdvec(message).expect("names, numbers and lists always serialise");
    if plain.len() >= COMPRESS_FROM
        && let Some(deflated) = deflate(&plain)
    {
        return deflated.into();
    }
    let mut bytes = vec![PLAIN];
    bytes.extend(plain);
    bytes.into()
}

fn deflate(plain: &[u8]) -> Option<Vec<u8>> {
    let level = CompressionLvl::new(LEVEL).expect("level 1 exists");
    let mut compressor = Compressor::new(level);
    let head = 1 + size_of::<u32>();
    let mut bytes = vec![0; head + compressor.deflate_compress_bound(plain.len())];
    let length = compressor
        .deflate_compress(plain, &mut bytes[head..])
        .ok()?;
    bytes[0] = DEFLATED;
    bytes[1..head].copy_from_slice(&u32::try_from(plain.len()).ok()?.to_le_bytes());
    bytes.truncate(head + length);
    (bytes.len() <= plain.len()).then_some(bytes)
}

/// Reads a stranger's message.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Refusal> {
    let (form, rest) = bytes.split_first().ok_or(Refusal::Malformed)?;
    let read = |plain: &[u8]| postcard::from_bytes(plain).map_err(|_| Refusal::Malformed);
    match *form {
        PLAIN => read(rest),
        DEFLATED => read(&inflate(rest).ok_or(Refusal::Malformed)?),
        _ => Err(Refusal::Malformed),
    }
}

fn inflate(bytes: &[u8]) -> Option<Vec<u8>> {
    let (length, deflated) = bytes.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length))
        .ok()
        .filter(|&length| length <= MAX_PLAIN_BYTES)?;
    let mut plain = vec![0; length];
    let written = Decompressor::new()
        .deflate_decompress(deflated, &mut plain)
        .ok()?;
    (written == length).then_some(plain)
}

/// Cuts a list into parts that fit into a frame each, of at most `most` items.
pub(crate) fn portions<T: Serialize>(items: Vec<T>, most: usize) -> Vec<Vec<T>> {
    let mut portions: Vec<Vec<T>> = Vec::new();
    let mut room = 0;
    for item in items {
        let bytes = plain_bytes(&item);
        match portions.last_mut() {
            Some(portion) if bytes <= room && portion.len() < most => portion.push(item),
            _ => {
                portions.push(vec![item]);
                room = FRAME_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    portions
}

/// Bytes that a message takes before compression.
pub(crate) fn plain_bytes<T: Serialize>(message: &T) -> usize {
    postcard::experimental::serialized_size(message).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_and_repetition_is_squeezed_out() {
        let names: Vec<Domain> = (0..500)
            .map(|i| format!("host-{i}.example.test").parse().unwrap())
            .collect();
        let bytes = encode(&names);
        assert!(bytes.len() < plain_bytes(&names) / 3);
        assert_eq!(decode::<Vec<Domain>>(&bytes).unwrap(), names);
        assert_eq!(decode::<u8>(&encode(&7u8)).unwrap(), 7);
    }

    #[test]
    fn portions_fit_into_frames_and_lose_nothing() {
        let items: Vec<Vec<u8>> = (0..100).map(|i| vec![i; 2000]).collect();
        let portions = portions(items.clone(), 20);
        assert!(
            portions
                .iter()
                .all(|portion| portion.len() <= 20 && plain_bytes(portion) <= FRAME_BYTES + 8)
        );
        assert_eq!(portions.concat(), items);
    }

    #[test]
    fn bombs_and_noise_are_refused() {
        let zeros = encode(&vec![0u8; MAX_PLAIN_BYTES + 10]);
        assert_eq!(decode::<Vec<u8>>(&zeros).unwrap_err(), Refusal::Malformed);
        for noise in [
            &b""[..],
            b"\x01",
            b"\x01\xff\xff\xff\xff",
            b"\x02abc",
            b"\x01\x05\0\0\0abc",
            b"\0\xff",
        ] {
            assert_eq!(
                decode::<Vec<Domain>>(noise).unwrap_err(),
                Refusal::Malformed
            );
        }
    }
}
