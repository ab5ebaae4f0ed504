//! All that a peer knows of a domain. A replica moves to another peer as a whole.

use crate::{state_codec::decode_state, swarm::replicas::known_pages::SentPage};
use apoidea_crawl::{DomainState, InvalidSeen, PageLinks, ReducedSeen, Reductions, Versions};
use apoidea_model::{Domain, Pending, Time, UrlHash};
use apoidea_store::{ReadError, Store};
use serde::{Deserialize, Serialize};

/// URLs that wait at one domain and are moved: as many as its queue may hold by default.
const MAX_QUEUE: usize = 100_000;
/// Pages that are done and whose links are not all with their owners: a peer that has more of them
/// fetches nothing.
const MAX_ERRANDS: usize = 100_000;
/// Records of pages that travel with a replica.
const MAX_PAGES: usize = 100;

/// All that a peer knows of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Replica {
    pub versions: Versions,
    /// The versions of the asker's own replica that the sender has heard.
    pub heard: Versions,
    state: Vec<u8>,
    seen: Seen,
    pub queue: Vec<Pending>,
    errands: Errands,
    /// The records of its pages, unless they are many.
    pub pages: Vec<SentPage>,
    /// Whether they have to be fetched apart.
    pub pages_apart: bool,
}

/// Links of pages that are done and not yet with their owners.
pub(crate) type Errands = Vec<PageLinks>;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Seen {
    Reduced(ReducedSeen),
    /// After many journeys, or with very many URLs.
    Whole(Vec<UrlHash>),
}

/// A replica that was checked: nothing in it is about another domain or can silence this one.
#[derive(Debug)]
pub(crate) struct Sound {
    pub state: DomainState,
    /// The URLs to be logged.
    pub seen: Vec<UrlHash>,
    pub queue: Vec<Pending>,
    pub errands: Errands,
}

/// Why a stranger's replica is not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsound {
    #[error("a URL in its queue belongs to another domain")]
    OtherDomain,
    #[error("more URLs wait in it than a queue holds")]
    Queue,
    #[error("it has more errands than a peer keeps")]
    Errands,
    #[error("more records of pages are in it than travel with a replica")]
    Pages,
    #[error("its state cannot be read")]
    State,
    #[error("it was changed more than a day from now")]
    Tenure,
    #[error("its seen log has made too many journeys")]
    Reductions,
    #[error(transparent)]
    Seen(#[from] InvalidSeen),
}

impl Replica {
    /// The replica in the store; none if the domain is unknown. The versions are read first: a
    /// change that comes meanwhile comes again with the next delta.
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
            .map(|errand| PageLinks {
                slot: errand.page.slot,
                crawl: errand.crawl,
                links: errand.links,
            })
            .collect();
        let mut records = store.pages(domain, None, MAX_PAGES + 1)?;
        let pages_apart = records.len() > MAX_PAGES;
        if pages_apart {
            records.clear();
        }
        Ok(Some(Replica {
            versions: state.versions.clone(),
            heard: Versions::default(),
            state: state.without_robots().encode(),
            seen,
            queue,
            errands,
            pages: records.iter().map(SentPage::of).collect(),
            pages_apart,
        }))
    }

    /// Checks it as a stranger's.
    pub(crate) fn check(self, domain: &Domain, now: Time) -> Result<Sound, Unsound> {
        if self.versions.latest().is_in_the_future(now) {
            return Err(Unsound::Tenure);
        }
        if self.queue.len() > MAX_QUEUE {
            return Err(Unsound::Queue);
        }
        if self.errands.len() > MAX_ERRANDS {
            return Err(Unsound::Errands);
        }
        if self.pages.len() > MAX_PAGES {
            return Err(Unsound::Pages);
        }
        if self
            .queue
            .iter()
            .any(|pending| pending.url.host() != domain.as_str())
        {
            return Err(Unsound::OtherDomain);
        }
        let state = DomainState::decode(&self.state).map_err(|_| Unsound::State)?;
        let mut state = state.into_advice(now);
        let (seen, reductions) = self.seen.unpack(std::mem::take(&mut state.reductions))?;
        if !reductions.is_sound() {
            return Err(Unsound::Reductions);
        }
        state.versions = self.versions;
        state.reductions = reductions;
        state.counters.queued = self.queue.len() as u64;
        // The filter is sized by it, so it is counted and not believed.
        state.counters.admitted = seen.len() as u64;
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
        crate::swarm::wire::plain_bytes(&self.seen)
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
    use crate::swarm::testing::{TestPeer, peer, versions};
    use apoidea_crawl::Tenure;
    use apoidea_model::{CrawlId, Link, PageUrl, Slot, Target};
    use apoidea_store::Commit;

    #[test]
    fn a_replica_moves_with_few_bytes_and_knows_the_same_urls() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let domain: Domain = "a.test".parse().unwrap();
        let url = |i: u32| PageUrl::parse(&format!("http://a.test/{i}")).unwrap();
        let mut commit = Commit::new();
        commit.put_domain(&domain, DomainState::default().encode());
        commit.append_seen(
            &domain,
            &(0..1000).map(|i| url(i).hash()).collect::<Vec<_>>(),
        );
        let slot = Slot {
            rank: 0,
            sequence: 7,
        };
        let link = Link {
            url: url(3),
            depth: 0,
            target: Target::Page,
        };
        let pending = Pending::admitted(link, slot, CrawlId::OPEN);
        commit.put_pending(&domain, &pending);
        store.commit(&commit).unwrap();
        let replica = Replica::read(&store, &domain).unwrap().unwrap();
        assert!(
            replica.seen_bytes() < 3500,
            "{} bytes for 1000 URLs",
            replica.seen_bytes()
        );
        let sound = replica.clone().check(&domain, Time::ZERO).unwrap();
        let knows = |i| {
            sound
                .state
                .reductions
                .forms(url(i).hash())
                .any(|form| sound.seen.contains(&form))
        };
        assert!((0..1000).all(knows) && !(1000..2000).any(knows));
        assert_eq!(sound.queue, [pending]);
    }

    /// A stranger's replica with one URL in its queue.
    fn stranger() -> (Domain, Replica) {
        let (owner, _inbox) = TestPeer::owner([peer(1)]);
        let domain = owner.ring.domain_of(peer(1));
        owner.hold(&domain, &versions(&[(peer(1), 2)]), 1);
        let replica = Replica::read(&owner.store, &domain).unwrap().unwrap();
        (domain, replica)
    }

    #[test]
    fn a_replica_with_a_url_of_another_domain_is_not_taken() {
        let (domain, replica) = stranger();
        assert!(replica.clone().check(&domain, Time::from_millis(9)).is_ok());
        let other = "other.test".parse().unwrap();
        let checked = replica.check(&other, Time::from_millis(9));
        assert!(matches!(checked, Err(Unsound::OtherDomain)));
    }

    #[test]
    fn a_replica_from_far_in_the_future_is_not_taken() {
        let (domain, mut replica) = stranger();
        let now = Time::from_millis(9);
        let changed = |at| {
            let mut versions = Versions::default();
            versions.advance(Tenure::begin(peer(1), at, Tenure::default()));
            versions
        };
        replica.versions = changed(now);
        assert!(replica.clone().check(&domain, now).is_ok());
        let year_two_million = Time::from_millis(63_000_000_000_000_000);
        replica.versions = changed(year_two_million);
        assert!(matches!(replica.check(&domain, now), Err(Unsound::Tenure)));
    }

    #[test]
    fn a_replica_whose_state_is_damaged_is_not_taken() {
        let (domain, mut replica) = stranger();
        replica.state.truncate(2);
        let checked = replica.check(&domain, Time::from_millis(9));
        assert!(matches!(checked, Err(Unsound::State)));
    }

    #[test]
    fn a_stranger_does_not_say_how_many_urls_wait() {
        let (domain, mut replica) = stranger();
        let mut state = DomainState::default();
        state.counters.queued = 9_999;
        replica.state = state.encode();
        let sound = replica.check(&domain, Time::from_millis(9)).unwrap();
        assert_eq!(sound.state.counters.queued, 1);
        assert_eq!(sound.state.versions, versions(&[(peer(1), 2)]));
    }

    #[test]
    fn an_unknown_domain_has_no_replica() {
        let (me, _inbox) = TestPeer::owner([peer(1)]);
        let domain = me.ring.domain_of(peer(1));
        assert!(Replica::read(&me.store, &domain).unwrap().is_none());
    }
}
