//! The domains a peer knows, as rows of a listing: its own, those of which it has replicas,
//! and those it helps others with.

use crate::{
    clock::now,
    report::status::{DomainRow, DomainStatus, RobotsStatus, Role},
    state_codec::decode_state,
    swarm::{
        lending::borrowed::{BorrowedDomains, Help},
        tenancy::{Claim, Tenancy},
    },
    volunteer::refusals,
};
use apoidea_crawl::{DomainState, RobotsStanding, is_within_one};
use apoidea_model::{Domain, Time};
use apoidea_store::{ReadError, Store};
use std::{collections::BTreeMap, sync::Arc, time::Duration};

/// Where the rows come from.
pub(crate) struct Listing {
    pub store: Store,
    pub borrowed: BorrowedDomains,
    pub tenancy: Arc<Tenancy>,
}

impl Listing {
    /// Domains in alphabetical order whose names begin with `prefix`, from behind `after`.
    pub(crate) fn rows(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<DomainRow>, ReadError> {
        let after = after.and_then(|name| name.parse::<Domain>().ok());
        let stored = self.store.domains(prefix, after.as_ref(), limit)?;
        let helped = self
            .borrowed
            .list(prefix, after.as_ref().map(Domain::as_str), limit);
        let now = now();
        let mut rows: BTreeMap<Domain, DomainRow> = helped
            .into_iter()
            .map(|(domain, help)| (domain.clone(), helped_row(domain, help)))
            .collect();
        rows.extend(stored.into_iter().map(|(domain, bytes)| {
            let state = decode_state(&domain, &bytes);
            (domain.clone(), self.row(state, domain, now))
        }));
        let refused = refusals::read(&self.store)?;
        let is_refused = |row: &&mut DomainRow| is_within_one(row.domain.as_str(), &refused);
        let mut rows: Vec<DomainRow> = rows.into_values().take(limit).collect();
        rows.iter_mut()
            .filter(is_refused)
            .for_each(|row| row.state = DomainStatus::Refused);
        Ok(rows)
    }

    fn row(&self, state: DomainState, domain: Domain, now: Time) -> DomainRow {
        let counters = state.counters;
        DomainRow {
            role: match self.tenancy.claim(domain.key()) {
                Claim::Owned | Claim::TakingOver => Role::Owner,
                Claim::Foreign => Role::Holder,
            },
            helped: self.borrowed.of(&domain),
            fetched: counters.fetched,
            queued: counters.queued,
            failed: counters.failed,
            bytes: counters.bytes,
            visited: state.last_asked(),
            next: state.ready_at(),
            delay_ms: state.last_pause().map_or(0, millis),
            state: status(&state, now),
            robots: robots(&state, now),
            domain,
        }
    }
}

/// A domain of which nothing is kept here.
fn helped_row(domain: Domain, help: Help) -> DomainRow {
    DomainRow {
        role: Role::Helper,
        helped: Some(help),
        fetched: help.pages,
        queued: 0,
        failed: help.failed,
        bytes: help.bytes,
        visited: help.visited,
        next: Time::NEVER,
        delay_ms: 0,
        state: DomainStatus::Helped,
        robots: RobotsStatus::LeftToOwner,
        domain,
    }
}

fn status(state: &DomainState, now: Time) -> DomainStatus {
    match (state.stopped(), state.resting(now)) {
        (Some(stop), _) => DomainStatus::Stopped { why: stop.into() },
        (None, Some(until)) => DomainStatus::Rests { until },
        (None, None) if state.counters.queued == 0 => DomainStatus::Done,
        (None, None) => DomainStatus::Crawling,
    }
}

/// What counts for most origins: of several robots.txt, the one asked for last.
fn robots(state: &DomainState, now: Time) -> RobotsStatus {
    match state.standings(now).next() {
        None | Some((_, RobotsStanding::Ask)) => RobotsStatus::NotAsked,
        Some((_, RobotsStanding::Wait(until))) => RobotsStatus::Silent { until },
        Some((_, RobotsStanding::Known(access))) => RobotsStatus::Known {
            delay_ms: access.crawl_delay().map(millis),
        },
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
