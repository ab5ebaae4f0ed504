//! What a peer says about itself.

pub(crate) mod domains;
pub(crate) mod outcome;
pub(crate) mod page_feed;
pub(crate) mod rate;
pub(crate) mod reporter;
pub(crate) mod status;
pub mod words;
