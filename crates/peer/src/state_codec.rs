//! A domain's state as it is stored and sent.

use apoidea_crawl::DomainState;
use apoidea_model::Domain;

/// Decodes a stored state. A damaged one is begun anew, which costs a robots.txt and the counters.
pub(crate) fn decode_state(domain: &Domain, bytes: &[u8]) -> DomainState {
    DomainState::decode(bytes).unwrap_or_else(|error| {
        tracing::error!(%domain, %error, "the domain's state is damaged and begun anew");
        DomainState::default()
    })
}
