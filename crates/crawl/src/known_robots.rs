//! The robots.txt of one origin as a peer remembers it: what it allows, and until when that counts.
//!
//! Reading the file is left to [`crate::Robots`]. What is remembered is stored and handed over with
//! the domain, so that a change of owner never resets it.

use crate::{
    Origin,
    politeness::{Pace, ROBOTS_RETRY},
    robots::{Access, Robots},
};
use apoidea_model::Time;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The answer of an origin's robots.txt, as far as it is known now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RobotsStanding<'a> {
    /// Its robots.txt is unknown or too old: fetch it first.
    Ask,
    /// Its robots.txt was not to be had: nothing, and ask again then.
    Wait(Time),
    /// Known, and valid now.
    Known(&'a Access),
}

/// A robots.txt and until when it counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownRobots {
    pub(crate) origin: Origin,
    access: Access,
    until: Time,
    /// Failures to get it, in a row.
    tries: u8,
}

impl KnownRobots {
    /// Nothing known, and so nothing allowed.
    pub(crate) fn unknown(origin: Origin) -> Self {
        KnownRobots {
            origin,
            access: Access::Closed,
            until: Time::ZERO,
            tries: 0,
        }
    }

    /// Takes in an answer.
    pub(crate) fn answered(
        &mut self,
        access: Access,
        retry_after: Option<Duration>,
        now: Time,
        pace: Pace,
    ) {
        self.until = now + Robots::MAX_AGE;
        if access == Access::Closed {
            let doubled = ROBOTS_RETRY
                .saturating_mul(1 << self.tries.min(10))
                .min(Robots::MAX_AGE);
            self.until = now + pace.scale(doubled).max(pace.back_off(retry_after));
            self.tries = self.tries.saturating_add(1);
        } else {
            self.tries = 0;
        }
        self.access = access;
    }

    /// The answer as far as it is known now.
    pub(crate) fn standing(&self, now: Time) -> RobotsStanding<'_> {
        match &self.access {
            _ if self.until <= now => RobotsStanding::Ask,
            Access::Closed => RobotsStanding::Wait(self.until),
            known => RobotsStanding::Known(known),
        }
    }

    /// The pause that the host asks for.
    pub(crate) fn crawl_delay(&self) -> Option<Duration> {
        self.access.crawl_delay()
    }

    /// Memory in use, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        match &self.access {
            Access::Rules(robots) => robots.memory_bytes(),
            Access::Open | Access::Closed => 0,
        }
    }

    /// Brings a time from a broken clock, or a stranger, back into what the contract allows.
    pub(crate) fn bound(&mut self, now: Time) {
        self.until = self.until.min(now + Robots::MAX_AGE);
    }
}
