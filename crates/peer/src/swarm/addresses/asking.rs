//! Asking the clocks of addresses for turns.

use super::{
    clocks::{self, AddressClocks},
    message::{MAX_WISHES, TURNS, TurnGrant, TurnWish},
};
use crate::{clock::now, swarm::wire};
use apoidea_crawl::{AddressWish, Grant};
use apoidea_model::PeerId;
use apoidea_overlay::Overlay;
use futures::future;
use std::{collections::HashMap, net::IpAddr, sync::Arc, time::Duration};
use tokio::time;

/// Peers that keep the clock of an address: the owner, and its successor as a check.
const KEEPERS: usize = 2;
/// A look-up that takes longer is given up: the address is asked slowly meanwhile.
const LOOK_UP_WITHIN: Duration = Duration::from_secs(2);
/// The same for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// The means of asking.
#[derive(Clone)]
pub(crate) struct TurnAsker {
    pub overlay: Arc<dyn Overlay>,
    pub clocks: Arc<AddressClocks>,
}

/// The answer about each address; none where no clock answered.
pub(crate) type Grants = Vec<(IpAddr, Option<Grant>)>;

impl TurnAsker {
    /// Asks the clocks of all these addresses, each peer in one message if it may be.
    pub(crate) async fn ask(&self, wishes: Vec<AddressWish>) -> Grants {
        let mut grants: HashMap<IpAddr, Option<Grant>> = HashMap::new();
        let keepers = self.by_keeper(&wishes).await;
        let asked = keepers
            .iter()
            .map(|(peer, wishes)| self.ask_one(*peer, wishes));
        let answers = future::join_all(asked).await;
        for (address, grant) in answers.into_iter().flatten() {
            let known = grants.entry(address).or_default();
            *known = Some(known.map_or(grant, |known| known.slower(grant)));
        }
        let answer = |wish: AddressWish| {
            let grant = grants.get(&wish.address).copied().flatten();
            (wish.address, grant)
        };
        wishes.into_iter().map(answer).collect()
    }

    async fn by_keeper(&self, wishes: &[AddressWish]) -> HashMap<PeerId, Vec<AddressWish>> {
        let look_ups = wishes.iter().map(|wish| {
            let owners = self.overlay.owners(clocks::key(wish.address), KEEPERS);
            time::timeout(LOOK_UP_WITHIN, owners)
        });
        let found = future::join_all(look_ups).await;
        let mut by_keeper: HashMap<PeerId, Vec<AddressWish>> = HashMap::new();
        for (owners, wish) in found.into_iter().zip(wishes) {
            let owners = owners.ok().and_then(Result::ok).unwrap_or_default();
            for owner in owners {
                by_keeper.entry(owner).or_default().push(*wish);
            }
        }
        by_keeper
    }

    /// The answers of one peer, as far as they came.
    async fn ask_one(&self, peer: PeerId, wishes: &[AddressWish]) -> Vec<(IpAddr, Grant)> {
        let addresses = wishes.iter().map(|wish| wish.address);
        if peer == self.overlay.me() {
            let grants = self.clocks.ask(peer, wishes, now());
            return addresses.zip(grants).collect();
        }
        let portions = wishes
            .chunks(MAX_WISHES)
            .map(|wishes| self.request(peer, wishes));
        let answers = future::join_all(portions).await;
        answers.into_iter().flatten().collect()
    }

    async fn request(&self, peer: PeerId, wishes: &[AddressWish]) -> Vec<(IpAddr, Grant)> {
        let body: Vec<TurnWish> = wishes.iter().copied().map(TurnWish::from).collect();
        let request = self.overlay.request(peer, TURNS, wire::encode(&body));
        let answer = time::timeout(ANSWER_WITHIN, request).await;
        let answer = answer.ok().and_then(Result::ok);
        let grants = answer.and_then(|answer| wire::decode::<Vec<TurnGrant>>(&answer).ok());
        let grants = grants.filter(|grants| grants.len() == wishes.len());
        let addresses = wishes.iter().map(|wish| wish.address);
        let grants = grants.unwrap_or_default().into_iter().map(Grant::from);
        addresses.zip(grants).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestPeer, peer};
    use apoidea_overlay::RequestError;

    const ME: u8 = 0x20;
    const MEMBERS: [u8; 3] = [ME, 0x60, 0xa0];

    fn asker(me: &TestPeer) -> TurnAsker {
        TurnAsker {
            overlay: me.ring.clone(),
            clocks: Arc::default(),
        }
    }

    /// Addresses whose clocks others keep.
    async fn foreign(me: &TestPeer, count: usize) -> Vec<AddressWish> {
        let mut wishes = Vec::new();
        for number in 0x2000_0000u32.. {
            let address = IpAddr::from(number.to_be_bytes());
            let owners = me.ring.owners(clocks::key(address), KEEPERS).await.unwrap();
            if !owners.contains(&peer(ME)) {
                let wanted = Duration::from_secs(2);
                wishes.push(AddressWish { address, wanted });
            }
            if wishes.len() == count {
                break;
            }
        }
        wishes
    }

    fn every(interval_ms: u32) -> TurnGrant {
        TurnGrant::Every {
            interval_ms,
            term_ms: 240_000,
        }
    }

    fn millis(grants: &Grants) -> Vec<Option<u128>> {
        let interval = |grant: &Option<Grant>| match grant {
            Some(Grant::Every { interval, .. }) => Some(interval.as_millis()),
            _ => None,
        };
        grants.iter().map(|(_, grant)| interval(grant)).collect()
    }

    #[tokio::test]
    async fn the_slower_of_two_clocks_is_believed_and_each_is_asked_once_for_all() {
        let (me, _inbox) = TestPeer::owner(MEMBERS.map(peer));
        me.ring.answer_with(|to, _, body| {
            let wishes: Vec<TurnWish> = wire::decode(&body).unwrap();
            let interval = if to == peer(0x60) { 4000 } else { 9000 };
            Ok(wire::encode(&vec![every(interval); wishes.len()]))
        });
        let wishes = foreign(&me, 5).await;
        let grants = asker(&me).ask(wishes.clone()).await;
        assert_eq!(millis(&grants), [Some(9000); 5]);
        let addresses: Vec<IpAddr> = grants.iter().map(|(address, _)| *address).collect();
        assert_eq!(
            addresses,
            wishes.iter().map(|wish| wish.address).collect::<Vec<_>>()
        );
        assert_eq!(me.ring.asked(TURNS).len(), 2);
    }

    #[tokio::test]
    async fn one_clock_is_enough_and_none_is_no_answer() {
        let (me, _inbox) = TestPeer::owner(MEMBERS.map(peer));
        let wishes = foreign(&me, 1).await;
        me.ring.answer_with(|to, _, _| match to == peer(0x60) {
            true => Ok(wire::encode(&vec![every(4000)])),
            false => Err(RequestError::Busy),
        });
        assert_eq!(millis(&asker(&me).ask(wishes.clone()).await), [Some(4000)]);
        me.ring
            .answer_with(|_, _, _| Ok(wire::encode(&vec![every(4000); 2])));
        let answer = asker(&me).ask(wishes.clone()).await;
        assert_eq!(answer, [(wishes[0].address, None)], "of the wrong length");
        me.ring.set_lost(true);
        assert_eq!(asker(&me).ask(wishes.clone()).await[0].1, None);
    }

    #[tokio::test]
    async fn a_peer_asks_its_own_clock_without_a_message() {
        let (me, _inbox) = TestPeer::owner([peer(ME)]);
        let asker = asker(&me);
        let address = IpAddr::from([198, 51, 100, 1]);
        let wanted = Duration::from_secs(2);
        let grants = asker.ask(vec![AddressWish { address, wanted }]).await;
        assert_eq!(millis(&grants), [Some(2000)]);
        assert!(me.ring.asked(TURNS).is_empty());
    }
}
