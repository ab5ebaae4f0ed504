//! What may be fetched now, and otherwise when to ask again (after BUbiNG's workbench).
//!
//! Two levels: addresses, each with its hosts, both ordered by the time they may next be asked, so that ten thousand
//! hosts on one address cost nothing. Only some domains are resident, each with a window of its queue; all others are
//! parked on disk. A state machine without clock or disk: the driver feeds [`Event`]s and carries out [`Action`]s.

mod config;
mod event;

pub use config::FrontierConfig;
pub use event::{Action, Connection, Event, Report};

use crate::{DomainState, Settlement};
use apoidea_model::{Domain, Time};

/// The domains in memory and what to do about them next.
#[derive(Debug)]
pub struct Frontier {
    config: FrontierConfig,
}

impl Frontier {
    /// Nothing resident; asks for parked domains at once.
    pub fn new(config: FrontierConfig) -> Self {
        Frontier { config }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, event: Event, now: Time) {
        let _ = (event, now);
    }

    /// Takes in how a fetch went, and says what becomes of the URL. `None` if no such fetch is under way, as when the
    /// domain was released meanwhile.
    pub fn settle(&mut self, report: Report, now: Time) -> Option<Settlement> {
        let _ = (report, now);
        None
    }

    /// The next thing to do now; call again until there is none.
    pub fn poll(&mut self, now: Time) -> Option<Action> {
        let _ = now;
        None
    }

    /// When [`Self::poll`] will have something to do if nothing happens before; [`Time::NEVER`] if it will not.
    pub fn next_timeout(&self) -> Time {
        Time::NEVER
    }

    /// Is the domain in memory, so that news of it go to [`Self::handle`] instead of the parked ones on disk?
    pub fn is_resident(&self, domain: &Domain) -> bool {
        self.state(domain).is_some()
    }

    /// What is known of a resident domain.
    pub fn state(&self, domain: &Domain) -> Option<&DomainState> {
        let _ = domain;
        None
    }

    /// All resident domains, for saving them.
    pub fn residents(&self) -> impl Iterator<Item = (&Domain, &DomainState)> {
        std::iter::empty()
    }

    /// Takes a domain out, as when another peer became its owner. What comes of a fetch under way is ignored.
    pub fn release(&mut self, domain: &Domain) -> Option<DomainState> {
        let _ = domain;
        None
    }

    /// Fetches and robots.txt fetches under way.
    pub fn fetching(&self) -> usize {
        0
    }

    /// Changes how many fetches may be under way; those beyond finish.
    pub fn set_fetches(&mut self, fetches: usize) {
        self.config.fetches = fetches;
    }

    /// Changes how many domains may be in memory; those beyond are parked as soon as they are not busy.
    pub fn set_resident(&mut self, resident: usize) {
        self.config.resident = resident;
    }
}
