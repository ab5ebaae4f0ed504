//! The conversation about work that was done or not: it is checked, and lies have consequences.
//!
//! An owner signs that it has taken links ([`voucher`]). Their sender has some of this checked by
//! the peers that hold replicas ([`checker`], [`held_links`]). A helper says that it keeps a page, and
//! has to show it later ([`keepers`]). A peer that dropped links or lost pages is distrusted
//! ([`book`]), and its domains belong to the next peer in the view of those that know
//! ([`trusted_ring`]).

pub(in crate::swarm) mod answer;
pub(crate) mod book;
pub(crate) mod checker;
pub(crate) mod held_links;
pub(crate) mod keepers;
pub(crate) mod message;
pub(crate) mod standing;
pub(crate) mod trusted_ring;
pub(crate) mod voucher;
