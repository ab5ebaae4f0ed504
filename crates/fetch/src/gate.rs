//! The last word on politeness: every request passes here on its way out.
//!
//! The frontier spaces the requests it plans. Requests that follow from an answer, such as the
//! redirects of a robots.txt to another host, are not planned by it; here they wait like all
//! others, so that no host and no address is ever asked by two requests at once or sooner than the
//! floor allows.

use apoidea_model::Domain;
use std::{
    collections::HashMap,
    hash::Hash,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedMutexGuard},
    time::{Instant, sleep_until},
};

/// Entries kept before those that no longer matter are swept out.
const SWEEP_AT: usize = 4096;

/// The gate.
#[derive(Debug, Default)]
pub struct Gate {
    hosts: Turnstiles<Domain>,
    addresses: Turnstiles<IpAddr>,
}

/// The least time between the end of one request and the start of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gaps {
    /// For one host.
    pub host: Duration,
    /// For one address, between the starts of two requests.
    pub address: Duration,
}

/// The right to have one request of a host under way; dropping it lets the next one in after the
/// gap.
#[derive(Debug)]
pub struct Pass {
    host: OwnedMutexGuard<Instant>,
    gap: Duration,
}

impl Gate {
    /// Waits until this host and this address may be asked.
    pub async fn enter(&self, domain: &Domain, address: IpAddr, gaps: Gaps) -> Pass {
        let host = self.hosts.turnstile(domain).lock_owned().await;
        sleep_until(*host).await;
        let mut address = self.addresses.turnstile(&address).lock_owned().await;
        sleep_until(*address).await;
        *address = Instant::now() + gaps.address;
        Pass {
            host,
            gap: gaps.host,
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        *self.host = Instant::now() + self.gap;
    }
}

/// When each may next be passed, and a queue before each.
#[derive(Debug)]
struct Turnstiles<K>(Mutex<HashMap<K, Arc<AsyncMutex<Instant>>>>);

impl<K> Default for Turnstiles<K> {
    fn default() -> Self {
        Turnstiles(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> Turnstiles<K> {
    fn turnstile(&self, key: &K) -> Arc<AsyncMutex<Instant>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= SWEEP_AT && !all.contains_key(key) {
            let now = Instant::now();
            all.retain(|_, turnstile| {
                turnstile
                    .try_lock()
                    .map_or(true, |free_from| *free_from > now)
            });
        }
        all.entry(key.clone())
            .or_insert_with(|| Arc::new(AsyncMutex::new(Instant::now())))
            .clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GAPS: Gaps = Gaps {
        host: Duration::from_secs(5),
        address: Duration::from_secs(2),
    };

    fn address(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[tokio::test(start_paused = true)]
    async fn one_host_is_asked_once_at_a_time_and_not_sooner_than_its_gap() {
        let (gate, start) = (Gate::default(), Instant::now());
        let domain: Domain = "a.test".parse().unwrap();
        let pass = gate.enter(&domain, address(1), GAPS).await;
        assert_eq!(start.elapsed(), Duration::ZERO);
        tokio::time::advance(Duration::from_secs(3)).await;
        drop(pass);
        let _pass = gate.enter(&domain, address(2), GAPS).await;
        assert_eq!(start.elapsed().as_secs(), 8);
        let second = gate.enter(&domain, address(3), GAPS);
        assert!(
            tokio::time::timeout(Duration::from_secs(100), second)
                .await
                .is_err(),
            "the first is under way"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn hosts_on_one_address_share_its_clock() {
        let (gate, start) = (Gate::default(), Instant::now());
        for host in ["a.test", "b.test", "c.test"] {
            gate.enter(&host.parse().unwrap(), address(1), GAPS).await;
        }
        assert_eq!(start.elapsed().as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn entries_that_no_longer_matter_are_swept_out() {
        let gate = Gate::default();
        for i in 0..3 * SWEEP_AT as u32 {
            let domain = format!("h{i}.test").parse().unwrap();
            gate.enter(
                &domain,
                IpAddr::from(i.to_be_bytes()),
                Gaps {
                    host: Duration::ZERO,
                    address: Duration::ZERO,
                },
            )
            .await;
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(gate.hosts.0.lock().unwrap().len() <= SWEEP_AT);
    }
}
