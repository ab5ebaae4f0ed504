//! Questions about work, on the wire.

use crate::swarm::rights::Right;
use apoidea_overlay::Kind;
use serde::{Deserialize, Serialize};

/// "Are these links at the owner that has taken them?" To a peer that holds its replicas.
pub(crate) const CHECK: Kind = Kind::free(24);
/// "This owner has dropped links that it took; see for yourself."
pub(crate) const EVIDENCE: Kind = Kind::free(25);

/// The right that the sender of each kind needs. Both carry a voucher, which its owner has signed:
/// nobody can accuse a peer of something that it has not said.
pub(in crate::swarm) const RIGHTS: &[(Kind, Right)] =
    &[(CHECK, Right::Member), (EVIDENCE, Right::Member)];

/// The answer of a peer that holds replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CheckAnswer {
    /// So many of the links are neither in its replica nor in what the owner gives when asked.
    Missing(u32),
    /// The owner could not be asked yet.
    Unsettled,
    /// It holds no replicas of that owner.
    Elsewhere,
}
