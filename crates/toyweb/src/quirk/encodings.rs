//! Compressed bodies, honest, mislabelled and malicious.

use super::Ground;
use crate::{
    reply::{Framing, Reply, Step},
    site::{Play, Site},
    truth::Fate,
};
use bytes::Bytes;
use flate2::{
    Compression,
    write::{GzEncoder, ZlibEncoder},
};
use std::{io::Write, sync::LazyLock};

/// What the bomb unpacks to, in bytes.
const BOMB_BYTES: usize = 100 * 1024 * 1024;

/// Packed when it is first asked for, since that takes a moment.
static BOMB: LazyLock<Bytes> = LazyLock::new(|| {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let block = vec![b' '; 1024 * 1024];
    let html = b"<!DOCTYPE html>\n<title>gzip-bomb.test/boom</title>\n";
    let written = encoder
        .write_all(html)
        .and_then(|()| (0..BOMB_BYTES / block.len()).try_for_each(|_| encoder.write_all(&block)));
    written
        .and_then(|()| encoder.finish())
        .expect("writing to memory cannot fail")
        .into()
});

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(text)
        .and_then(|()| encoder.finish())
        .expect("writing to memory cannot fail")
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder
        .write_all(text)
        .and_then(|()| encoder.finish())
        .expect("writing to memory cannot fail")
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    encoder
        .write_all(text)
        .expect("writing to memory cannot fail");
    encoder.into_inner()
}

fn chunks(bytes: &[u8]) -> Vec<Step> {
    bytes
        .chunks(37)
        .map(|chunk| Step::Send(Bytes::copy_from_slice(chunk)))
        .collect()
}

/// A way to pack a body.
struct Packing {
    path: &'static str,
    name: &'static str,
    pack: fn(&[u8]) -> Vec<u8>,
    /// Deflate and x-gzip are legal, but a client need not have asked for them.
    fate: Fate,
}

const PACKINGS: [Packing; 4] = [
    Packing {
        path: "/gzip",
        name: "gzip",
        pack: gzip,
        fate: Fate::Keep,
    },
    Packing {
        path: "/brotli",
        name: "br",
        pack: brotli,
        fate: Fate::Keep,
    },
    Packing {
        path: "/x-gzip",
        name: "x-gzip",
        pack: gzip,
        fate: Fate::Visit,
    },
    Packing {
        path: "/deflate",
        name: "deflate",
        pack: deflate,
        fate: Fate::Visit,
    },
];

pub(super) fn honest(ground: &Ground) -> Vec<Site> {
    let links: Vec<String> = PACKINGS
        .iter()
        .flat_map(|packing| [packing.path.to_owned(), packing.chunked()])
        .collect();
    let site = ground
        .site("encodings")
        .home(&links.iter().map(String::as_str).collect::<Vec<_>>());
    vec![
        PACKINGS
            .iter()
            .fold(site, |site, packing| packing.add(site)),
    ]
}

impl Packing {
    fn chunked(&self) -> String {
        format!("{}-chunked", self.path)
    }

    /// Adds a page that is packed, the same in chunks, and the page that both link to.
    fn add(&self, site: Site) -> Site {
        let (chunked, after) = (self.chunked(), format!("/after{}", self.path));
        let packed = |path: &str| (self.pack)(site.text(path, &[&after]).as_bytes());
        let reply = |body| Reply::html(body).header("Content-Encoding", self.name);
        let whole = reply(packed(self.path));
        let pieces = reply(Vec::new()).body(Framing::Chunked, chunks(&packed(&chunked)));
        let after_fate = if self.fate == Fate::Keep {
            Fate::Keep
        } else {
            Fate::Either
        };
        site.page(self.path, self.fate, whole)
            .page(&chunked, self.fate, pieces)
            .html(&after, after_fate, &["/"])
    }
}

pub(super) fn lies(ground: &Ground) -> Vec<Site> {
    let site = ground.site("encodings-lie").home(&[
        "/not-gzip",
        "/gzip-as-brotli",
        "/secretly-gzip",
        "/unknown",
    ]);
    let text = |path: &str| site.text(path, &["/"]).into_bytes();
    let plain = Reply::html(text("/not-gzip")).header("Content-Encoding", "gzip");
    let wrong = Reply::html(gzip(&text("/gzip-as-brotli"))).header("Content-Encoding", "br");
    let secret = Reply::html(gzip(&text("/secretly-gzip")));
    let unknown = Reply::html(text("/unknown")).header("Content-Encoding", "x-snow");
    let site =
        site.page("/not-gzip", Fate::Visit, plain)
            .page("/gzip-as-brotli", Fate::Visit, wrong);
    vec![
        site.page("/secretly-gzip", Fate::Visit, secret)
            .page("/unknown", Fate::Visit, unknown),
    ]
}

pub(super) fn bomb(ground: &Ground) -> Vec<Site> {
    let site = ground.site("gzip-bomb").html("/", Fate::Keep, &["/boom"]);
    let boom = || Reply::html(BOMB.clone()).header("Content-Encoding", "gzip");
    vec![site.page("/boom", Fate::Visit, Play::Made(boom))]
}
