//! Events for the frontier and the actions that it wants done: the driver carries these out.

use crate::{DomainState, Effort, Origin, Outcome, robots::Access};
use apoidea_model::{Domain, PageId, PageUrl, Pending, Slot, Time};
use std::{net::IpAddr, time::Duration};

/// Something happened. Events about domains that are not resident are ignored.
#[derive(Debug, Clone)]
pub enum Event {
    /// Answers [`Action::Wake`]: domains were taken from the parked ones on disk.
    Woke {
        /// At most as many as asked for, and only those whose time has come.
        domains: Vec<(Domain, DomainState)>,
        /// The time at which the next parked domain wakes; [`Time::NEVER`] if none is left.
        next: Time,
    },
    /// A domain is among the parked ones on disk now: after [`Action::Park`], or since it got its
    /// first URLs or came from another peer.
    Parked {
        /// The time at which it wakes.
        wake: Time,
    },
    /// Answers [`Action::Resolve`].
    Resolved {
        /// The domain.
        domain: Domain,
        /// Its address; `None` if there is none that may be contacted.
        address: Option<IpAddr>,
    },
    /// Answers [`Action::Refill`].
    Refilled {
        /// The domain.
        domain: Domain,
        /// The next URLs of its queue, in order; fewer than asked for if the queue ends there.
        urls: Vec<Pending>,
    },
    /// URLs were added to the queue on disk of a resident domain, durably, and others removed to
    /// make room.
    Admitted {
        /// The domain.
        domain: Domain,
        /// Added.
        urls: Vec<Pending>,
        /// Removed.
        evicted: Vec<Slot>,
        /// Not added, since the queue was full.
        overflowed: u64,
    },
    /// Answers [`Action::FetchRobots`].
    Robots {
        /// The domain.
        domain: Domain,
        /// The origin whose robots.txt it is.
        origin: Origin,
        /// Its rules; [`Access::Closed`] if there was no usable answer.
        access: Access,
        /// The wait that the `Retry-After` header asked for.
        retry_after: Option<Duration>,
        /// Its cost.
        effort: Effort,
    },
}

/// The end of a fetch: answers [`Action::Fetch`], through [`crate::Frontier::settle`].
#[derive(Debug, Clone)]
pub struct FetchReport {
    /// The page.
    pub page: PageId,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its cost.
    pub effort: Effort,
}

/// Something is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Take up to `limit` domains whose time has come from the parked ones, earliest first; answer
    /// with [`Event::Woke`], even if there are none.
    Wake {
        /// At most so many.
        limit: usize,
    },
    /// Find the domain's address; answer with [`Event::Resolved`].
    Resolve(Domain),
    /// Read from the domain's queue; answer with [`Event::Refilled`].
    Refill {
        /// The domain.
        domain: Domain,
        /// Only what comes behind this place.
        after: Option<Slot>,
        /// At most so many.
        limit: usize,
    },
    /// Fetch a robots.txt; answer with [`Event::Robots`].
    FetchRobots {
        /// The domain.
        domain: Domain,
        /// The origin whose robots.txt it is.
        origin: Origin,
        /// Its URL.
        url: PageUrl,
        /// The address to connect to.
        address: IpAddr,
    },
    /// Fetch a page; answer with [`crate::Frontier::settle`].
    Fetch {
        /// The domain.
        domain: Domain,
        /// The URL to fetch.
        pending: Pending,
        /// The address to connect to.
        address: IpAddr,
        /// The fate of the connection afterwards.
        connection: Connection,
    },
    /// A URL that robots.txt forbids: remove it from the queue on disk. Nothing else will come of
    /// it.
    Disallowed {
        /// The domain.
        domain: Domain,
        /// The URL.
        pending: Pending,
    },
    /// The domain left memory: make its state durable, and put it among the parked ones until
    /// `wake` (not at all if that is [`Time::NEVER`]: then its queue is empty, or it is stopped).
    /// Everything settled before must be durable before the domain is offered again; tell with
    /// [`Event::Parked`] if a [`Action::Wake`] could come in between.
    Park {
        /// The domain.
        domain: Domain,
        /// Its state.
        state: Box<DomainState>,
        /// The time at which it has something to do again.
        wake: Time,
    },
}

/// The fate of a connection after a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connection {
    /// More URLs of this host follow.
    KeepAlive,
    /// This was the last one known.
    Close,
}
