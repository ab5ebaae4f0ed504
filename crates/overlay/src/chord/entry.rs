//! The ways into the ring, in the order in which they are tried, each with its own state.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::watch;

/// A way into the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum EntryWay {
    /// Peers of the last run, and those that an invite named.
    Remembered,
    /// Entry points of the settings.
    Configured,
    /// The name that this program was built with.
    Name,
    /// Peers on the local network.
    LocalNetwork,
    /// Peers that announced themselves in BitTorrent's DHT.
    Rendezvous,
}

/// The state of a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum EntryState {
    /// It is switched off.
    Off,
    /// There is nobody to ask.
    Nothing,
    /// It was not needed so far.
    NotNeeded,
    /// It is being tried.
    Trying,
    /// It was tried, and nobody answered.
    Silent,
    /// The way itself is closed: it needs something that is not there now, such as the Internet.
    Closed,
    /// A peer was found.
    Found,
}

/// A way into the ring, and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct EntryStatus {
    /// The way.
    pub way: EntryWay,
    /// Its state.
    pub state: EntryState,
    /// Peers or places that were asked last.
    pub asked: u32,
    /// Of these, peers that answered.
    pub answered: u32,
}

/// All ways, in order.
pub type Entries = [EntryStatus; 5];

/// Notes the states of the ways, for those who watch.
#[derive(Debug, Clone)]
pub(crate) struct EntryLog(Arc<watch::Sender<Entries>>);

impl EntryLog {
    /// A log of ways that were not tried yet, and the watch on it.
    pub fn new() -> (Self, watch::Receiver<Entries>) {
        let ways = [
            EntryWay::Remembered,
            EntryWay::Configured,
            EntryWay::Name,
            EntryWay::LocalNetwork,
            EntryWay::Rendezvous,
        ];
        let untried = ways.map(|way| EntryStatus {
            way,
            state: EntryState::NotNeeded,
            asked: 0,
            answered: 0,
        });
        let (sender, receiver) = watch::channel(untried);
        (EntryLog(Arc::new(sender)), receiver)
    }

    /// Notes a state.
    pub fn note(&self, way: EntryWay, state: EntryState) {
        self.change(way, |status| status.state = state);
    }

    /// Notes that so many are being asked.
    pub fn try_many(&self, way: EntryWay, asked: usize) {
        let state = match asked {
            0 => EntryState::Nothing,
            _ => EntryState::Trying,
        };
        self.change(way, |status| {
            (status.state, status.asked, status.answered) = (state, count(asked), 0);
        });
    }

    /// Notes that so many answered.
    pub fn answered(&self, way: EntryWay, answered: usize) {
        self.change(way, |status| {
            status.answered = count(answered);
            status.state = match (status.asked, answered) {
                (0, 0) => EntryState::Nothing,
                (_, 0) => EntryState::Silent,
                _ => EntryState::Found,
            };
        });
    }

    /// The state of a way.
    pub fn state(&self, way: EntryWay) -> EntryState {
        let entries = self.0.borrow();
        let status = entries.iter().find(|status| status.way == way);
        status.map_or(EntryState::Off, |status| status.state)
    }

    fn change(&self, way: EntryWay, change: impl FnOnce(&mut EntryStatus)) {
        self.0.send_if_modified(|entries| {
            let Some(status) = entries.iter_mut().find(|status| status.way == way) else {
                return false;
            };
            let before = *status;
            change(status);
            *status != before
        });
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_has_its_own_state() {
        let (log, watch) = EntryLog::new();
        log.try_many(EntryWay::Remembered, 3);
        log.try_many(EntryWay::Configured, 0);
        let states = || watch.borrow().map(|status| status.state);
        assert_eq!(states()[..2], [EntryState::Trying, EntryState::Nothing]);
        log.answered(EntryWay::Remembered, 0);
        assert_eq!(log.state(EntryWay::Remembered), EntryState::Silent);
        log.answered(EntryWay::Remembered, 2);
        let remembered = watch.borrow()[0];
        assert_eq!((remembered.asked, remembered.answered), (3, 2));
        assert_eq!(remembered.state, EntryState::Found);
        assert_eq!(states()[4], EntryState::NotNeeded);
    }
}
