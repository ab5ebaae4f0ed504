//! The pages themselves, as a folder of WARC files with an index beside each.

mod mark;

pub use mark::Mark;
