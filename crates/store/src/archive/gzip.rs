//! Gzip members, one after the other, with one deflate state for all of them.

use flate2::{Compress, Compression, FlushCompress, Status};

/// Fastest: at 35 KB a page, higher levels cost several times the processor for a tenth of the space.
const LEVEL: u32 = 1;
const WINDOW_BITS: u8 = 15;
/// Room that is added to the output when it is full.
const STEP_BYTES: usize = 16 * 1024;

/// A reusable compressor.
#[derive(Debug)]
pub(super) struct Gzip(Compress);

impl Gzip {
    pub(super) fn new() -> Self {
        Gzip(Compress::new_gzip(Compression::new(LEVEL), WINDOW_BITS))
    }

    /// Appends one member that holds all the parts.
    pub(super) fn member(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        self.0.reset();
        let Some((last, first)) = parts.split_last() else { return };
        for part in first {
            self.push(part, FlushCompress::None, out);
        }
        self.push(last, FlushCompress::Finish, out);
    }

    fn push(&mut self, mut input: &[u8], flush: FlushCompress, out: &mut Vec<u8>) {
        loop {
            out.reserve(STEP_BYTES);
            let before = self.0.total_in();
            let status = self.0.compress_vec(input, out, flush).expect("compressing has no invalid input");
            input = &input[(self.0.total_in() - before) as usize..];
            let is_done = match flush {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => input.is_empty(),
            };
            if is_done {
                return;
            }
        }
    }
}
