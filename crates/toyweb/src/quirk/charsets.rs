//! Pages in other character sets than UTF-8, declared rightly, wrongly or not at all. Each links to
//! a page that is only found if the bytes were read well enough.

use super::Ground;
use crate::{reply::Reply, site::Site, truth::Fate};
use encoding_rs::{Encoding, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

/// Who says which character set it is.
enum Declared {
    Header(&'static str),
    Meta(&'static str),
    /// A byte-order mark, or nobody.
    Not,
}

fn utf16le(text: &str, mark: &[u8]) -> Vec<u8> {
    mark.iter()
        .copied()
        .chain(text.encode_utf16().flat_map(u16::to_le_bytes))
        .collect()
}

fn encoded(encoding: &'static Encoding) -> impl Fn(&str) -> Vec<u8> {
    move |text| encoding.encode(text).0.into_owned()
}

fn page(
    site: Site,
    name: &str,
    words: &str,
    declared: Declared,
    encode: impl Fn(&str) -> Vec<u8>,
) -> Site {
    let (path, after) = (format!("/{name}"), format!("/after-{name}"));
    let meta = match declared {
        Declared::Meta(charset) => format!("<meta charset=\"{charset}\">"),
        _ => String::new(),
    };
    let html = format!(
        "<!DOCTYPE html>\n<html><head>{meta}<title>{name}: {words}</title></head>\n\
         <body><p>{words}</p><a href=\"{after}\">{words}</a></body></html>\n"
    );
    let content_type = match declared {
        Declared::Header(content_type) => content_type,
        _ => "text/html",
    };
    site.page(
        &path,
        Fate::Keep,
        Reply::new(200, content_type, encode(&html)),
    )
    .leaves(&[&after])
}

pub(super) fn all(ground: &Ground) -> Vec<Site> {
    use Declared::{Header, Meta, Not};
    let names = [
        "windows-1251",
        "shift-jis",
        "utf-16-mark",
        "utf-16-header",
        "utf-8-undeclared",
        "lying-header",
        "unknown",
    ];
    let links = names.map(|name| format!("/{name}"));
    let site = ground
        .site("charsets")
        .home(&links.each_ref().map(String::as_str));
    let utf8 = |text: &str| text.as_bytes().to_vec();
    let site = page(
        site,
        names[0],
        "Пчёлы летят",
        Header("text/html; charset=windows-1251"),
        encoded(WINDOWS_1251),
    );
    let site = page(
        site,
        names[1],
        "蜜蜂の巣",
        Meta("shift_jis"),
        encoded(SHIFT_JIS),
    );
    let site = page(site, names[2], "Bienenstöcke", Not, |text| {
        utf16le(text, b"\xff\xfe")
    });
    let site = page(
        site,
        names[3],
        "ruche d’abeilles",
        Header("text/html; charset=utf-16le"),
        |text| utf16le(text, b""),
    );
    let site = page(site, names[4], "včelí úl", Not, utf8);
    let site = page(
        site,
        names[5],
        "déjà vu",
        Header("text/html; charset=utf-8"),
        encoded(WINDOWS_1252),
    );
    vec![page(
        site,
        names[6],
        "colmena",
        Header("text/html; charset=klingon"),
        utf8,
    )]
}
