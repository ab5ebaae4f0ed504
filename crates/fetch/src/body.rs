//! Undoing `Content-Encoding`, with a bound on what comes out.
//!
//! A body of two kilobytes can unpack to gigabytes, so decoding stops at the limit and says so. A
//! body that is not what its header claims is taken as it is, which is what browsers do.

use bytes::Bytes;
use std::io::Read;

/// A decoded body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The content.
    pub bytes: Bytes,
    /// Whether something is missing at the end.
    pub extent: Extent,
}

/// How much of a body is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All of it.
    Whole,
    /// It was cut at the limit or broke off.
    Truncated,
}

/// Decodes `raw` according to its `Content-Encoding`, up to `limit` bytes.
pub fn decode(raw: Bytes, extent: Extent, encoding: Option<&str>, limit: usize) -> Body {
    let is_gzip = raw.starts_with(&[0x1f, 0x8b]);
    match encoding
        .map(|encoding| encoding.trim().to_ascii_lowercase())
        .as_deref()
    {
        Some("gzip" | "x-gzip") if is_gzip => {
            unpack(flate2::read::MultiGzDecoder::new(&raw[..]), extent, limit)
        }
        Some("deflate") => decode_deflate(&raw, extent, limit),
        Some("br") => {
            let decoder = brotli_decompressor::Decompressor::new(&raw[..], 16 << 10);
            let body = unpack(decoder, extent, limit);
            if body.bytes.is_empty() {
                Body { bytes: raw, extent }
            } else {
                body
            }
        }
        _ => Body { bytes: raw, extent },
    }
}

/// `deflate` means zlib, but some servers send the bare stream.
fn decode_deflate(raw: &Bytes, extent: Extent, limit: usize) -> Body {
    let body = unpack(flate2::read::ZlibDecoder::new(&raw[..]), extent, limit);
    if !body.bytes.is_empty() || raw.is_empty() {
        return body;
    }
    let body = unpack(flate2::read::DeflateDecoder::new(&raw[..]), extent, limit);
    if body.bytes.is_empty() {
        Body {
            bytes: raw.clone(),
            extent,
        }
    } else {
        body
    }
}

fn unpack(decoder: impl Read, extent: Extent, limit: usize) -> Body {
    let mut bytes = Vec::new();
    let outcome = decoder.take(limit as u64 + 1).read_to_end(&mut bytes);
    let is_cut = bytes.len() > limit || outcome.is_err();
    bytes.truncate(limit);
    let extent = if is_cut { Extent::Truncated } else { extent };
    Body {
        bytes: bytes.into(),
        extent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap().into()
    }

    fn decoded(raw: Bytes, encoding: &str) -> Body {
        decode(raw, Extent::Whole, Some(encoding), 1000)
    }

    #[test]
    fn gzip_deflate_and_plain_bodies_are_read() {
        assert_eq!(decoded(gzip(b"hello"), "GZip").bytes, "hello");
        let mut encoder =
            flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(b"hello").unwrap();
        assert_eq!(
            decoded(encoder.finish().unwrap().into(), "deflate").bytes,
            "hello"
        );
        assert_eq!(
            decoded(Bytes::from_static(b"hello"), "identity").bytes,
            "hello"
        );
    }

    #[test]
    fn a_mislabelled_body_is_taken_as_it_is() {
        for encoding in ["gzip", "deflate", "br"] {
            assert_eq!(
                decoded(Bytes::from_static(b"<p>hello"), encoding).bytes,
                "<p>hello",
                "{encoding}"
            );
        }
    }

    #[test]
    fn a_bomb_is_cut_at_the_limit_and_marked() {
        let body = decoded(gzip(&vec![b'x'; 1 << 20]), "gzip");
        assert_eq!((body.bytes.len(), body.extent), (1000, Extent::Truncated));
    }

    #[test]
    fn a_broken_stream_keeps_what_was_readable() {
        let whole = gzip(&b"hello world ".repeat(50));
        let body = decoded(whole.slice(..whole.len() - 9), "gzip");
        assert_eq!(body.extent, Extent::Truncated);
        assert!(body.bytes.starts_with(b"hello"));
    }
}
