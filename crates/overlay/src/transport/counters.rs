//! Counters of the transport: requests and bytes by kind, and events such as refusals.

use crate::Kind;
use serde::{Deserialize, Serialize};
use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Running totals, cheap enough to be always on.
#[derive(Debug)]
pub(crate) struct TrafficCounters {
    kinds: Box<[KindCounters; Kind::COUNT]>,
    events: [AtomicU64; TransportEvent::COUNT],
}

#[derive(Debug, Default)]
struct KindCounters {
    asked: AtomicU64,
    answered: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

/// Something that happened to a connection or a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransportEvent {
    Dialled,
    DialFailed,
    Accepted,
    HandshakeFailed,
    WrongNetwork,
    Malformed,
    Refused,
    Throttled,
    Slow,
    Evicted,
    TurnedAway,
    Retried,
}

impl TransportEvent {
    const COUNT: usize = TransportEvent::Retried as usize + 1;
}

impl Default for TrafficCounters {
    fn default() -> Self {
        TrafficCounters {
            kinds: Box::new(std::array::from_fn(|_| KindCounters::default())),
            events: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl TrafficCounters {
    /// One more of these.
    pub fn note(&self, event: TransportEvent) {
        self.events[event as usize].fetch_add(1, Relaxed);
    }

    /// This peer asked something and got an answer.
    pub fn asked(&self, kind: Kind, sent: usize, received: usize) {
        let counters = &self.kinds[usize::from(kind.as_byte())];
        counters.asked.fetch_add(1, Relaxed);
        counters.add_bytes(received, sent);
    }

    /// This peer answered something.
    pub fn answered(&self, kind: Kind, received: usize, sent: usize) {
        let counters = &self.kinds[usize::from(kind.as_byte())];
        counters.answered.fetch_add(1, Relaxed);
        counters.add_bytes(received, sent);
    }

    /// Bytes received and sent, of all kinds.
    pub fn bytes(&self) -> (u64, u64) {
        let both = |counters: &KindCounters| {
            (
                counters.bytes_in.load(Relaxed),
                counters.bytes_out.load(Relaxed),
            )
        };
        self.kinds
            .iter()
            .map(both)
            .fold((0, 0), |(down, up), (more_down, more_up)| {
                (down + more_down, up + more_up)
            })
    }

    /// The totals now.
    pub fn traffic(&self) -> Traffic {
        let event = |event: TransportEvent| self.events[event as usize].load(Relaxed);
        let kinds = self
            .kinds
            .iter()
            .zip(0..=u8::MAX)
            .map(|(counters, byte)| (byte, counters.totals()));
        Traffic {
            kinds: kinds
                .filter(|(_, totals)| *totals != KindTotals::default())
                .collect(),
            dialled: event(TransportEvent::Dialled),
            dials_failed: event(TransportEvent::DialFailed),
            accepted: event(TransportEvent::Accepted),
            handshakes_failed: event(TransportEvent::HandshakeFailed),
            wrong_network: event(TransportEvent::WrongNetwork),
            malformed: event(TransportEvent::Malformed),
            refused: event(TransportEvent::Refused),
            throttled: event(TransportEvent::Throttled),
            slow: event(TransportEvent::Slow),
            evicted: event(TransportEvent::Evicted),
            turned_away: event(TransportEvent::TurnedAway),
            retried: event(TransportEvent::Retried),
        }
    }
}

impl KindCounters {
    fn add_bytes(&self, received: usize, sent: usize) {
        self.bytes_in.fetch_add(received as u64, Relaxed);
        self.bytes_out.fetch_add(sent as u64, Relaxed);
    }

    fn totals(&self) -> KindTotals {
        KindTotals {
            asked: self.asked.load(Relaxed),
            answered: self.answered.load(Relaxed),
            bytes_in: self.bytes_in.load(Relaxed),
            bytes_out: self.bytes_out.load(Relaxed),
        }
    }
}

/// Totals of one kind of request since the start. Bytes are those of bodies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ts_rs::TS)]
pub struct KindTotals {
    /// Requests of this peer that were answered.
    pub asked: u64,
    /// Requests of others that this peer answered.
    pub answered: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

/// Totals since the start.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ts_rs::TS)]
pub struct Traffic {
    /// By the kind's number on the wire; kinds that never occurred are left out.
    pub kinds: BTreeMap<u8, KindTotals>,
    /// Connections made.
    pub dialled: u64,
    /// Attempts to make one that failed.
    pub dials_failed: u64,
    /// Connections accepted.
    pub accepted: u64,
    /// Connections of others that did not get as far as a hello.
    pub handshakes_failed: u64,
    /// Connections refused because they belong to another network.
    pub wrong_network: u64,
    /// Frames that made no sense.
    pub malformed: u64,
    /// Requests of others that this peer refused.
    pub refused: u64,
    /// Times that a peer had to wait for its rate.
    pub throttled: u64,
    /// Requests of others given up because they arrived, or their answers were read, too slowly.
    pub slow: u64,
    /// Connections closed to make room.
    pub evicted: u64,
    /// Newcomers turned away at the door: too many at once, or banished.
    pub turned_away: u64,
    /// Newcomers who had to prove their address first, because many came at once.
    pub retried: u64,
}
