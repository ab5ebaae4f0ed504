//! A way for the fuzzer to what reads a stranger's bytes and is otherwise private. Only there with
//! the feature `fuzzing`.

use crate::{
    MAX_BODY_BYTES, NetworkId,
    chord::{decode, encode},
    transport::{Head, Hello},
};
use bytes::Bytes;

/// The kind and the length of the frame that begins so.
pub fn read_head(bytes: &[u8]) -> Option<(u8, usize)> {
    let head = Head::parse(Bytes::copy_from_slice(bytes), MAX_BODY_BYTES).ok()?;
    Some((head.tag, head.length))
}

/// A hello of the open network, read and written again.
pub fn rewrite_hello(bytes: &[u8]) -> Option<Vec<u8>> {
    Hello::decode(bytes, &NetworkId::default())
        .ok()
        .map(|hello| hello.encode())
}

/// A message of the ring, read and written again.
pub fn rewrite_message(bytes: &[u8]) -> Option<Vec<u8>> {
    decode(bytes).map(|message| encode(&message).to_vec())
}
