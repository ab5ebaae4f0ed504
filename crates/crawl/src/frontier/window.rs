//! The part of a domain's queue that is in memory.
//!
//! The queue is read once from front to back. What was read lies up to the cursor: it is in the
//! window, under way, settled, or a retry that waits. Retries that wait are not kept but left
//! behind, as is what was pushed out by more important URLs after a less important one was taken;
//! the domain is parked when the first of them is due, and begins again at the front when it wakes.
//! So the disk is never read where a change to it may still be on its way.

use apoidea_model::{Pending, Slot, Time};
use std::collections::VecDeque;

/// The next URLs of a domain.
#[derive(Debug)]
pub(super) struct Window {
    urls: VecDeque<Pending>,
    /// Everything up to here was read.
    cursor: Option<Slot>,
    /// The last URL that was taken; the cursor never goes back behind it.
    taken: Option<Slot>,
    reading: Reading,
    /// The time at which the first retry that was left behind is due.
    behind: Time,
}

/// The place up to which the queue on disk was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// There may be more.
    More,
    /// So many were asked for.
    Asked { limit: usize, rest: Rest },
    /// There is no more.
    End,
}

/// The queue behind the part that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Unknown,
    /// Something was added there since.
    Grown,
}

impl Window {
    /// Nothing read.
    pub(super) fn new() -> Self {
        Window {
            urls: VecDeque::new(),
            cursor: None,
            taken: None,
            reading: Reading::More,
            behind: Time::NEVER,
        }
    }

    /// The URLs, first one first.
    pub(super) fn urls(&self) -> impl Iterator<Item = &Pending> {
        self.urls.iter()
    }

    /// Whether nothing is there now.
    pub(super) fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    /// Whether nothing is there, and nothing more to read.
    pub(super) fn is_drained(&self) -> bool {
        self.urls.is_empty() && self.reading == Reading::End
    }

    /// Whether an answer from the disk is due.
    pub(super) fn is_reading(&self) -> bool {
        matches!(self.reading, Reading::Asked { .. })
    }

    /// The time at which the first retry that was left behind is due; never if there is none.
    pub(super) fn behind(&self) -> Time {
        self.behind
    }

    /// Asks for more when it is time to: behind which place, and how many.
    pub(super) fn ask(&mut self, capacity: usize) -> Option<(Option<Slot>, usize)> {
        let is_low = self.urls.len() <= capacity / 4;
        if !is_low || self.reading != Reading::More {
            return None;
        }
        let limit = capacity.saturating_sub(self.urls.len()).max(1);
        self.reading = Reading::Asked {
            limit,
            rest: Rest::Unknown,
        };
        Some((self.cursor, limit))
    }

    /// Takes in what was asked for.
    pub(super) fn refilled(&mut self, urls: Vec<Pending>, now: Time) {
        let Reading::Asked { limit, rest } = self.reading else {
            return;
        };
        let is_end = urls.len() < limit && rest == Rest::Unknown;
        self.reading = if is_end { Reading::End } else { Reading::More };
        for pending in urls {
            self.cursor = self.cursor.max(Some(pending.slot));
            self.add(pending, now);
        }
    }

    /// Takes in what was added to the queue on disk. What follows on the end that was read need not
    /// be read there.
    pub(super) fn admitted(&mut self, urls: Vec<Pending>, capacity: usize, now: Time) {
        for pending in urls {
            let follows = self.reading == Reading::End && self.urls.len() < capacity;
            if follows || self.cursor >= Some(pending.slot) {
                self.cursor = self.cursor.max(Some(pending.slot));
                self.add(pending, now);
            } else {
                self.grown();
            }
        }
        while self.urls.len() > capacity {
            let pushed_out = self.urls.pop_back().map(|last| last.slot);
            if pushed_out < self.taken {
                // The cursor does not come back to it; a new start at the front does.
                self.leave_behind(now);
            }
            self.cursor = self.urls.back().map(|last| last.slot).max(self.taken);
            self.grown();
        }
    }

    /// Takes in what was removed from the queue on disk.
    pub(super) fn evicted(&mut self, slots: &[Slot]) {
        self.urls.retain(|pending| !slots.contains(&pending.slot));
    }

    /// Takes a URL out.
    pub(super) fn take(&mut self, slot: Slot) -> Option<Pending> {
        let at = self.urls.iter().position(|pending| pending.slot == slot)?;
        self.taken = self.taken.max(Some(slot));
        self.urls.remove(at)
    }

    /// Leaves a URL behind, to be tried again then.
    pub(super) fn leave_behind(&mut self, not_before: Time) {
        self.behind = self.behind.min(not_before);
    }

    fn add(&mut self, pending: Pending, now: Time) {
        if pending.not_before > now {
            return self.leave_behind(pending.not_before);
        }
        if let Err(at) = self
            .urls
            .binary_search_by_key(&pending.slot, |known| known.slot)
        {
            self.urls.insert(at, pending);
        }
    }

    fn grown(&mut self) {
        self.reading = match self.reading {
            Reading::Asked { limit, .. } => Reading::Asked {
                limit,
                rest: Rest::Grown,
            },
            Reading::More | Reading::End => Reading::More,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{CrawlId, Link, Target};

    const NOW: Time = Time::from_millis(1000);

    fn pending(sequence: u64) -> Pending {
        let link = Link {
            url: format!("http://a.example/{sequence}").parse().unwrap(),
            depth: 0,
            target: Target::Page,
        };
        Pending::admitted(link, Slot { rank: 0, sequence }, CrawlId::OPEN)
    }

    fn all(sequences: impl IntoIterator<Item = u64>) -> Vec<Pending> {
        sequences.into_iter().map(pending).collect()
    }

    fn sequences(window: &Window) -> Vec<u64> {
        window.urls().map(|pending| pending.slot.sequence).collect()
    }

    /// A window of four that holds 10 to 13, with more on disk.
    fn filled() -> Window {
        let mut window = Window::new();
        assert_eq!(window.ask(4), Some((None, 4)));
        window.refilled(all(10..14), NOW);
        window
    }

    #[test]
    fn asks_for_more_when_low_and_not_twice() {
        let mut window = filled();
        assert_eq!(window.ask(4), None, "full");
        (10..13).for_each(|sequence| _ = window.take(pending(sequence).slot));
        assert_eq!(window.ask(4), Some((Some(pending(13).slot), 3)));
        assert_eq!(window.ask(4), None, "the answer is on its way");
        window.refilled(all(14..15), NOW);
        assert_eq!(window.ask(4), None, "a short answer is the end");
        assert_eq!(sequences(&window), [13, 14]);
        assert!(!window.is_drained());
    }

    #[test]
    fn a_more_important_newcomer_pushes_the_last_one_back_to_disk() {
        let mut window = filled();
        window.take(pending(10).slot);
        window.admitted(all([1, 2, 3, 4]), 4, NOW);
        assert_eq!(sequences(&window), [1, 2, 3, 4]);
        (1..5).for_each(|sequence| _ = window.take(pending(sequence).slot));
        let after_what_is_under_way = Some(pending(10).slot);
        assert_eq!(window.ask(4), Some((after_what_is_under_way, 4)));
    }

    #[test]
    fn what_is_pushed_out_before_something_taken_is_found_by_a_new_start() {
        let mut window = Window::new();
        window.ask(4);
        window.refilled(all([50]), NOW);
        window.take(pending(50).slot);
        window.admitted(all(1..5), 4, NOW);
        assert_eq!(window.behind(), Time::NEVER);
        window.admitted(all([5]), 4, NOW);
        assert_eq!(
            (sequences(&window), window.behind()),
            (vec![1, 2, 3, 4], NOW)
        );
    }

    #[test]
    fn newcomers_behind_the_end_are_taken_in_as_far_as_there_is_room() {
        let mut window = filled();
        (10..14).for_each(|sequence| _ = window.take(pending(sequence).slot));
        window.ask(4);
        window.refilled(Vec::new(), NOW);
        assert!(window.is_drained());
        window.admitted(all([20, 21]), 4, NOW);
        assert_eq!((sequences(&window), window.ask(4)), (vec![20, 21], None));
        window.admitted(all([22, 23, 24]), 4, NOW);
        assert_eq!(sequences(&window), [20, 21, 22, 23]);
        (20..24).for_each(|sequence| _ = window.take(pending(sequence).slot));
        assert_eq!(window.ask(4), Some((Some(pending(23).slot), 4)));
    }

    #[test]
    fn a_newcomer_that_the_reader_may_have_missed_is_asked_for_again() {
        let mut window = Window::new();
        window.ask(4);
        window.admitted(all([20]), 4, NOW);
        window.refilled(Vec::new(), NOW);
        assert!(!window.is_drained());
        assert_eq!(window.ask(4), Some((None, 4)));
    }

    #[test]
    fn retries_that_wait_are_left_behind() {
        let mut window = Window::new();
        window.ask(4);
        let waiting = Pending {
            not_before: NOW + std::time::Duration::from_secs(9),
            ..pending(1)
        };
        window.refilled(vec![waiting.clone(), pending(2)], NOW);
        assert_eq!(
            (sequences(&window), window.behind()),
            (vec![2], waiting.not_before)
        );
    }

    #[test]
    fn what_was_evicted_from_disk_is_gone() {
        let mut window = filled();
        window.evicted(&[pending(11).slot, pending(99).slot]);
        assert_eq!(sequences(&window), [10, 12, 13]);
    }
}
