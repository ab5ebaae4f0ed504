//! The events to come: messages and timers in the order of their time, and of their making where
//! times are equal.

use crate::Message;
use apoidea_model::Time;
use std::{cmp::Reverse, collections::BinaryHeap};

/// The future of a simulation.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64, u32, u32)>>,
    made: u64,
    letters: Vec<Option<Letter>>,
    free: Vec<u32>,
}

/// A message that is being delivered.
#[derive(Debug)]
pub struct Letter {
    /// Number of the sender.
    pub from: u32,
    /// Number of the receiver.
    pub to: u32,
    /// Its content.
    pub message: Message,
}

/// Something that happens.
#[derive(Debug)]
pub enum Happening {
    /// A message arrives.
    Arrival(Letter),
    /// A peer's timer rings.
    Timer(u32),
    /// A step of the scenario, with its number.
    Cue(u32),
}

const LETTER: u32 = 0;
const TIMER: u32 = 1;
const CUE: u32 = 2;

impl Queue {
    /// Lets a message arrive.
    pub fn deliver(&mut self, at: Time, letter: Letter) {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.letters.push(None);
            (self.letters.len() - 1) as u32
        });
        self.letters[slot as usize] = Some(letter);
        self.push(at, LETTER, slot);
    }

    /// Lets a peer's timer ring.
    pub fn ring(&mut self, at: Time, peer: u32) {
        self.push(at, TIMER, peer);
    }

    /// Lets a step of the scenario come.
    pub fn cue(&mut self, at: Time, number: u32) {
        self.push(at, CUE, number);
    }

    /// When something happens next.
    pub fn next_at(&self) -> Time {
        self.heap
            .peek()
            .map_or(Time::NEVER, |Reverse((at, ..))| Time::from_millis(*at))
    }

    /// The next happening.
    pub fn pop(&mut self) -> Option<(Time, Happening)> {
        let Reverse((at, _, kind, number)) = self.heap.pop()?;
        let happening = match kind {
            LETTER => {
                self.free.push(number);
                Happening::Arrival(self.letters[number as usize].take()?)
            }
            TIMER => Happening::Timer(number),
            _ => Happening::Cue(number),
        };
        Some((Time::from_millis(at), happening))
    }

    fn push(&mut self, at: Time, kind: u32, number: u32) {
        self.made += 1;
        self.heap
            .push(Reverse((at.as_millis(), self.made, kind, number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_happen_in_the_order_of_time_and_then_of_making() {
        let mut queue = Queue::default();
        let letter = |from| Letter {
            from,
            to: 0,
            message: Message::Request(crate::RequestId(1), crate::RingRequest::Ping),
        };
        queue.ring(Time::from_millis(5), 1);
        queue.deliver(Time::from_millis(5), letter(2));
        queue.cue(Time::from_millis(1), 3);
        queue.deliver(Time::from_millis(5), letter(4));
        let mut seen = Vec::new();
        while let Some((_, happening)) = queue.pop() {
            seen.push(match happening {
                Happening::Arrival(letter) => letter.from,
                Happening::Timer(number) | Happening::Cue(number) => number,
            });
        }
        assert_eq!(seen, [3, 1, 2, 4]);
    }
}
