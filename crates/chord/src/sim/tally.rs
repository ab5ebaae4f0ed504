//! The counters of a simulation.

use crate::{Message, message::MessageKind};
use std::time::Duration;

/// Counts since the last [`Tally::reset`].
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Messages by kind, in the order of [`MessageKind::ALL`].
    pub messages: [u64; MessageKind::ALL.len()],
    /// Encoded bytes of all messages.
    pub bytes: u64,
    /// Lookups begun.
    pub lookups_started: u64,
    /// Lookups that named an owner.
    pub lookups_answered: u64,
    /// Lookups that named the right one.
    pub lookups_right: u64,
    /// Lookups of keys whose owner is honest, and those of them that ended at a liar.
    pub of_honest: Judged,
    /// The same, of those that were answered from memory.
    pub from_memory: Judged,
    hops: u64,
    times_ms: Vec<u32>,
}

/// Lookups, and those of them that ended at a liar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Judged {
    /// All of them.
    pub all: u64,
    /// The hijacked ones.
    pub hijacked: u64,
}

impl Judged {
    /// The share that was hijacked, in per cent.
    pub fn hijacked_percent(self) -> f64 {
        100.0 * self.hijacked as f64 / self.all.max(1) as f64
    }

    fn add(&mut self, is_hijacked: bool) {
        self.all += 1;
        self.hijacked += u64::from(is_hijacked);
    }
}

impl Tally {
    /// Begins to count anew.
    pub fn reset(&mut self) {
        *self = Tally::default();
    }

    /// All messages.
    pub fn all_messages(&self) -> u64 {
        self.messages.iter().sum()
    }

    /// Mean hops of the lookups that were answered.
    pub fn mean_hops(&self) -> f64 {
        self.hops as f64 / self.lookups_answered.max(1) as f64
    }

    /// Share of the ended lookups that named the right owner.
    pub fn right_share(&self) -> f64 {
        self.lookups_right as f64 / self.times_ms.len().max(1) as f64
    }

    /// Lookups that ended, in whichever way.
    pub fn lookups_ended(&self) -> u64 {
        self.times_ms.len() as u64
    }

    /// Mean time of the lookups, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        let sum: u64 = self.times_ms.iter().map(|&ms| u64::from(ms)).sum();
        sum as f64 / self.times_ms.len().max(1) as f64
    }

    /// The time within which this share of the lookups ended, in milliseconds.
    pub fn lookup_ms(&self, share: f64) -> f64 {
        let mut times = self.times_ms.clone();
        times.sort_unstable();
        let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(at).copied().map_or(0.0, f64::from)
    }

    pub(super) fn sent(&mut self, message: &Message) {
        self.messages[message.kind() as usize] += 1;
        self.bytes += encoded_bytes(message);
    }

    pub(super) fn lookup_ended(
        &mut self,
        is_answered: bool,
        is_right: bool,
        hops: u32,
        took: Duration,
    ) {
        self.lookups_answered += u64::from(is_answered);
        self.lookups_right += u64::from(is_right);
        self.hops += u64::from(hops);
        self.times_ms
            .push(u32::try_from(took.as_millis()).unwrap_or(u32::MAX));
    }

    pub(super) fn lookup_of_honest(&mut self, is_hijacked: bool, hops: u32) {
        self.of_honest.add(is_hijacked);
        if hops == 0 {
            self.from_memory.add(is_hijacked);
        }
    }
}

fn encoded_bytes(message: &Message) -> u64 {
    let size = postcard::serialize_with_flavor(message, postcard::ser_flavors::Size::default());
    size.expect("counting bytes cannot run out of room") as u64
}
