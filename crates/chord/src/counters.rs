//! Messages sent and received, by kind.

use crate::{message::MessageKind, status::Counter};

/// One pair of counters per kind.
#[derive(Debug, Clone, Default)]
pub(crate) struct MessageCounters([(u64, u64); MessageKind::ALL.len()]);

impl MessageCounters {
    pub fn sent(&mut self, kind: MessageKind) {
        self.0[kind as usize].0 += 1;
    }

    pub fn received(&mut self, kind: MessageKind) {
        self.0[kind as usize].1 += 1;
    }

    pub fn all(&self) -> Vec<Counter> {
        let counter = |kind: MessageKind| {
            let (sent, received) = self.0[kind as usize];
            Counter {
                kind,
                sent,
                received,
            }
        };
        MessageKind::ALL.map(counter).to_vec()
    }
}
