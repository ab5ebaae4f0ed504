//! The codec of all conversations: compact, compressed where it pays, and bounded.

use apoidea_overlay::Refusal;
use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error, SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Bytes of a message that certainly fit into a frame, with room for its head.
pub(crate) const FRAME_BYTES: usize = 56 * 1024;
/// Names repeat so much that more effort gains little.
const LEVEL: i32 = 1;
/// Smaller messages gain nothing from compression.
const COMPRESS_FROM: usize = 128;
/// A message that claims to be larger when decompressed is a bomb: [`portions`] fit into a frame
/// before they are compressed.
const MAX_PLAIN_BYTES: usize = 64 * 1024;
const PLAIN: u8 = 0;
const DEFLATED: u8 = 1;

/// A list in a stranger's message. A longer one is refused as soon as its length is read, before its
/// items are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List<T, const MOST: usize>(pub Vec<T>);

impl<T: Serialize, const MOST: usize> Serialize for List<T, MOST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for List<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Items(PhantomData))
    }
}

struct Items<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Items<T, MOST> {
    type Value = List<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at most {MOST} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let length = items.size_hint().unwrap_or(0);
        if length > MOST {
            return Err(A::Error::invalid_length(length, &self));
        }
        let mut list = Vec::with_capacity(length);
        while let Some(item) = items.next_element()? {
            if list.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            list.push(item);
        }
        Ok(List(list))
    }
}

/// A message as it is sent.
pub(crate) fn encode<T: Serialize>(message: &T) -> Bytes {
    let plain = plain(message);
    if plain.len() >= COMPRESS_FROM
        && let Some(deflated) = deflate(&plain)
    {
        return deflated.into();
    }
    let mut bytes = vec![PLAIN];
    bytes.extend(plain);
    bytes.into()
}

/// A message as it is signed: neither compressed nor marked.
pub(crate) fn plain<T: Serialize>(message: &T) -> Vec<u8> {
    postcard::to_stdvec(message).expect("names, numbers and lists always serialise")
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
    use apoidea_model::Domain;

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
    fn a_list_that_is_too_long_is_refused_before_its_items_are_read() {
        let fits = encode(&vec![1u8, 2, 3]);
        assert_eq!(decode::<List<u8, 3>>(&fits), Ok(List(vec![1, 2, 3])));
        assert_eq!(decode::<List<u8, 2>>(&fits), Err(Refusal::Malformed));
        // The length alone, without items.
        assert_eq!(decode::<List<u8, 2>>(b"\0\x03"), Err(Refusal::Malformed));
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
    fn an_item_larger_than_a_frame_goes_alone() {
        let large = vec![1u8; FRAME_BYTES + 1];
        let portions = portions(vec![vec![2], large.clone(), vec![3]], 9);
        assert_eq!(portions, [vec![vec![2]], vec![large], vec![vec![3]]]);
        assert!(super::portions(Vec::<u8>::new(), 9).is_empty());
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
