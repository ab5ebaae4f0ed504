//! Errors of reading the database.

/// Reading failed; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The disk or the database said no.
    #[error("the database cannot be read: {0}")]
    Database(#[from] fjall::Error),
    /// The bytes stored are not those that were written.
    #[error("the {what} stored under {key} is damaged; nothing was deleted")]
    Corrupt {
        /// The kind of thing.
        what: &'static str,
        /// Its key, in readable form.
        key: String,
    },
    /// A failed commit closed the database and it could not be opened again yet.
    #[error("the database is closed since it could not be opened again after a failed commit")]
    Closed,
}

impl ReadError {
    pub(crate) fn corrupt(what: &'static str, key: &[u8]) -> Self {
        ReadError::Corrupt {
            what,
            key: key.escape_ascii().to_string(),
        }
    }
}
