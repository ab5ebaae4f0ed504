//! The reason why a connection or a stream was ended: a number on the wire, a sentence for people.

use quinn::{Connection, ConnectionError, VarInt};

/// Why this peer ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[repr(u32)]
pub(crate) enum Close {
    #[error("shutting down")]
    ShuttingDown = 0,
    #[error("wrong network")]
    WrongNetwork = 1,
    #[error("malformed bytes")]
    Malformed = 2,
    #[error("another connection to this peer is kept")]
    Duplicate = 3,
    #[error("no room for this connection")]
    Full = 4,
    #[error("kept out for misbehaviour")]
    Banished = 5,
    #[error("the other side did not answer")]
    Unresponsive = 6,
    #[error("this machine slept")]
    Slept = 7,
    #[error("the work for this identity is not proven yet")]
    NoToil = 8,
}

impl Close {
    /// Ends the connection with this reason in words.
    pub fn end(self, connection: &Connection) {
        self.end_because(connection, &self.to_string());
    }

    /// Ends the connection with a longer explanation.
    pub fn end_because(self, connection: &Connection, why: &str) {
        connection.close(VarInt::from_u32(self as u32), why.as_bytes());
    }

    /// Whether the other side ended the connection for this reason.
    pub fn ended(self, error: &ConnectionError) -> bool {
        matches!(error, ConnectionError::ApplicationClosed(close) if close.error_code == VarInt::from_u32(self as u32))
    }
}

/// The stream's sender or reader lost interest before the end.
pub(crate) const CANCELLED: VarInt = VarInt::from_u32(1);
/// The bytes of the stream could not be read.
pub(crate) const UNREADABLE: VarInt = VarInt::from_u32(2);
