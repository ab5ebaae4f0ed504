//! The share of a peer's fetches that go to pages which it knows already.

use apoidea_model::Visit;

/// The fetches that count: the last few thousand.
const DECAY: f64 = 0.999;

/// Counts first visits and later ones, and says whether another later one has room.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RevisitShare {
    most: f64,
    first: f64,
    later: f64,
}

impl RevisitShare {
    /// Later visits may take this share of all, from 0 to 1.
    pub fn new(most: f64) -> Self {
        RevisitShare {
            most: most.clamp(0.0, 1.0),
            first: 0.0,
            later: 0.0,
        }
    }

    /// Are there to be later visits at all?
    pub fn is_any(&self) -> bool {
        self.most > 0.0
    }

    /// A fetch begins.
    pub fn note(&mut self, visit: &Visit) {
        self.first *= DECAY;
        self.later *= DECAY;
        match visit {
            Visit::First => self.first += 1.0,
            Visit::Again(_) => self.later += 1.0,
        }
    }

    /// Is there room for another later visit, beside so many that wait already?
    pub fn has_room(&self, waiting: u64) -> bool {
        let later = self.later + waiting as f64 + 1.0;
        later <= self.most * (self.first + later)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{ContentHash, ContentMark, PreviousVisit, Time, Validators};

    #[test]
    fn later_visits_take_their_share_and_no_more() {
        let again = Visit::again(PreviousVisit {
            since: Time::ZERO,
            captured: None,
            validators: Validators::default(),
            content: ContentMark::of(&ContentHash::of_body(b"x")),
        });
        let mut share = RevisitShare::new(0.3);
        let (mut first, mut later) = (0, 0);
        for _ in 0..10_000 {
            match share.has_room(0) {
                true => {
                    later += 1;
                    share.note(&again);
                }
                false => {
                    first += 1;
                    share.note(&Visit::First);
                }
            }
        }
        assert!((2_900..=3_100).contains(&later), "{later} of {first}");
        assert!(!RevisitShare::new(0.0).has_room(0) && !RevisitShare::new(0.0).is_any());
    }
}
