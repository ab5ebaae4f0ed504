//! Gzip members, one after the other.
//!
//! A page of 29.9 KB of real HTML takes igzip at level 0 about 35 µs of processor time, of which
//! 20.2 % of the page is left; igzip at level 1 50 µs and 18.1 %, libdeflate at level 1 72 µs and
//! 17.2 %, zlib-rs at level 1 a quarter more than that. Volunteers notice fans sooner than disks,
//! so the fastest is taken where it can be built.

use libdeflater::{CompressionLvl, Compressor};

/// Records below this are kept as they are: compressing the head of a request and a short list of
/// links takes a fifth of the time that a whole page takes, and would save a twelfth of the space.
const MIN_BYTES: usize = 2048;
/// Buffers are kept at this size for the next record; the few pages that need more allocate it
/// anew.
pub(super) const KEPT_BYTES: usize = 256 << 10;

/// A reusable compressor.
pub(super) struct Gzip {
    pages: fastest::Pages,
    /// Makes members of what stays as it is.
    wrapper: Compressor,
    input: Vec<u8>,
    output: Vec<u8>,
}

impl Gzip {
    pub(super) fn new() -> Self {
        let (pages, wrapper) = (fastest::Pages::new(), libdeflate(0));
        Gzip {
            pages,
            wrapper,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// Appends one member that holds all the parts.
    pub(super) fn member(&mut self, parts: &[&[u8]], out: &mut Vec<u8>) {
        self.input.clear();
        parts
            .iter()
            .for_each(|part| self.input.extend_from_slice(part));
        // Also enough for the other compressor, which keeps what it cannot compress in blocks as
        // large.
        let bound = self.wrapper.gzip_compress_bound(self.input.len());
        if self.output.len() < bound {
            self.output.resize(bound, 0);
        }
        let size = if self.input.len() < MIN_BYTES {
            self.wrapper
                .gzip_compress(&self.input, &mut self.output)
                .ok()
        } else {
            self.pages.compress(&self.input, &mut self.output)
        };
        let size = size.expect("the output has room for the worst case");
        out.extend_from_slice(&self.output[..size]);
        self.forget_large_buffers();
    }

    fn forget_large_buffers(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.capacity() > KEPT_BYTES {
                *buffer = Vec::new();
            }
        }
    }
}

fn libdeflate(level: i32) -> Compressor {
    Compressor::new(CompressionLvl::new(level).expect("levels 0 to 12 exist"))
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod fastest {
    //! igzip, whose build needs an assembler and autotools (`installer/setup build`).

    use isal::{Codec, CompressionLevel};

    pub(super) struct Pages;

    impl Pages {
        pub(super) fn new() -> Self {
            Pages
        }

        pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
            isal::compress_into(input, output, CompressionLevel::Zero, Codec::Gzip).ok()
        }
    }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod fastest {
    //! libdeflate, which every C compiler builds.

    use libdeflater::Compressor;

    pub(super) struct Pages(Compressor);

    impl Pages {
        pub(super) fn new() -> Self {
            Pages(super::libdeflate(1))
        }

        pub(super) fn compress(&mut self, input: &[u8], output: &mut [u8]) -> Option<usize> {
            self.0.gzip_compress(input, output).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};
    use std::io::Read;

    #[test]
    fn members_of_every_size_are_read_back() {
        let mut gzip = Gzip::new();
        let ordered: Vec<u8> = (0..3 * KEPT_BYTES).map(|n| (n * n / 7) as u8).collect();
        // Hashes cannot be compressed, so these need all the room there is.
        let digests = (0_u64..).flat_map(|n| Sha256::digest(n.to_le_bytes()));
        let random: Vec<u8> = digests.take(ordered.len()).collect();
        for bytes in [ordered, random] {
            for size in [0, 1, MIN_BYTES - 1, MIN_BYTES, 70_000, bytes.len(), 5] {
                let (mut out, mut back) = (Vec::new(), Vec::new());
                gzip.member(&[&bytes[..size / 2], &bytes[size / 2..size]], &mut out);
                flate2::read::GzDecoder::new(&out[..])
                    .read_to_end(&mut back)
                    .unwrap();
                assert_eq!(back, bytes[..size]);
            }
        }
    }
}
