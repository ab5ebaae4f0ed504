//! The conversation about content: "is this known?", asked of the owner of the content's hash.

pub(in crate::swarm) mod answer;
pub(crate) mod message;
pub(crate) mod ring_index;
