//! Turns at an address on the wire.

use crate::swarm::rights::Right;
use apoidea_crawl::{AddressWish, Grant};
use apoidea_overlay::Kind;
use serde::{Deserialize, Serialize};
use std::{net::IpAddr, time::Duration};

/// "How often may I ask these addresses?"
pub(crate) const TURNS: Kind = Kind::free(20);

/// The right that the sender of each kind needs.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] = &[(TURNS, Right::Member)];

/// Addresses in one message.
pub(crate) const MAX_WISHES: usize = 256;

/// A wish to ask an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TurnWish {
    pub address: IpAddr,
    /// No use for more than one request in so many milliseconds.
    pub wanted_ms: u32,
}

/// The clock's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TurnGrant {
    /// One request in `interval_ms`, for `term_ms` from the question on.
    Every { interval_ms: u32, term_ms: u32 },
    /// None for so many milliseconds; then ask again.
    Wait(u32),
}

impl From<AddressWish> for TurnWish {
    fn from(AddressWish { address, wanted }: AddressWish) -> Self {
        let wanted_ms = millis(wanted);
        TurnWish { address, wanted_ms }
    }
}

impl From<TurnWish> for AddressWish {
    fn from(TurnWish { address, wanted_ms }: TurnWish) -> Self {
        let wanted = Duration::from_millis(wanted_ms.into());
        AddressWish { address, wanted }
    }
}

impl From<Grant> for TurnGrant {
    fn from(grant: Grant) -> Self {
        match grant {
            Grant::Every { interval, term } => TurnGrant::Every {
                interval_ms: millis(interval),
                term_ms: millis(term),
            },
            Grant::Wait(wait) => TurnGrant::Wait(millis(wait)),
        }
    }
}

impl From<TurnGrant> for Grant {
    fn from(grant: TurnGrant) -> Self {
        let duration = |millis: u32| Duration::from_millis(millis.into());
        match grant {
            TurnGrant::Every {
                interval_ms,
                term_ms,
            } => Grant::Every {
                interval: duration(interval_ms),
                term: duration(term_ms),
            },
            TurnGrant::Wait(wait) => Grant::Wait(duration(wait)),
        }
    }
}

fn millis(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::wire;

    #[test]
    fn a_wish_and_its_answer_take_few_bytes() {
        let wish = AddressWish {
            address: [198, 51, 100, 1].into(),
            wanted: Duration::from_secs(5),
        };
        let asked: Vec<TurnWish> = vec![wish.into()];
        let bytes = wire::encode(&asked);
        assert!(bytes.len() <= 10, "{}", bytes.len());
        let read: Vec<TurnWish> = wire::decode(&bytes).unwrap();
        assert_eq!(
            read.into_iter().map(AddressWish::from).collect::<Vec<_>>(),
            [wish]
        );
        for grant in [
            Grant::Wait(Duration::from_secs(60)),
            Grant::Every {
                interval: Duration::from_secs(6),
                term: Duration::from_secs(240),
            },
        ] {
            assert_eq!(Grant::from(TurnGrant::from(grant)), grant);
            assert!(wire::encode(&TurnGrant::from(grant)).len() <= 8);
        }
    }
}
