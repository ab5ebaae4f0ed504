//! The private readers of a stranger's bytes, opened to the fuzzer by the feature `fuzzing`.

use crate::{
    MAX_BODY_BYTES, NetworkId,
    chord::{decode, encode},
    transport::{Head, Hello},
};
use apoidea_model::{Key, PeerId};
use bytes::Bytes;

/// The kind and the length of the frame that begins with these bytes.
pub fn read_head(bytes: &[u8]) -> Option<(u8, usize)> {
    let head = Head::parse(Bytes::copy_from_slice(bytes), MAX_BODY_BYTES).ok()?;
    Some((head.tag, head.length))
}

/// A hello of the open network, read and written again.
pub fn rewrite_hello(bytes: &[u8]) -> Option<Vec<u8>> {
    let me = PeerId::at(Key::from_bytes([0; 32]));
    Hello::decode(bytes, &NetworkId::default(), me)
        .ok()
        .map(|hello| hello.encode())
}

/// A message of the ring, read and written again.
pub fn rewrite_message(bytes: &[u8]) -> Option<Vec<u8>> {
    decode(bytes).map(|message| encode(&message).to_vec())
}
