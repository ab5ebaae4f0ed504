//! Replicas that a hostile peer has made up, for those who fetch them from it.

use super::{
    Hostile, Part,
    messages::{self, OFFER, OfferAnswer, Parcel, REPLICAS, Replica, State, Versions},
    now,
};
use apoidea_model::{Domain, PageUrl, PeerId, Pending};
use apoidea_overlay::RequestError;
use futures::future::{FutureExt, ready};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

/// Names in one offer, as many as a peer fetches at a time.
const AT_ONCE: usize = 64;
/// Bytes that fit into a frame.
const FRAME_BYTES: usize = 56 * 1024;
/// A replica from the near future is later than every honest one, and not yet refused.
const AHEAD: Duration = Duration::from_secs(3600);

/// Forged replicas by domain; clones share them.
#[derive(Clone, Default)]
pub struct Forgery(Arc<Mutex<BTreeMap<Domain, Replica>>>);

impl Forgery {
    /// Makes a replica of a domain up that contains `known`, and one change more.
    pub fn forge(&self, domain: &Domain, known: &Versions, state: State, queue: Vec<Pending>) {
        let versions = messages::with_change(known, messages::tenure(now() + AHEAD));
        let replica = Replica::forged(versions, state, queue);
        self.0.lock().unwrap().insert(domain.clone(), replica);
    }

    /// The same with these pages waiting, of a domain that nobody else knows.
    pub fn forge_queue(&self, domain: &Domain, mut state: State, pages: &[PageUrl]) {
        state.counters.queued = pages.len() as u64;
        let queue = pages.iter().zip(1..);
        let queue = queue.map(|(page, sequence)| messages::waiting(page, sequence));
        self.forge(domain, &Versions::new(), state, queue.collect());
    }

    /// A peer that gives these replicas to everybody who asks for them, and is careless otherwise.
    pub fn part(&self) -> Part {
        let forgery = self.clone();
        Part::careless_but(move |_, kind, body| {
            let give = || {
                let domains: Vec<Domain> = messages::decode(body)?;
                Some(Ok(messages::encode(&forgery.parcels(domains))))
            };
            ready((kind == REPLICAS).then(give).flatten()).boxed()
        })
    }

    /// As many as fit into a frame.
    fn parcels(&self, domains: Vec<Domain>) -> Vec<Parcel> {
        let forged = self.0.lock().unwrap();
        let parcel = |domain: Domain| match forged.get(&domain) {
            Some(replica) => Parcel::Whole(domain, replica.clone()),
            None => Parcel::Unknown(domain),
        };
        let mut room = FRAME_BYTES;
        let parcels = domains.into_iter().map(parcel);
        let mut fits = |parcel: &Parcel| {
            let bytes = messages::encode(parcel).len();
            room.checked_sub(bytes).map(|rest| room = rest).is_some()
        };
        parcels.take_while(|parcel| fits(parcel)).collect()
    }

    /// Offers all of them to a peer; gives the number that it wants, or its refusal.
    pub async fn offer(&self, hostile: &Hostile, to: PeerId) -> Result<usize, RequestError> {
        let offers: Vec<(Domain, Versions)> = {
            let forged = self.0.lock().unwrap();
            let offers = forged.iter();
            offers
                .map(|(domain, replica)| (domain.clone(), replica.versions.clone()))
                .collect()
        };
        let mut wanted = 0;
        for offers in offers.chunks(AT_ONCE) {
            let answers: Vec<OfferAnswer> = hostile.ask(to, OFFER, &offers).await?;
            wanted += answers
                .iter()
                .filter(|answer| **answer == OfferAnswer::Wanted)
                .count();
        }
        Ok(wanted)
    }
}
