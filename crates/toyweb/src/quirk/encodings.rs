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
    written.and_then(|()| encoder.finish()).expect("writing to memory cannot fail").into()
});

pub(super) fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("writing to memory cannot fail")
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).and_then(|()| encoder.finish()).expect("writing to memory cannot fail")
}

fn brotli(text: &[u8]) -> Vec<u8> {
    let mut encoder = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 20);
    encoder.write_all(text).expect("writing to memory cannot fail");
    encoder.into_inner()
}

fn chunks(bytes: &[u8]) -> Vec<Step> {
    bytes.chunks(37).map(|chunk| Step::Send(Bytes::copy_from_slice(chunk))).collect()
}

pub(super) fn honest(ground: &Ground) -> Vec<Site> {
    let packers: [(&str, &'static str, fn(&[u8]) -> Vec<u8>); 4] = [
        ("/gzip", "gzip", gzip),
        ("/x-gzip", "x-gzip", gzip),
        ("/brotli", "br", brotli),
        ("/deflate", "deflate", deflate),
    ];
    let mut site = ground.site("encodings");
    let mut links = Vec::new();
    for (path, name, pack) in packers {
        // Deflate and x-gzip are legal, but a client need not have asked for them.
        let fate = if matches!(name, "gzip" | "br") { Fate::Keep } else { Fate::Visit };
        let after = format!("/after{path}");
        let whole = Reply::html(pack(site.text(path, &[&after]).as_bytes())).header("Content-Encoding", name);
        let path_chunked = format!("{path}-chunked");
        let packed = pack(site.text(&path_chunked, &[&after]).as_bytes());
        let chunked =
            Reply::html("").header("Content-Encoding", name).body(Framing::Chunked, chunks(&packed));
        site = site.page(path, fate, whole).page(&path_chunked, fate, chunked);
        let after_fate = if fate == Fate::Keep { fate } else { Fate::Either };
        site = site.html(&after, after_fate, &["/"]);
        links.extend([path.to_owned(), path_chunked]);
    }
    vec![site.home(&links.iter().map(String::as_str).collect::<Vec<_>>())]
}

pub(super) fn lies(ground: &Ground) -> Vec<Site> {
    let site =
        ground.site("encodings-lie").home(&["/not-gzip", "/gzip-as-brotli", "/secretly-gzip", "/unknown"]);
    let text = |path: &str| site.text(path, &["/"]).into_bytes();
    let plain = Reply::html(text("/not-gzip")).header("Content-Encoding", "gzip");
    let wrong = Reply::html(gzip(&text("/gzip-as-brotli"))).header("Content-Encoding", "br");
    let secret = Reply::html(gzip(&text("/secretly-gzip")));
    let unknown = Reply::html(text("/unknown")).header("Content-Encoding", "x-snow");
    let site = site.page("/not-gzip", Fate::Visit, plain).page("/gzip-as-brotli", Fate::Visit, wrong);
    vec![site.page("/secretly-gzip", Fate::Visit, secret).page("/unknown", Fate::Visit, unknown)]
}

pub(super) fn bomb(ground: &Ground) -> Vec<Site> {
    let site = ground.site("gzip-bomb").html("/", Fate::Keep, &["/boom"]);
    let boom = || Reply::html(BOMB.clone()).header("Content-Encoding", "gzip");
    vec![site.page("/boom", Fate::Visit, Play::Made(boom))]
}
