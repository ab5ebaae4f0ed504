//! One request or one answer on a stream: a byte for its kind, four for the length, and the body.
//!
//! The length is checked before anything is allocated for it, and the stream must end where the
//! length says. A writer that is dropped half-way resets its stream, so that half a frame is never
//! taken for a whole one.

use super::close::CANCELLED;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quinn::{ConnectionError, ReadError, RecvStream, SendStream, WriteError};

/// Longest body of a frame.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// Bytes before the body.
pub(crate) const HEAD_BYTES: usize = 5;

/// Why a frame could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} bytes is too long")]
    TooLong(u32),
    #[error("the stream ended within a frame")]
    Truncated,
    #[error("there are bytes after the frame")]
    Trailing,
    #[error("the sender gave up")]
    Cancelled,
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl FrameError {
    /// Whether this is the sender's fault.
    pub fn is_malformed(&self) -> bool {
        matches!(self, Self::TooLong(_) | Self::Truncated | Self::Trailing)
    }
}

impl From<ReadError> for FrameError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::ConnectionLost(error) => Self::Connection(error),
            _ => Self::Cancelled,
        }
    }
}

/// The beginning of a frame, and the bytes that came along with it.
#[derive(Debug)]
pub(crate) struct Head {
    /// The kind of the frame.
    pub tag: u8,
    /// The length of its body.
    pub length: usize,
    arrived: Bytes,
}

impl Head {
    /// Reads the beginning of a frame whose body may have `max` bytes.
    pub async fn read(stream: &mut RecvStream, max: usize) -> Result<Head, FrameError> {
        let mut arrived = next(stream).await?.ok_or(FrameError::Truncated)?;
        while arrived.len() < HEAD_BYTES {
            let more = next(stream).await?.ok_or(FrameError::Truncated)?;
            arrived = [arrived, more].concat().into();
        }
        Self::parse(arrived, max)
    }

    /// The same of bytes that have arrived.
    pub fn parse(mut arrived: Bytes, max: usize) -> Result<Head, FrameError> {
        if arrived.len() < HEAD_BYTES {
            return Err(FrameError::Truncated);
        }
        let (tag, length) = (arrived.get_u8(), arrived.get_u32());
        match usize::try_from(length) {
            Ok(length) if length <= max => Ok(Head {
                tag,
                length,
                arrived,
            }),
            _ => Err(FrameError::TooLong(length)),
        }
    }

    /// Reads the rest. A body that came in one piece is not copied.
    pub async fn body(self, stream: &mut RecvStream) -> Result<Bytes, FrameError> {
        let Head {
            length, arrived, ..
        } = self;
        let body = if arrived.len() >= length {
            arrived
        } else {
            collect(stream, arrived, length).await?
        };
        if body.len() > length || next(stream).await?.is_some() {
            return Err(FrameError::Trailing);
        }
        Ok(body)
    }
}

async fn collect(
    stream: &mut RecvStream,
    arrived: Bytes,
    length: usize,
) -> Result<Bytes, FrameError> {
    let mut body = BytesMut::with_capacity(length);
    body.put(arrived);
    while body.len() < length {
        let more = next(stream).await?.ok_or(FrameError::Truncated)?;
        if body.len() + more.len() > length {
            return Err(FrameError::Trailing);
        }
        body.put(more);
    }
    Ok(body.freeze())
}

async fn next(stream: &mut RecvStream) -> Result<Option<Bytes>, FrameError> {
    let chunk = stream.read_chunk(MAX_BODY_BYTES, true).await?;
    Ok(chunk.map(|chunk| chunk.bytes))
}

/// The sending half of a stream, reset if it is dropped before the frame is complete.
#[derive(Debug)]
pub(crate) struct Writer {
    stream: SendStream,
    state: Written,
}

#[derive(Debug, PartialEq, Eq)]
enum Written {
    Partly,
    Wholly,
}

impl Writer {
    /// A writer of one frame.
    pub fn new(stream: SendStream) -> Self {
        Writer {
            stream,
            state: Written::Partly,
        }
    }

    /// Writes the frame and ends the stream. Bodies are never longer than [`MAX_BODY_BYTES`].
    pub async fn write(&mut self, tag: u8, body: Bytes) -> Result<(), WriteError> {
        let mut head = BytesMut::with_capacity(HEAD_BYTES);
        head.put_u8(tag);
        head.put_u32(u32::try_from(body.len()).expect("a body has at most 64 KiB"));
        self.stream
            .write_all_chunks(&mut [head.freeze(), body])
            .await?;
        self.state = Written::Wholly;
        // Fails only if the stream was reset, which this type does on drop alone.
        let _ = self.stream.finish();
        Ok(())
    }

    /// Resolves when the other side does not want the frame any more.
    pub async fn unwanted(&mut self) {
        let _ = self.stream.stopped().await;
    }

    /// Gives up, with this reason.
    pub fn reset(&mut self, code: quinn::VarInt) {
        let _ = self.stream.reset(code);
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.state == Written::Partly {
            self.reset(CANCELLED);
        }
    }
}
