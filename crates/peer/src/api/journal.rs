//! What happened to this peer lately, in sentences for its owner: the activity log.
//!
//! It follows the status and is told by the API what its owner did. Pages are not in it: they have
//! a feed of their own. It is forgotten when the peer ends; what programs need is in the log that
//! the binary writes.

use crate::{
    clock::now,
    lock::lock,
    report::{
        status::{State, Status},
        words,
    },
};
use apoidea_model::Time;
use serde::{Deserialize, Serialize};
use std::{
    collections::VecDeque,
    mem,
    sync::{Arc, Mutex},
};
use tokio::sync::{broadcast, watch};

/// Notes kept: some days of an ordinary peer.
const MAX_NOTES: usize = 1000;
/// Notes that a slow listener may lag behind before it misses some.
const BACKLOG: usize = 64;

/// Something worth telling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Note {
    /// When.
    pub at: Time,
    /// What it is about.
    pub topic: Topic,
    /// A sentence.
    pub text: String,
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum Topic {
    /// What the peer is doing, and why.
    State,
    /// Its place among the others.
    Network,
    /// What its owner told it.
    Owner,
    /// What has changed of the pages that its owner watches.
    Watch,
    /// What needs attention.
    Trouble,
}

/// The activity log of a running peer; clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Journal {
    notes: Arc<Mutex<VecDeque<Note>>>,
    live: broadcast::Sender<Note>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        Journal {
            notes: Arc::default(),
            live: broadcast::Sender::new(BACKLOG),
        }
    }

    /// Adds a note.
    pub(crate) fn note(&self, topic: Topic, text: impl Into<String>) {
        let note = Note {
            at: now(),
            topic,
            text: text.into(),
        };
        let mut notes = lock(&self.notes);
        if notes.len() == MAX_NOTES {
            notes.pop_front();
        }
        notes.push_back(note.clone());
        // Nobody listening is the usual case.
        let _ = self.live.send(note);
    }

    /// The notes, oldest first.
    pub(crate) fn notes(&self) -> Vec<Note> {
        lock(&self.notes).iter().cloned().collect()
    }

    /// Follows the notes as they come.
    pub(crate) fn watch(&self) -> broadcast::Receiver<Note> {
        self.live.subscribe()
    }

    /// Notes how the status changes, until the peer ends.
    pub(crate) async fn follow(self, mut statuses: watch::Receiver<Status>) {
        let mut last = statuses.borrow_and_update().clone();
        self.note(Topic::State, format!("Started, version {}", last.version));
        while statuses.changed().await.is_ok() {
            let status = statuses.borrow_and_update().clone();
            changes(&last, &status)
                .into_iter()
                .for_each(|(topic, text)| self.note(topic, text));
            last = status;
        }
    }
}

/// What is worth telling of the way from one status to the next.
fn changes(last: &Status, next: &Status) -> Vec<(Topic, String)> {
    let mut notes = Vec::new();
    let is_same_pause = last.state == next.state && next.state != State::Paused;
    if last.reason != next.reason && !is_same_pause {
        notes.push((Topic::State, next.reason.clone()));
    }
    // Its kind alone: an estimate that wavers is no news.
    if mem::discriminant(&last.network) != mem::discriminant(&next.network) {
        let place = words::network(&next.network);
        notes.push((Topic::Network, format!("Network: {place}")));
    }
    match (&last.attention, &next.attention) {
        (_, Some(trouble)) if last.attention != next.attention => {
            notes.push((Topic::Trouble, words::attention(trouble)));
        }
        (Some(_), None) => {
            notes.push((Topic::Trouble, "That is over: all is well again".to_owned()))
        }
        _ => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{network::NetworkState, report::status::Attention};

    fn status(
        state: State,
        reason: &str,
        network: NetworkState,
        attention: Option<Attention>,
    ) -> Status {
        Status {
            state,
            reason: reason.to_owned(),
            network,
            attention,
            ..Status::starting(Time::ZERO)
        }
    }

    #[test]
    fn changes_of_state_place_and_trouble_are_told_once() {
        let crawling = status(State::Crawling, "Crawling", NetworkState::Alone, None);
        let paused = status(
            State::Paused,
            "Paused by you",
            NetworkState::Member { peers: 5 },
            Some(Attention::WriterEnded),
        );
        let told = changes(&crawling, &paused);
        let topics: Vec<Topic> = told.iter().map(|(topic, _)| *topic).collect();
        assert_eq!(topics, [Topic::State, Topic::Network, Topic::Trouble]);
        assert_eq!(changes(&paused, &paused), []);
        assert_eq!(changes(&paused, &crawling).len(), 3);
    }

    #[test]
    fn numbers_that_waver_are_no_news() {
        let five = status(
            State::Idle,
            "The 5 URLs left wait",
            NetworkState::Member { peers: 5 },
            None,
        );
        let six = status(
            State::Idle,
            "The 6 URLs left wait",
            NetworkState::Member { peers: 6 },
            None,
        );
        assert_eq!(changes(&five, &six), []);
    }

    #[test]
    fn only_the_last_notes_are_kept() {
        let journal = Journal::new();
        (0..2 * MAX_NOTES).for_each(|n| journal.note(Topic::Owner, n.to_string()));
        let notes = journal.notes();
        assert_eq!((notes.len(), notes[0].text.as_str()), (MAX_NOTES, "1000"));
    }
}
