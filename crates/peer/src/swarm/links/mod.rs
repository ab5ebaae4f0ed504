//! The conversation about links: from the page that has them to the owner of their domain.

pub(in crate::swarm) mod answer;
pub(crate) mod courier;
pub(crate) mod message;
