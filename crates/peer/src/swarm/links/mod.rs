//! The conversation about links: from the page that has them to the owner of their domain.

pub(crate) mod absences;
pub(in crate::swarm) mod answer;
pub(crate) mod courier;
pub(crate) mod message;
pub(crate) mod sent_log;
pub(crate) mod takers;
