//! The links in this peer's replicas: a holder's part in checking an owner.
//!
//! An owner acknowledges links when a replica has them. A holder that lacks some asks the owner for
//! its own replica. Links that are not even there were dropped.

use crate::{
    clock::unblocked,
    lock::lock,
    state_codec::decode_state,
    swarm::{
        REPLICATION_FACTOR,
        orders::Orders,
        replicas::puller,
        trust::{book::TrustBook, message::CheckAnswer, voucher::Voucher},
    },
};
use apoidea_model::{Domain, PeerId, UrlHash};
use apoidea_overlay::Overlay;
use apoidea_store::{ReadError, Store};
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    sync::Semaphore,
    time::{self, Instant},
};

/// The time for an owner to give its replicas.
const WITHIN: Duration = Duration::from_secs(4);
/// An owner that gives nothing for so long, while it acknowledges links, has nothing.
const PATIENCE: Duration = Duration::from_secs(5);
/// Checks at a time: each may read a seen log.
const AT_ONCE: usize = 4;
/// Domains of one check that the owner is asked for.
const MAX_DOMAINS: usize = 16;
/// Owners that gave nothing when they were asked.
const MAX_WITHHELD: usize = 1024;

/// Looks for links in this peer's replicas.
pub(crate) struct HeldLinks {
    overlay: Arc<dyn Overlay>,
    store: Store,
    orders: Orders,
    book: Arc<TrustBook>,
    turns: Semaphore,
    /// Since when an owner gives no replicas.
    withheld: Mutex<HashMap<PeerId, Instant>>,
}

impl HeldLinks {
    pub(crate) fn new(
        overlay: Arc<dyn Overlay>,
        store: Store,
        orders: Orders,
        book: Arc<TrustBook>,
    ) -> Self {
        HeldLinks {
            overlay,
            store,
            orders,
            book,
            turns: Semaphore::new(AT_ONCE),
            withheld: Mutex::default(),
        }
    }

    /// Looks for the links that an owner has taken.
    pub(crate) async fn look(&self, voucher: &Voucher) -> CheckAnswer {
        let (owner, wanted) = (voucher.owner(), self.held(voucher));
        if self.book.is_distrusted(owner) {
            // Found out before. Its domains have another owner by now, who was sent its links.
            return CheckAnswer::Missing(voucher.count());
        }
        if wanted.is_empty() {
            return CheckAnswer::Elsewhere;
        }
        let Ok(_turn) = self.turns.acquire().await else {
            return CheckAnswer::Unsettled;
        };
        let Ok(missing) = self.missing(wanted.clone()).await else {
            return CheckAnswer::Unsettled;
        };
        if missing.is_empty() {
            lock(&self.withheld).remove(&owner);
            return CheckAnswer::Missing(0);
        }
        let domains = missing.keys().take(MAX_DOMAINS).cloned().collect();
        let pull = puller::pull(self.overlay.as_ref(), &self.orders, owner, domains);
        let is_given = matches!(time::timeout(WITHIN, pull).await, Ok(Ok(())));
        if !self.is_settled(owner, is_given) {
            return CheckAnswer::Unsettled;
        }
        match self.missing(wanted).await {
            Ok(missing) => CheckAnswer::Missing(missing.values().sum()),
            Err(_) => CheckAnswer::Unsettled,
        }
    }

    /// The links that this peer should hold, since it comes right after their owner.
    fn held(&self, voucher: &Voucher) -> Vec<(Domain, Vec<UrlHash>)> {
        let (me, owner) = (self.overlay.me(), voucher.owner());
        let is_held = |domain: &Domain| {
            let near = self.overlay.near(domain.key(), REPLICATION_FACTOR);
            near.first() == Some(&owner) && near[1..].contains(&me)
        };
        let held = voucher.links().iter().filter(|(domain, _)| is_held(domain));
        let hashes = held.map(|(domain, links)| {
            let hashes = links.0.iter().copied().map(UrlHash).collect();
            (domain.clone(), hashes)
        });
        hashes.collect()
    }

    /// Has the owner had its say?
    fn is_settled(&self, owner: PeerId, is_given: bool) -> bool {
        let mut withheld = lock(&self.withheld);
        if is_given {
            withheld.remove(&owner);
            return true;
        }
        if withheld.len() >= MAX_WITHHELD {
            withheld.clear();
        }
        let since = withheld.entry(owner).or_insert_with(Instant::now);
        since.elapsed() >= PATIENCE
    }

    /// The number of links of each domain that the replicas here lack.
    async fn missing(
        &self,
        wanted: Vec<(Domain, Vec<UrlHash>)>,
    ) -> Result<BTreeMap<Domain, u32>, ReadError> {
        let store = self.store.clone();
        let count = move || {
            let mut missing = BTreeMap::new();
            for (domain, hashes) in wanted {
                let count = missing_of(&store, &domain, &hashes)?;
                if count > 0 {
                    missing.insert(domain, count);
                }
            }
            Ok(missing)
        };
        unblocked(count).await
    }
}

/// The number of links that a replica lacks.
fn missing_of(store: &Store, domain: &Domain, hashes: &[UrlHash]) -> Result<u32, ReadError> {
    let Some(state) = store.domain(domain)? else {
        return Ok(u32::try_from(hashes.len()).unwrap_or(u32::MAX));
    };
    let reductions = decode_state(domain, &state).reductions;
    // Each form of a link, and the place of the link.
    let mut forms: HashMap<UrlHash, usize> = HashMap::new();
    for (place, hash) in hashes.iter().enumerate() {
        reductions
            .forms(*hash)
            .for_each(|form| _ = forms.insert(form, place));
    }
    let mut missing: HashSet<usize> = (0..hashes.len()).collect();
    for seen in store.seen(domain) {
        if let Some(place) = forms.get(&seen?) {
            missing.remove(place);
            if missing.is_empty() {
                break;
            }
        }
    }
    Ok(u32::try_from(missing.len()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{
        replicas::message::{Parcel, REPLICAS},
        testing::{TestPeer, link, obedient_crawler, peer, signer_at, versions},
        trust::voucher::{Seal, fingerprints},
        wire,
    };
    use apoidea_crawl::Matter;
    use apoidea_overlay::{RequestError, Signer};
    use apoidea_store::Commit;

    /// A holder, the owner right before it, and a domain of that owner.
    struct Fixture {
        me: TestPeer,
        held: HeldLinks,
        owner: Signer,
        domain: Domain,
    }

    fn fixture() -> Fixture {
        let owner = signer_at(0x40);
        let (me, inbox) = TestPeer::new([peer(0x60), owner.me(), peer(0x80), peer(0xa0)]);
        obedient_crawler(inbox);
        let held = me.held_links();
        let domain = me.ring.domain_of(owner.me());
        Fixture {
            me,
            held,
            owner,
            domain,
        }
    }

    impl Fixture {
        fn voucher(&self, pages: &[u64]) -> Voucher {
            let urls: Vec<_> = pages
                .iter()
                .map(|page| link(&self.domain, *page).url)
                .collect();
            let links = fingerprints(urls.iter());
            let sender = signer_at(1);
            let seal = Seal::set(&self.owner, sender.me(), &links);
            Voucher::new(self.owner.me(), links, seal, &sender).unwrap()
        }

        fn hold(&self, pages: &[u64]) {
            let hash = |page: &u64| link(&self.domain, *page).url.hash();
            let hashes: Vec<UrlHash> = pages.iter().map(hash).collect();
            self.me
                .hold(&self.domain, &versions(&[(self.owner.me(), 1)]), 0);
            let mut commit = Commit::new();
            commit.append_seen(&self.domain, &hashes);
            self.me.store.apply(&commit).unwrap();
        }
    }

    #[tokio::test]
    async fn links_that_are_held_are_not_asked_for() {
        let fixture = fixture();
        fixture.hold(&[1, 2, 3]);
        let answer = fixture.held.look(&fixture.voucher(&[1, 3])).await;
        assert_eq!(answer, CheckAnswer::Missing(0));
        assert!(fixture.me.ring.asked(REPLICAS).is_empty());
    }

    #[tokio::test]
    async fn links_that_the_owner_has_not_either_are_missing() {
        let fixture = fixture();
        fixture.hold(&[1]);
        let unknown = wire::encode(&vec![Parcel::Unknown(fixture.domain.clone())]);
        fixture
            .me
            .ring
            .answer_with(move |_, _, _| Ok(unknown.clone()));
        let answer = fixture.held.look(&fixture.voucher(&[1, 2, 3])).await;
        assert_eq!(answer, CheckAnswer::Missing(2));
        assert_eq!(fixture.me.ring.asked(REPLICAS), [fixture.owner.me()]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_cannot_be_asked_has_a_while() {
        let fixture = fixture();
        let refuse = |_, _, _| Err(RequestError::Unreachable(String::new()));
        fixture.me.ring.answer_with(refuse);
        let voucher = fixture.voucher(&[1]);
        assert_eq!(fixture.held.look(&voucher).await, CheckAnswer::Unsettled);
        time::advance(PATIENCE).await;
        assert_eq!(fixture.held.look(&voucher).await, CheckAnswer::Missing(1));
    }

    #[tokio::test]
    async fn an_owner_that_was_found_out_is_not_asked_again() {
        let fixture = fixture();
        fixture.hold(&[1, 2]);
        let owner = fixture.owner.me();
        fixture.held.book.note(owner, Matter::Links, 5, 5);
        let answer = fixture.held.look(&fixture.voucher(&[1, 2])).await;
        assert_eq!(answer, CheckAnswer::Missing(2));
        assert!(fixture.me.ring.asked(REPLICAS).is_empty());
    }

    #[tokio::test]
    async fn a_peer_that_is_not_next_to_the_owner_says_nothing() {
        let fixture = fixture();
        let mut members = fixture.me.ring.members();
        members.retain(|member| *member != fixture.owner.me());
        fixture.me.ring.set_members(members);
        let answer = fixture.held.look(&fixture.voucher(&[1])).await;
        assert_eq!(answer, CheckAnswer::Elsewhere);
    }
}
