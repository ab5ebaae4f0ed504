//! Trust in other peers, by what was checked of their work.
//!
//! Work is checked by chance, as in BOINC's adaptive replication: a newcomer always, a peer that was
//! right for long rarely, but always some. Only a check that found something wrong counts against a
//! peer. Silence does not: it may be the network. A peer that was wrong several times lately is
//! *distrusted* for a while, the longer the more often that happened, and never for good: it may
//! have had a bug or a broken disk. Afterwards it is checked like a newcomer.

use apoidea_model::{PeerId, Time};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, time::Duration};

/// Peers that are remembered. One that is trusted and was not checked for longest goes first.
pub const MAX_PEERS: usize = 4096;
/// However long a peer was right, this share of its work is checked.
pub const LEAST_CHANCE: f64 = 0.02;
/// So many wrong things within about [`HALF_LIFE`] are a lie, not a mishap: a seen-filter mistakes
/// one URL in 100,000, and a disk may lose one page.
pub const WRONG: f64 = 3.0;
/// And so large a share of what was checked.
pub const WRONG_SHARE: f64 = 0.1;
/// In this time what was found counts half.
pub const HALF_LIFE: Duration = Duration::from_secs(24 * 3600);
/// A peer is distrusted for so long the first time, and twice as long each time after.
pub const FIRST_TERM: Duration = Duration::from_secs(3600);
/// But no longer than this.
pub const LONGEST_TERM: Duration = Duration::from_secs(7 * 24 * 3600);
/// After so long without a lie, one term less is remembered.
pub const FORGIVEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3600);
/// Lies that are remembered of one peer.
pub const MAX_LIES: usize = 8;

/// The work that was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Matter {
    /// Links that it acknowledged as the owner of their domains.
    Links,
    /// Pages that it fetched for another peer, and says that it keeps.
    Pages,
}

/// Something that a peer said and that was not so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lie {
    /// About which work.
    pub matter: Matter,
    /// How many things were wrong.
    pub count: u32,
    /// When it was found.
    pub at: Time,
}

/// The meaning of a check for the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is believed as before.
    Trusted,
    /// From now on, for a while, it is not.
    Distrusted,
}

/// What is known of one peer's work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Checks.
    pub checked: u64,
    /// Checks that found nothing wrong.
    pub right: u64,
    /// The last lies, oldest first.
    pub lies: Vec<Lie>,
    /// It is distrusted until then.
    pub until: Time,
    /// Checks in a row that found nothing wrong.
    streak: u32,
    /// Terms of distrust that are not forgiven yet.
    terms: u8,
    /// When that was last changed.
    terms_at: Time,
    /// What was found lately.
    recent: BTreeMap<Matter, Recent>,
    /// The last check.
    last: Time,
}

/// Things that were looked at and that were wrong, weighed by their age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Recent {
    looked_at: f64,
    wrong: f64,
    at: Time,
}

/// What a peer knows of the others' work.
#[derive(Debug, Clone, Default)]
pub struct Trust {
    peers: BTreeMap<PeerId, Record>,
}

impl Trust {
    /// With the records of earlier runs.
    pub fn new(records: impl IntoIterator<Item = (PeerId, Record)>) -> Self {
        Trust {
            peers: records.into_iter().take(MAX_PEERS).collect(),
        }
    }

    /// The chance with which the next work of a peer is checked.
    pub fn chance(&self, peer: PeerId) -> f64 {
        let streak = self.peers.get(&peer).map_or(0, |record| record.streak);
        (1.0 / (f64::from(streak) + 1.0)).max(LEAST_CHANCE)
    }

    /// Takes in a check of so many things, some of which were wrong. Gives the record that was
    /// forgotten for it, too.
    pub fn note(
        &mut self,
        peer: PeerId,
        matter: Matter,
        looked_at: u32,
        wrong: u32,
        now: Time,
    ) -> (Verdict, Option<PeerId>) {
        let forgotten = self.make_room(peer, now);
        let record = self.peers.entry(peer).or_default();
        (record.note(matter, looked_at, wrong, now), forgotten)
    }

    /// Is the peer distrusted now?
    pub fn is_distrusted(&self, peer: PeerId, now: Time) -> bool {
        let record = self.peers.get(&peer);
        record.is_some_and(|record| now < record.until)
    }

    /// The peers that are distrusted now.
    pub fn distrusted(&self, now: Time) -> impl Iterator<Item = PeerId> + '_ {
        let peers = self.peers.iter();
        let distrusted = peers.filter(move |(_, record)| now < record.until);
        distrusted.map(|(peer, _)| *peer)
    }

    /// The record of a peer that was checked.
    pub fn record(&self, peer: PeerId) -> Option<&Record> {
        self.peers.get(&peer)
    }

    /// All records.
    pub fn records(&self) -> impl Iterator<Item = (PeerId, &Record)> {
        self.peers.iter().map(|(peer, record)| (*peer, record))
    }

    /// Forgets a record if one more does not fit. A liar is not forgotten while it is distrusted,
    /// unless there are nothing but liars.
    fn make_room(&mut self, newcomer: PeerId, now: Time) -> Option<PeerId> {
        if self.peers.len() < MAX_PEERS || self.peers.contains_key(&newcomer) {
            return None;
        }
        let least = |(_, record): &(&PeerId, &Record)| (now < record.until, record.last);
        let (least, _) = self.peers.iter().min_by_key(least)?;
        let least = *least;
        self.peers.remove(&least);
        Some(least)
    }
}

impl Record {
    fn note(&mut self, matter: Matter, looked_at: u32, wrong: u32, now: Time) -> Verdict {
        let wrong = wrong.min(looked_at);
        self.checked += 1;
        self.last = now;
        let recent = self.recent.entry(matter).or_default();
        *recent = recent.at(now);
        recent.looked_at += f64::from(looked_at);
        recent.wrong += f64::from(wrong);
        if wrong == 0 {
            self.right += 1;
            self.streak = self.streak.saturating_add(1);
            return Verdict::Trusted;
        }
        self.streak = 0;
        if !recent.is_lying() || now < self.until {
            return Verdict::Trusted;
        }
        let count = recent.wrong.round() as u32;
        self.recent.clear();
        self.distrust(Lie {
            matter,
            count,
            at: now,
        });
        Verdict::Distrusted
    }

    fn distrust(&mut self, lie: Lie) {
        let now = lie.at;
        if self.lies.len() >= MAX_LIES {
            self.lies.remove(0);
        }
        self.lies.push(lie);
        let weeks = now.since(self.terms_at).as_secs() / FORGIVEN_AFTER.as_secs();
        let forgiven = u8::try_from(weeks).unwrap_or(u8::MAX);
        let terms = self.terms.saturating_sub(forgiven);
        let term = FIRST_TERM.saturating_mul(1 << terms.min(16));
        self.until = now + term.min(LONGEST_TERM);
        self.terms = terms.saturating_add(1);
        self.terms_at = self.until;
    }
}

impl Recent {
    /// The same, weighed at another time.
    fn at(self, now: Time) -> Self {
        let age = now.since(self.at).as_secs_f64() / HALF_LIFE.as_secs_f64();
        let weight = (-age).exp2();
        Recent {
            looked_at: self.looked_at * weight,
            wrong: self.wrong * weight,
            at: now,
        }
    }

    fn is_lying(&self) -> bool {
        // Just below, for what was found a moment ago.
        self.wrong >= WRONG * 0.99 && self.wrong >= self.looked_at * WRONG_SHARE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;
    use proptest::prelude::*;

    const NOON: Time = Time::from_millis(1_800_000_000_000);
    const HOUR: Duration = Duration::from_secs(3600);

    fn peer(number: u32) -> PeerId {
        PeerId::at(Key::hash(number.to_be_bytes()))
    }

    fn lie(trust: &mut Trust, now: Time) -> Verdict {
        trust.note(peer(1), Matter::Links, 5, 5, now).0
    }

    #[test]
    fn a_newcomer_is_always_checked_and_an_old_friend_rarely() {
        let mut trust = Trust::default();
        assert_eq!(trust.chance(peer(1)), 1.0);
        for _ in 0..3 {
            trust.note(peer(1), Matter::Links, 9, 0, NOON);
        }
        assert_eq!(trust.chance(peer(1)), 0.25);
        for _ in 0..500 {
            trust.note(peer(1), Matter::Links, 9, 0, NOON);
        }
        assert_eq!(trust.chance(peer(1)), LEAST_CHANCE);
        assert_eq!(trust.chance(peer(2)), 1.0);
        trust.note(peer(1), Matter::Links, 9, 1, NOON);
        assert_eq!(trust.chance(peer(1)), 1.0, "one thing was wrong");
        let record = trust.record(peer(1)).unwrap();
        assert_eq!((record.checked, record.right), (504, 503));
    }

    #[test]
    fn one_mishap_is_no_lie_and_three_are() {
        let mut trust = Trust::default();
        for (wrong, verdict) in [
            (1, Verdict::Trusted),
            (1, Verdict::Trusted),
            (1, Verdict::Distrusted),
        ] {
            let noted = trust.note(peer(1), Matter::Links, 1, wrong, NOON);
            assert_eq!(noted.0, verdict);
        }
        assert!(trust.is_distrusted(peer(1), NOON));
        assert_eq!(trust.distrusted(NOON).collect::<Vec<_>>(), [peer(1)]);
        let lies = &trust.record(peer(1)).unwrap().lies;
        assert_eq!((lies.len(), lies[0].count), (1, 3));
    }

    #[test]
    fn few_mistakes_among_much_good_work_are_no_lie() {
        let mut trust = Trust::default();
        trust.note(peer(1), Matter::Links, 1000, 0, NOON);
        let noted = trust.note(peer(1), Matter::Links, 100, 20, NOON);
        assert_eq!(noted.0, Verdict::Trusted);
        let noted = trust.note(peer(1), Matter::Links, 200, 120, NOON);
        assert_eq!(noted.0, Verdict::Distrusted, "many are");
    }

    #[test]
    fn mishaps_that_lie_days_apart_are_forgotten() {
        let mut trust = Trust::default();
        for day in 0..20 {
            let now = NOON + 24 * HOUR * day;
            let noted = trust.note(peer(1), Matter::Links, 2, 1, now);
            assert_eq!(noted.0, Verdict::Trusted, "day {day}");
        }
    }

    #[test]
    fn distrust_ends_and_lasts_longer_each_time() {
        let mut trust = Trust::default();
        let mut now = NOON;
        let mut terms = Vec::new();
        for _ in 0..10 {
            assert_eq!(lie(&mut trust, now), Verdict::Distrusted);
            assert_eq!(lie(&mut trust, now), Verdict::Trusted, "it is no news");
            let until = trust.record(peer(1)).unwrap().until;
            assert!(!trust.is_distrusted(peer(1), until));
            terms.push(until.since(now));
            now = until;
        }
        assert_eq!(terms[..3], [FIRST_TERM, 2 * FIRST_TERM, 4 * FIRST_TERM]);
        assert_eq!(terms[9], LONGEST_TERM);
        assert_eq!(trust.chance(peer(1)), 1.0);
        assert_eq!(trust.record(peer(1)).unwrap().lies.len(), MAX_LIES);
    }

    #[test]
    fn weeks_of_good_work_are_forgiving() {
        let mut trust = Trust::default();
        lie(&mut trust, NOON);
        lie(&mut trust, NOON + FIRST_TERM);
        let later = NOON + 4 * FIRST_TERM + 3 * FORGIVEN_AFTER;
        lie(&mut trust, later);
        let until = trust.record(peer(1)).unwrap().until;
        assert_eq!(until.since(later), FIRST_TERM);
    }

    #[test]
    fn the_number_of_records_is_bounded_and_liars_stay() {
        let mut trust = Trust::default();
        lie(&mut trust, NOON);
        for number in 2..MAX_PEERS as u32 + 100 {
            let now = NOON + Duration::from_millis(u64::from(number));
            trust.note(peer(number), Matter::Links, 1, 0, now);
        }
        assert_eq!(trust.records().count(), MAX_PEERS);
        assert!(trust.is_distrusted(peer(1), NOON));
        assert!(trust.record(peer(2)).is_none(), "checked first, gone first");
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let mut trust = Trust::default();
        lie(&mut trust, NOON);
        let record = trust.record(peer(1)).unwrap();
        let bytes = postcard::to_stdvec(record).unwrap();
        let again = Trust::new([(peer(1), postcard::from_bytes(&bytes).unwrap())]);
        assert_eq!(again.record(peer(1)), Some(record));
    }

    proptest! {
        /// Whatever is found and whenever: a peer that was never wrong is never distrusted, no term
        /// is longer than the longest, and every term ends.
        #[test]
        fn only_wrong_work_is_punished_and_never_for_good(
            checks in prop::collection::vec((0u32..3, 1u32..300, 0u32..300, 0u64..200_000), 1..200)
        ) {
            let (mut trust, mut now) = (Trust::default(), NOON);
            for (number, looked_at, wrong, seconds) in checks {
                now = now + Duration::from_secs(seconds);
                let wrong = if number == 0 { 0 } else { wrong };
                trust.note(peer(number), Matter::Links, looked_at, wrong, now);
                prop_assert!(!trust.is_distrusted(peer(0), now));
                for number in 0..3 {
                    prop_assert!(!trust.is_distrusted(peer(number), now + LONGEST_TERM));
                    prop_assert!((LEAST_CHANCE..=1.0).contains(&trust.chance(peer(number))));
                }
            }
        }
    }
}
