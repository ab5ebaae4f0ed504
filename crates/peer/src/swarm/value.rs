//! All that a peer knows of a domain, as one value: it moves to another peer as a whole.

use crate::admitter::{decode_state, encode_state};
use apoidea_crawl::{DomainState, InvalidSeen, ReducedSeen, Reductions, Versions};
use apoidea_model::{Domain, Link, Pending, Slot, Time, UrlHash};
use apoidea_store::{ReadError, Store};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// URLs that wait at one domain and are moved: what its queue may hold by default.
const MAX_QUEUE: usize = 100_000;
/// Clocks of peers may differ by so much; whoever claims more would be right for ever.
const CLOCK_ERROR: Duration = Duration::from_secs(86_400);

/// All that a peer knows of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Value {
    pub versions: Versions,
    state: Vec<u8>,
    seen: Seen,
    pub queue: Vec<Pending>,
    errands: Errands,
}

/// Links of pages that are done, by the place that the page had.
pub(crate) type Errands = Vec<(Slot, Vec<Link>)>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    Reduced(ReducedSeen),
    /// After many journeys, or with very many URLs.
    Whole(Vec<UrlHash>),
}

/// A value that was checked: nothing in it is about another domain or can silence this one.
#[derive(Debug)]
pub(crate) struct Sound {
    pub state: DomainState,
    /// What is to be logged.
    pub seen: Vec<UrlHash>,
    pub queue: Vec<Pending>,
    pub errands: Errands,
}

/// Why a stranger's value is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsound {
    #[error("a URL in its queue belongs to another domain")]
    OtherDomain,
    #[error("its state cannot be read")]
    State,
    #[error("it was changed more than a day from now")]
    Tenure,
    #[error("its seen log has made too many journeys")]
    Reductions,
    #[error(transparent)]
    Seen(#[from] InvalidSeen),
}

impl Value {
    /// What the store knows; none if the domain is unknown. The versions are read first: what
    /// changes meanwhile comes again with the next delta.
    pub(crate) fn read(store: &Store, domain: &Domain) -> Result<Option<Self>, ReadError> {
        let Some(bytes) = store.domain(domain)? else {
            return Ok(None);
        };
        let state = decode_state(domain, &bytes);
        let hashes = store.seen(domain).collect::<Result<Vec<_>, _>>()?;
        let reduced = state
            .reductions
            .has_room()
            .then(|| ReducedSeen::pack(hashes.iter().copied()))
            .flatten();
        let seen = reduced.map_or(Seen::Whole(hashes), Seen::Reduced);
        let queue = store.pending(domain, None, MAX_QUEUE)?;
        let errands = store
            .errands_of(domain)?
            .into_iter()
            .map(|errand| (errand.slot, errand.links))
            .collect();
        Ok(Some(Value {
            versions: state.versions.clone(),
            state: encode_state(&state),
            seen,
            queue,
            errands,
        }))
    }

    /// Checks it as a stranger's.
    pub(crate) fn check(self, domain: &Domain, now: Time) -> Result<Sound, Unsound> {
        if self.versions.latest().begun() > now + CLOCK_ERROR {
            return Err(Unsound::Tenure);
        }
        if self
            .queue
            .iter()
            .any(|pending| pending.url.host() != domain.as_str())
        {
            return Err(Unsound::OtherDomain);
        }
        let mut state: DomainState =
            postcard::from_bytes(&self.state).map_err(|_| Unsound::State)?;
        let (seen, reductions) = self.seen.unpack(std::mem::take(&mut state.reductions))?;
        if !reductions.is_sound() {
            return Err(Unsound::Reductions);
        }
        state.versions = self.versions;
        state.reductions = reductions;
        state.counters.queued = self.queue.len() as u64;
        state.counters.admitted = state.counters.admitted.max(seen.len() as u64);
        Ok(Sound {
            state,
            seen,
            queue: self.queue,
            errands: self.errands,
        })
    }

    /// Bytes that stand for seen URLs.
    #[cfg(test)]
    pub(crate) fn seen_bytes(&self) -> usize {
        super::wire::plain_bytes(&self.seen)
    }
}

impl Seen {
    fn unpack(self, reductions: Reductions) -> Result<(Vec<UrlHash>, Reductions), InvalidSeen> {
        match self {
            Seen::Reduced(reduced) => {
                Ok((reduced.unpack()?, reductions.after(reduced.reduction())))
            }
            Seen::Whole(hashes) => Ok((hashes, reductions)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{PageUrl, Target};
    use apoidea_store::Commit;

    #[test]
    fn a_value_moves_with_few_bytes_and_knows_the_same_urls() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let domain: Domain = "a.test".parse().unwrap();
        let url = |i: u32| PageUrl::parse(&format!("http://a.test/{i}")).unwrap();
        let mut commit = Commit::new();
        commit.put_domain(&domain, encode_state(&DomainState::default()));
        commit.append_seen(
            &domain,
            &(0..1000).map(|i| url(i).hash()).collect::<Vec<_>>(),
        );
        let slot = Slot {
            rank: 0,
            sequence: 7,
        };
        let pending = Pending {
            slot,
            url: url(3),
            depth: 0,
            target: Target::Page,
            attempts: 0,
            not_before: Time::ZERO,
        };
        commit.put_pending(&domain, &pending);
        store.commit(&commit).unwrap();
        let value = Value::read(&store, &domain).unwrap().unwrap();
        assert!(
            value.seen_bytes() < 3500,
            "{} bytes for 1000 URLs",
            value.seen_bytes()
        );
        let sound = value.clone().check(&domain, Time::ZERO).unwrap();
        let knows = |i| {
            sound
                .state
                .reductions
                .forms(url(i).hash())
                .any(|form| sound.seen.contains(&form))
        };
        assert!((0..1000).all(knows) && !(1000..2000).any(knows));
        assert_eq!(sound.queue, [pending]);
        assert!(matches!(
            value.check(&"b.test".parse().unwrap(), Time::ZERO),
            Err(Unsound::OtherDomain)
        ));
    }
}
