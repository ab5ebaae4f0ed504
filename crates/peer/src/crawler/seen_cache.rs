//! The seen-filters of the domains in use; all others are on disk as logs of fingerprints, and
//! rebuilt when needed.

use crate::config::CrawlConfig;
use apoidea_crawl::{OneIn, Reductions, SeenFilter};
use apoidea_model::Domain;
use apoidea_store::{ReadError, Store};
use std::collections::{BTreeMap, HashMap};

/// Filters in memory, bounded by their bytes.
pub(crate) struct SeenCache {
    store: Store,
    rate: OneIn,
    budget_bytes: usize,
    used_bytes: usize,
    filters: HashMap<Domain, Cached>,
    /// By time of last use, the coldest first.
    by_use: BTreeMap<u64, Domain>,
    clock: u64,
}

struct Cached {
    filter: SeenFilter,
    used: u64,
    bytes: usize,
}

impl SeenCache {
    pub(crate) fn new(store: Store, config: &CrawlConfig) -> Self {
        SeenCache {
            store,
            rate: OneIn::new(config.seen_false_positives.value()),
            budget_bytes: usize::try_from(config.seen_memory_mib.mib_as_bytes())
                .unwrap_or(usize::MAX),
            used_bytes: 0,
            filters: HashMap::new(),
            by_use: BTreeMap::new(),
            clock: 0,
        }
    }

    /// The filter of a domain that has admitted so many URLs, and whose log has made these
    /// journeys.
    pub(crate) fn filter(
        &mut self,
        domain: &Domain,
        admitted: u64,
        reductions: &Reductions,
    ) -> Result<&mut SeenFilter, ReadError> {
        if !self.filters.contains_key(domain) {
            let filter = if admitted == 0 {
                SeenFilter::new(self.rate)
            } else {
                self.rebuild(domain, admitted, reductions.clone())?
            };
            self.insert(domain, filter);
            self.make_room(domain);
        }
        self.clock += 1;
        let cached = self
            .filters
            .get_mut(domain)
            .expect("inserted above if it was not there");
        self.by_use.remove(&cached.used);
        self.by_use.insert(self.clock, domain.clone());
        cached.used = self.clock;
        Ok(&mut cached.filter)
    }

    /// After URLs were added, and are in the store: lets the filter grow, and cold ones go.
    pub(crate) fn grow(&mut self, domain: &Domain) -> Result<(), ReadError> {
        let growing = self
            .filters
            .get(domain)
            .filter(|cached| cached.filter.needs_growth());
        let known = growing.map(|cached| (cached.filter.len(), cached.filter.reductions().clone()));
        if let Some((expected, reductions)) = known {
            let filter = self.rebuild(domain, expected, reductions)?;
            self.remove(domain);
            self.insert(domain, filter);
        }
        self.make_room(domain);
        Ok(())
    }

    /// Lets cold filters go, but not that of the domain in use.
    fn make_room(&mut self, in_use: &Domain) {
        while self.used_bytes > self.budget_bytes {
            let mut by_use = self.by_use.values();
            let Some(coldest) = by_use.find(|domain| *domain != in_use).cloned() else {
                return;
            };
            self.remove(&coldest);
        }
    }

    /// Changes how much memory the filters may take; cold ones go as others are used.
    pub(crate) fn set_budget(&mut self, bytes: usize) {
        self.budget_bytes = bytes;
    }

    /// Drops a filter that knows of URLs which did not reach the store.
    pub(crate) fn forget(&mut self, domain: &Domain) {
        self.remove(domain);
    }

    /// A URL is asked for in every form it may be known in, so each form must be mistaken the less
    /// often.
    fn rebuild(
        &self,
        domain: &Domain,
        expected: u64,
        reductions: Reductions,
    ) -> Result<SeenFilter, ReadError> {
        let mut failed = None;
        let rate = self.rate.divided_by(reductions.form_count());
        let hashes = self
            .store
            .seen(domain)
            .map_while(|hash| hash.map_err(|error| failed = Some(error)).ok());
        let filter = SeenFilter::build(rate, expected, hashes).asked_as(reductions);
        failed.map_or(Ok(filter), Err)
    }

    fn insert(&mut self, domain: &Domain, filter: SeenFilter) {
        self.clock += 1;
        let bytes = filter.memory_bytes() + 2 * domain.as_str().len() + size_of::<Cached>();
        self.used_bytes += bytes;
        self.by_use.insert(self.clock, domain.clone());
        self.filters.insert(
            domain.clone(),
            Cached {
                filter,
                used: self.clock,
                bytes,
            },
        );
    }

    fn remove(&mut self, domain: &Domain) {
        if let Some(cached) = self.filters.remove(domain) {
            self.by_use.remove(&cached.used);
            self.used_bytes -= cached.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use apoidea_crawl::Sight;
    use apoidea_model::UrlHash;
    use apoidea_store::Commit;

    #[test]
    fn filters_survive_growth_and_eviction() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let config = Config::default()
            .with("crawl.seen_memory_mib=1")
            .unwrap()
            .crawl;
        let mut cache = SeenCache::new(store.clone(), &config);
        let domains: Vec<Domain> = (0..40)
            .map(|i| format!("h{i}.test").parse().unwrap())
            .collect();
        for round in 0..5u64 {
            for domain in &domains {
                let hashes: Vec<UrlHash> = (0..4000)
                    .map(|i| UrlHash((round * 4000 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
                    .collect();
                let mut new = 0;
                for portion in hashes.chunks(50) {
                    let filter = cache
                        .filter(domain, round * 4000, &Reductions::default())
                        .unwrap();
                    assert!(filter.room() > 0, "it grew in time");
                    new += portion
                        .iter()
                        .filter(|&&hash| filter.insert(hash) == Sight::New)
                        .count();
                    let mut commit = Commit::new();
                    commit.append_seen(domain, portion);
                    store.apply(&commit).unwrap();
                    cache.grow(domain).unwrap();
                    assert!(cache.used_bytes <= cache.budget_bytes);
                }
                assert!(new >= 3998, "{new} of 4000 are new");
            }
        }
        let filter = cache
            .filter(&domains[0], 20_000, &Reductions::default())
            .unwrap();
        assert!(
            (0..20_000u64).all(|i| filter.contains(UrlHash(i.wrapping_mul(0x9e37_79b9_7f4a_7c15))))
        );
    }
}
