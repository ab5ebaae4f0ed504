//! The pages themselves, as a folder of WARC/1.1 files that any web archive tool reads, with a CDXJ
//! index beside each.
//!
//! The way of a page: a [`Capture`] is compressed by an [`Encoder`] on any thread; the [`Archive`]
//! appends the result and, from time to time, syncs. The [`Mark`] that it then gives goes into the
//! same commit as the page's "done", and back into [`Archive::open`] after a restart, which cuts
//! off whatever lies behind it. A [`Reader`] finds pages again while others are appended, and lets
//! an index [`Follow`] what was committed. Files named `….open` are being written; `warcio check`
//! accepts them too.

mod capture;
mod encoder;
mod error;
mod export;
mod file_name;
mod folder;
mod follow;
mod gzip;
mod index_entry;
mod index_file;
mod mark;
mod open_file;
mod position;
mod reader;
mod record_head;
mod record_id;
mod records;
mod room;
mod surt;
mod timestamp;

pub use capture::{Capture, CaptureKind, Head, Truncation};
pub use encoder::{EncodedRecords, Encoder};
pub use error::ArchiveError;
pub use export::{ExportFilter, Exported};
pub use folder::{Archive, ArchiveOptions};
pub use follow::{Follow, Followed};
pub use index_entry::IndexEntry;
pub use mark::Mark;
pub use position::{Position, Span};
pub use reader::{Page, Reader};
pub use records::{MAX_RECORD_BYTES, Record, Records};
pub use room::{ArchiveRoom, RemovedFile};
pub use timestamp::parse_time;
