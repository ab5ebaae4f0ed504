//! The bytes of a connection: heads of frames, hellos, messages of the ring. What is read can be
//! written again, and says the same.

#![no_main]

use apoidea_chord::Message;
use apoidea_overlay::fuzzing;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Some((tag, length)) = fuzzing::read_head(bytes) {
        assert!(tag == bytes[0] && length <= apoidea_overlay::MAX_BODY_BYTES);
    }
    if let Some(written) = fuzzing::rewrite_hello(bytes) {
        assert_eq!(fuzzing::rewrite_hello(&written).as_ref(), Some(&written));
    }
    if let Some(written) = fuzzing::rewrite_message(bytes) {
        assert!(written.len() <= Message::MAX_BYTES);
        assert_eq!(fuzzing::rewrite_message(&written), Some(written));
    }
});
