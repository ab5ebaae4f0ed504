//! What the volunteer wants, and how the peer keeps to it.

pub(crate) mod absence;
pub(crate) mod home_watch;
pub(crate) mod line;
pub(crate) mod measure;
pub(crate) mod membership;
pub(crate) mod preferences_file;
pub(crate) mod refusals;
pub(crate) mod start_list;
pub(crate) mod steward;
