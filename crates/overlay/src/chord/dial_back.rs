//! Finding out whether others can reach this peer: a third peer, which it never called, dials it.
//!
//! The asker asks a member that it has a connection with (the *usher*). The usher asks a neighbour
//! of its own on the ring (the *caller*), and the caller dials the asker. The caller expects the
//! asker's key, so the asker needs no secret to know the call again: a connection from an address
//! that it has not spoken with is the proof, and it is the asker who counts those.
//!
//! Nobody can be aimed at others this way. The usher passes on only the address that the asker has
//! proven to it; the asker chooses nothing but the port. A caller obeys only its own neighbours on
//! the ring, and nobody can choose its place there. It dials one address of a neighbourhood in a
//! minute, and one in ten seconds in all.

use super::RingStanding;
use crate::{AddressPolicy, Kind, Refusal, RequestError, Transport, lock::lock};
use apoidea_chord::{Membership, Neighbourhood, Prefix};
use apoidea_model::PeerId;
use bytes::Bytes;
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::watch, time};

/// Time between two calls that one caller makes.
const CALL_EVERY: Duration = Duration::from_secs(10);
/// Time between two calls to one neighbourhood, and between two questions of one asker.
const AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Neighbourhoods and askers remembered at most.
const MOST: usize = 1024;
/// Callers that an usher asks for one asker.
const CALLERS: usize = 3;
/// Ushers asked in one trial, one after the other.
const USHERS: usize = 3;
/// Ushers whose callers got no answer, until this peer counts as not reachable.
const FAILURES: usize = 2;
/// Strangers of so many regions must have arrived; one will do where few members are known.
const ARRIVALS: usize = 2;
/// Members of a network in which one arrival is enough.
const FEW: f64 = 8.0;
/// Pause between two looks for a first connection.
const FIRST_LOOKS: Duration = Duration::from_millis(500);
/// Pause between trials while nothing is known, and afterwards.
const TRY_EVERY: Duration = Duration::from_secs(60);
const CHECK_EVERY: Duration = Duration::from_secs(3600);

/// Whether others can reach this peer by themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "kebab-case")]
pub enum Reachability {
    /// Peers that it never called have reached it.
    Open,
    /// Nobody has tried yet.
    #[default]
    Unknown,
    /// Others have tried in vain: a router or a firewall is in the way.
    NotReachable,
}

/// A request about reachability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum DialBack {
    /// From the asker to the usher: have me called at this port.
    CallMe { port: u16 },
    /// From the usher to the caller: call this peer there.
    Call { peer: PeerId, address: SocketAddr },
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Called {
    /// The asker has answered.
    Answered,
    /// It has not.
    InVain,
    /// Nobody has tried.
    NotTried,
}

/// Answers and asks such requests.
pub(crate) struct Switchboard {
    neighbourhood: watch::Receiver<Arc<Neighbourhood>>,
    calls: Mutex<Calls>,
}

/// The calls made lately, so that nobody can have too many made.
#[derive(Debug, Default)]
struct Calls {
    last: Option<Instant>,
    places: HashMap<Place, Instant>,
    askers: HashMap<PeerId, Instant>,
}

/// Addresses that are not called twice in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Prefix(Prefix),
    Address(IpAddr),
}

impl Calls {
    /// Whether this address may be called now; if so, it counts.
    fn may_call(&mut self, address: IpAddr, now: Instant) -> bool {
        let place = Prefix::of(address).map_or(Place::Address(address), Place::Prefix);
        let is_early = |at: Instant| now.saturating_duration_since(at) < CALL_EVERY;
        if self.last.is_some_and(is_early) || !may_again(&mut self.places, place, now) {
            return false;
        }
        self.last = Some(now);
        true
    }

    /// Whether this peer may ask now; if so, it counts.
    fn may_ask(&mut self, asker: PeerId, now: Instant) -> bool {
        may_again(&mut self.askers, asker, now)
    }
}

fn may_again<K: Eq + std::hash::Hash>(
    times: &mut HashMap<K, Instant>,
    key: K,
    now: Instant,
) -> bool {
    times.retain(|_, at| now.saturating_duration_since(*at) < AGAIN_AFTER);
    if times.len() >= MOST || times.contains_key(&key) {
        return false;
    }
    times.insert(key, now);
    true
}

impl Switchboard {
    pub fn new(neighbourhood: watch::Receiver<Arc<Neighbourhood>>) -> Self {
        Switchboard {
            neighbourhood,
            calls: Mutex::default(),
        }
    }

    /// Answers another peer's request.
    pub async fn answer(
        &self,
        transport: &Transport,
        from: PeerId,
        body: &[u8],
    ) -> Result<Bytes, Refusal> {
        let request = postcard::from_bytes(body).map_err(|_| Refusal::Malformed)?;
        let called = match request {
            DialBack::CallMe { port } => self.usher(transport, from, port).await,
            DialBack::Call { peer, address } => self.call(transport, from, peer, address).await,
        };
        Ok(encode(&called))
    }

    /// Has an asker called by a neighbour, at the address that it speaks from.
    async fn usher(&self, transport: &Transport, asker: PeerId, port: u16) -> Called {
        let Some(ip) = transport.proven_address(asker) else {
            return Called::NotTried;
        };
        if !lock(&self.calls).may_ask(asker, Instant::now()) {
            return Called::NotTried;
        }
        let request = encode(&DialBack::Call {
            peer: asker,
            address: SocketAddr::new(ip, port),
        });
        let mut callers = self.neighbourhood.borrow().peers();
        callers.retain(|caller| *caller != asker && *caller != transport.me());
        callers.shuffle(&mut rand::rng());
        for caller in callers.into_iter().take(CALLERS) {
            let answer = ask(transport, caller, request.clone()).await;
            match answer {
                Ok(Called::NotTried) | Err(_) => {}
                Ok(called) => return called,
            }
        }
        Called::NotTried
    }

    /// Calls a peer because a neighbour asks for it.
    async fn call(
        &self,
        transport: &Transport,
        usher: PeerId,
        peer: PeerId,
        address: SocketAddr,
    ) -> Called {
        let is_neighbour = self.neighbourhood.borrow().membership(usher) == Membership::Member;
        let is_known = transport.is_connected(peer) || peer == transport.me();
        if !is_neighbour || is_known || !transport.policy().allows(address) {
            return Called::NotTried;
        }
        if !lock(&self.calls).may_call(address.ip().to_canonical(), Instant::now()) {
            return Called::NotTried;
        }
        if transport.call(peer, address).await {
            Called::Answered
        } else {
            Called::InVain
        }
    }
}

async fn ask(transport: &Transport, to: PeerId, request: Bytes) -> Result<Called, RequestError> {
    let answer = transport.request(to, Kind::DIAL_BACK, request).await?;
    postcard::from_bytes(&answer).map_err(|_| RequestError::Malformed)
}

fn encode(value: &impl Serialize) -> Bytes {
    postcard::to_stdvec(value)
        .expect("such a value has no type that postcard cannot write")
        .into()
}

/// Finds out, now and every hour, whether this peer can be reached.
pub(crate) struct Prober {
    pub transport: Transport,
    pub standing: watch::Receiver<RingStanding>,
    pub found: watch::Sender<Reachability>,
}

impl Prober {
    /// Probes until it is cancelled.
    pub async fn run(self) {
        if self.transport.policy() == AddressPolicy::Private {
            // Among friends everybody dials everybody.
            self.found.send_replace(Reachability::Open);
            return;
        }
        // The sooner the better: a newcomer has not spoken with many yet.
        while self.transport.peers().is_empty() {
            time::sleep(FIRST_LOOKS).await;
        }
        let mut in_vain = Vec::new();
        loop {
            if !self.has_arrivals() {
                self.have_called(&mut in_vain).await;
            }
            let found = match (self.has_arrivals(), in_vain.len()) {
                (true, _) => Reachability::Open,
                (false, FAILURES..) => Reachability::NotReachable,
                (false, _) => Reachability::Unknown,
            };
            self.found.send_if_modified(|told| {
                let is_new = *told != found;
                if is_new {
                    tracing::info!(?found, "whether others can reach this peer");
                }
                *told = found;
                is_new
            });
            let pause = match found {
                Reachability::Unknown => TRY_EVERY,
                Reachability::Open | Reachability::NotReachable => CHECK_EVERY,
            };
            if found != Reachability::Unknown {
                in_vain.clear();
            }
            self.wait(pause).await;
        }
    }

    /// Waits, or until a stranger has arrived at a peer that was not known to be open.
    async fn wait(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            time::sleep(pause.min(Duration::from_secs(5))).await;
            if self.has_arrivals() && *self.found.borrow() != Reachability::Open {
                return;
            }
        }
    }

    fn has_arrivals(&self) -> bool {
        let is_few = self.standing.borrow().size_estimate < FEW;
        let enough = if is_few { 1 } else { ARRIVALS };
        self.transport.arrivals() >= enough
    }

    /// Asks some of the peers that this one is connected with to have it called.
    async fn have_called(&self, in_vain: &mut Vec<PeerId>) {
        let mut ushers: Vec<PeerId> = self.transport.peers().iter().map(|peer| peer.id).collect();
        ushers.shuffle(&mut rand::rng());
        let believed = self.transport.believed_addresses();
        let addresses = believed.into_iter().chain(self.transport.local_addresses());
        let Some(port) = addresses.map(|address| address.port()).next() else {
            return;
        };
        let request = encode(&DialBack::CallMe { port });
        for usher in ushers.into_iter().take(USHERS) {
            match ask(&self.transport, usher, request.clone()).await {
                Ok(Called::InVain) if !in_vain.contains(&usher) => in_vain.push(usher),
                // The one that called is counted where it arrived.
                Ok(_) | Err(_) => {}
            }
            if self.has_arrivals() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    #[test]
    fn calls_are_few_and_none_goes_to_one_neighbourhood_twice_in_a_minute() {
        let (mut calls, now) = (Calls::default(), Instant::now());
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert!(calls.may_call(ip("5.1.1.1"), now));
        assert!(!calls.may_call(ip("6.1.1.1"), now), "too early");
        let later = now + CALL_EVERY;
        assert!(!calls.may_call(ip("5.1.1.200"), later), "the same place");
        assert!(calls.may_call(ip("6.1.1.1"), later));
        assert!(calls.may_call(ip("5.1.1.200"), now + AGAIN_AFTER));
    }

    #[test]
    fn an_asker_has_one_call_in_a_minute_and_all_are_bounded() {
        let (mut calls, now) = (Calls::default(), Instant::now());
        let peer = |n: u32| PeerId::at(Key::hash(n.to_be_bytes()));
        assert!(calls.may_ask(peer(0), now));
        assert!(!calls.may_ask(peer(0), now));
        let more = (1..10_000).filter(|n| calls.may_ask(peer(*n), now)).count();
        assert_eq!(more, MOST - 1);
        assert!(calls.may_ask(peer(0), now + AGAIN_AFTER));
    }
}
