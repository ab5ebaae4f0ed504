//! A resident domain: its state, its window, what it is busy with, and what to do with it next.

use super::window::Window;
use crate::{DomainState, Origin, Pace, RobotsStanding};
use apoidea_model::{Pending, Slot, Time};
use std::{net::IpAddr, time::Duration};

/// A resident domain.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) state: DomainState,
    pub(super) window: Window,
    pub(super) activity: Activity,
    pub(super) place: Option<Place>,
    /// The number of residents that it counts for.
    pub(super) weight: usize,
    /// Since when it is resident.
    since: Time,
    /// Did it have its turn since?
    turn: Turn,
    /// No URL of the window may be fetched before.
    blocked_until: Time,
    /// Whether it goes to disk as soon as it can.
    term: Term,
}

/// The stay of a host in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Term {
    /// As long as there is something to do.
    Open,
    /// No longer than it must.
    Over,
}

/// The one thing that a host is busy with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing.
    Idle,
    /// Waits at its address for its turn at this time.
    Waiting(Time),
    /// Its name is being resolved.
    Resolving,
    /// This robots.txt is being fetched.
    Robots(Origin),
    /// This page is being fetched.
    Fetching(Pending),
    /// It is on its way to disk, until then.
    Leaving(Time),
}

/// Did a host do anything since it came from disk? If not, sending it back would be going round in
/// circles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Due,
    Had,
}

/// The address of a host, and its pace.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) address: IpAddr,
    pub(super) pace: Pace,
    pub(super) resolved: Time,
}

/// The demand for memory around a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressure {
    /// There is room for everyone.
    None,
    /// Others wait on disk for room.
    Queue,
    /// There are more residents than there may be.
    Excess,
}

/// The plan for a host that is not busy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// Back to disk, until then.
    Park(Time),
    /// Find its address.
    Resolve,
    /// It may be asked at this time, if its address and its window allow.
    Serve(Place, Time),
    /// Nothing, until the disk has answered.
    Stay,
}

/// The choice for a host whose turn it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// Its robots.txt first.
    Ask(Origin),
    /// Fetch this.
    Fetch(Slot),
    /// Settle this without a fetch.
    Disallow(Slot),
    /// Nothing before this time.
    Wait(Time),
    /// The window is empty.
    Nothing,
}

/// A host whose turn is further away waits on disk: memory is for those who work.
pub(super) const FAR: Duration = Duration::from_secs(300);
/// For so long a host may keep its place when others wait for it: 60 pages at the usual pace, so
/// that moving it to and from disk costs little.
const SLICE: Duration = Duration::from_secs(300);
/// An address is looked up again after this long; most sites keep theirs for longer.
const RESOLVED_FOR: Duration = Duration::from_secs(3600);
/// A host with larger rules than this counts as several, since strangers decide how large rules
/// are.
const RULES_SHARE_BYTES: usize = 4096;
/// But not for more than this: rules cannot be larger than a few MiB.
const WEIGHT_MAX: usize = 512;

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl Eq for Place {}

impl Host {
    /// A domain that just came from disk.
    pub(super) fn new(mut state: DomainState, now: Time) -> Self {
        state.bound(now);
        let mut host = Host {
            state,
            window: Window::new(),
            activity: Activity::Idle,
            place: None,
            weight: 0,
            since: now,
            turn: Turn::Due,
            blocked_until: Time::ZERO,
            term: Term::Open,
        };
        host.weigh();
        host
    }

    /// Counts its rules anew.
    pub(super) fn weigh(&mut self) {
        self.weight = (1 + self.state.memory_bytes() / RULES_SHARE_BYTES).min(WEIGHT_MAX);
    }

    /// The pace that holds for it.
    pub(super) fn pace(&self) -> Pace {
        self.place.map_or(Pace::GLOBAL, |place| place.pace)
    }

    /// The plan for it while it is not busy.
    pub(super) fn plan(&self, pressure: Pressure, now: Time) -> Plan {
        let ready = self.state.ready_at().max(self.blocked_until);
        if self.window.is_reading() {
            if ready > now + FAR {
                return Plan::Stay;
            }
        } else if let Some(wake) = self.park(ready, pressure, now) {
            return Plan::Park(wake);
        }
        match self
            .place
            .filter(|place| now.since(place.resolved) < RESOLVED_FOR)
        {
            Some(place) => Plan::Serve(place, ready),
            None => Plan::Resolve,
        }
    }

    /// Until when it has to go, if it has to.
    fn park(&self, ready: Time, pressure: Pressure, now: Time) -> Option<Time> {
        if self.window.is_drained() {
            let has_more = self.window.behind() != Time::NEVER;
            return Some(if has_more {
                self.window.behind().max(ready)
            } else {
                Time::NEVER
            });
        }
        let makes_room = match pressure {
            _ if self.term == Term::Over => true,
            Pressure::None => false,
            Pressure::Queue => now.since(self.since) >= SLICE,
            Pressure::Excess => self.turn == Turn::Had,
        };
        let has_to_go = makes_room || ready > now + FAR || self.window.behind() <= now;
        has_to_go.then_some(ready.max(now))
    }

    /// The choice now that it is its turn.
    pub(super) fn choose(&mut self, now: Time) -> Choice {
        self.turn = Turn::Had;
        let mut wait = None;
        for pending in self.window.urls() {
            let origin = Origin::of(&pending.url);
            match self.state.standing(origin, now) {
                RobotsStanding::Ask => return Choice::Ask(origin),
                RobotsStanding::Wait(until) => {
                    wait = Some(wait.map_or(until, |wait: Time| wait.min(until)))
                }
                RobotsStanding::Known(access)
                    if access.decide(pending.url.path_and_query()).allowed =>
                {
                    return Choice::Fetch(pending.slot);
                }
                RobotsStanding::Known(_) => return Choice::Disallow(pending.slot),
            }
        }
        wait.map_or(Choice::Nothing, Choice::Wait)
    }

    /// Lets it go to disk as soon as nothing of it is under way.
    pub(super) fn retire(&mut self) {
        self.term = Term::Over;
        if matches!(self.activity, Activity::Waiting(_)) {
            self.activity = Activity::Idle;
        }
    }

    /// Lets it wait though its clock would allow a request.
    pub(super) fn block(&mut self, until: Time) {
        self.blocked_until = until;
    }

    /// Whether its turn has come.
    pub(super) fn is_ready(&self, now: Time) -> bool {
        matches!(self.activity, Activity::Waiting(ready) if ready <= now)
    }

    /// Whether it is doing this in the network.
    pub(super) fn is_fetching(&self) -> bool {
        matches!(self.activity, Activity::Robots(_) | Activity::Fetching(_))
    }
}
