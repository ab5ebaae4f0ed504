//! Messages sent and received, by kind.

use crate::{message::Kind, status::Counter};

/// One pair of counters per kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters([(u64, u64); Kind::ALL.len()]);

impl Counters {
    pub fn sent(&mut self, kind: Kind) {
        self.0[kind as usize].0 += 1;
    }

    pub fn received(&mut self, kind: Kind) {
        self.0[kind as usize].1 += 1;
    }

    pub fn all(&self) -> Vec<Counter> {
        let counter = |kind: Kind| {
            let (sent, received) = self.0[kind as usize];
            Counter {
                kind,
                sent,
                received,
            }
        };
        Kind::ALL.map(counter).to_vec()
    }
}
