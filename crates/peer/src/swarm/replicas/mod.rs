//! The conversation about replicas: every change to a domain reaches its replicas, and a peer
//! that becomes the owner has all that the last one knew.

pub(in crate::swarm) mod answer;
mod apart;
pub(crate) mod heard;
pub(crate) mod known_pages;
pub(crate) mod large;
pub(crate) mod merge;
pub(crate) mod message;
pub(crate) mod provenance;
pub(crate) mod puller;
pub(crate) mod replica;
pub(crate) mod replication;
pub(crate) mod rounds;
pub(crate) mod sweep;
pub(crate) mod takeover;
