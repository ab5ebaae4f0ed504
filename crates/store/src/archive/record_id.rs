//! Names of records: random-looking UUIDs without a system call for each.

use sha2::{Digest, Sha256};
use std::fmt;

/// The name of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordId([u8; 16]);

/// Draws names from a seed, which must be random and used once.
#[derive(Debug)]
pub(super) struct RecordIds {
    seed: [u8; 32],
    drawn: u64,
}

impl RecordIds {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        RecordIds { seed, drawn: 0 }
    }

    pub(super) fn draw(&mut self) -> RecordId {
        self.drawn += 1;
        let digest = Sha256::new()
            .chain_update(self.seed)
            .chain_update(self.drawn.to_be_bytes())
            .finalize();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        RecordId(bytes)
    }
}

/// As in `WARC-Record-ID`.
impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", u128::from_be_bytes(self.0));
        write!(
            f,
            "<urn:uuid:{}-{}-{}-{}-{}>",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}
