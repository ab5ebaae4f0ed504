//! When the screensaver opens by itself: once in each spell without input.

use apoidea_governor::{Readings, Screen};

/// The spell without input that is going on.
#[derive(Debug, Default)]
pub struct Lull {
    was_used: bool,
}

impl Lull {
    /// Is it time to open? Not again in the same spell, and not over a film.
    pub fn is_time(&mut self, readings: &Readings, after_seconds: u32) -> bool {
        let is_long = after_seconds > 0
            && readings
                .idle_ms
                .is_some_and(|idle| idle >= u64::from(after_seconds) * 1000);
        if !is_long {
            self.was_used = false;
            return false;
        }
        let is_time = !self.was_used && readings.screen != Some(Screen::Full);
        self.was_used |= is_time;
        is_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(seconds: u64) -> Readings {
        Readings {
            idle_ms: Some(seconds * 1000),
            ..Readings::default()
        }
    }

    #[test]
    fn it_opens_once_in_each_spell_without_input() {
        let mut lull = Lull::default();
        let story = [
            (10, false),
            (60, true),
            (61, false),
            (500, false),
            (0, false),
            (59, false),
            (60, true),
        ];
        for (seconds, expected) in story {
            assert_eq!(lull.is_time(&idle(seconds), 60), expected, "{seconds}");
        }
    }

    #[test]
    fn it_never_opens_unasked_unseen_or_over_a_film() {
        let mut lull = Lull::default();
        assert!(!lull.is_time(&idle(99_999), 0));
        assert!(!lull.is_time(&Readings::default(), 60));
        let film = Readings {
            screen: Some(Screen::Full),
            ..idle(99)
        };
        assert!(!lull.is_time(&film, 60));
        assert!(lull.is_time(&idle(100), 60), "when the film is over");
    }
}
