//! The domains a peer knows, as rows of a listing: its own, those it holds copies of, and those it
//! helps others with.

use crate::{
    admitter::decode_state,
    helped::{Help, Helped},
    page::now,
    status::{DomainRow, Role},
    swarm::tenancy::{Claim, Tenancy},
};
use apoidea_crawl::{DomainState, Standing, Stop};
use apoidea_model::{Domain, Time};
use apoidea_store::{ReadError, Store};
use std::{collections::BTreeMap, sync::Arc};

/// Where the rows come from.
pub(crate) struct Listing {
    pub store: Store,
    pub helped: Helped,
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
            .helped
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
        Ok(rows.into_values().take(limit).collect())
    }

    fn row(&self, state: DomainState, domain: Domain, now: Time) -> DomainRow {
        let counters = state.counters;
        DomainRow {
            role: match self.tenancy.claim(domain.key()) {
                Claim::Settled | Claim::Unsettled => Role::Owner,
                Claim::Foreign => Role::Holder,
            },
            helped: self.helped.of(&domain),
            fetched: counters.fetched,
            queued: counters.queued,
            failed: counters.failed,
            bytes: counters.bytes,
            visited: state.last_asked(),
            next: state.ready_at(),
            delay_ms: state.last_pause().map_or(0, |pause| {
                u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
            }),
            state: describe(&state, now),
            robots: describe_robots(&state, now),
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
        state: "helped: its owner crawls it".to_owned(),
        robots: "heeded by its owner".to_owned(),
        domain,
    }
}

fn describe(state: &DomainState, now: Time) -> String {
    match (state.stopped(), state.resting(now)) {
        (Some(Stop::Forbidden), _) => "stopped: it forbids us".to_owned(),
        (Some(Stop::Challenged), _) => "stopped: it wants to see a human".to_owned(),
        (Some(Stop::Unreachable), _) => "stopped: no answer for a week".to_owned(),
        (None, Some(until)) => format!("rests for {} min", until.since(now).as_secs() / 60),
        (None, None) if state.counters.queued == 0 => "done".to_owned(),
        (None, None) => "crawling".to_owned(),
    }
}

/// What counts for most origins: of several robots.txt, the one asked for last.
fn describe_robots(state: &DomainState, now: Time) -> String {
    match state.standings(now).next() {
        None | Some((_, Standing::Ask)) => "not asked yet".to_owned(),
        Some((_, Standing::Wait(until))) => {
            format!(
                "does not answer; asked again in {} min",
                until.since(now).as_secs().div_ceil(60)
            )
        }
        Some((_, Standing::Known(access))) => match access.crawl_delay() {
            Some(delay) => format!("known, asks for {} s between requests", delay.as_secs_f32()),
            None => "known".to_owned(),
        },
    }
}
