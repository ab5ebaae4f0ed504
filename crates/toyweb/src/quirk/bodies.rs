//! Bodies that are broken, boundless or no HTML.

use super::Ground;
use crate::{
    reply::{Ending, Framing, Reply, Step},
    site::Site,
    truth::Fate,
};
use bytes::Bytes;

/// Markup that a parser following the HTML standard reads without doubt.
const BROKEN: &str = "<title>broken-html.test/</title><body>\0<p><b><i>unclosed <a href=/one>one <a href='/two'>two</p></i>\n\
    <table><a href=\"/three\">in a table</table><a name=x name=y\nhref\n=\n\"/four\"\n>four</a \n x>\n\
    <a href=\"/five\" href=\"/not-five\">five</a></div></body></html><A HREF=/six>after the end\n\
    <p title=\"<a href='/not-seven'>\">&lt;a href=/not-eight> &notanentity; <a href=\"/n&#105;ne\">nine</a>\
    <textarea><a href=\"/not-ten\"></textarea><a href=http:>no</a><a href=\"//\">no</a><a href=\"http://[\">no</a>\
    <!-- never closed <a href=\"/not-eleven\">";

pub(super) fn broken_html(ground: &Ground) -> Vec<Site> {
    let site = ground
        .site("broken-html")
        .page("/", Fate::Keep, Reply::html(BROKEN));
    let site = site.leaves(&["/one", "/two", "/three", "/four", "/five", "/six", "/nine"]);
    vec![site.forbidden(&[
        "/not-five",
        "/not-seven",
        "/not-eight",
        "/not-ten",
        "/not-eleven",
    ])]
}

pub(super) fn not_html(ground: &Ground) -> Vec<Site> {
    let link = "<a href=\"/fake\">not a link</a>";
    let files = [
        ("/photo.jpg", "image/jpeg"),
        ("/paper.pdf", "application/pdf"),
        ("/setup.exe", "application/octet-stream"),
        ("/no-extension", "video/mp4"),
        ("/data.json", "application/json"),
    ];
    let site = ground
        .site("not-html")
        .home(&files.map(|(path, _)| path))
        .forbidden(&["/fake"]);
    vec![files.into_iter().fold(site, |site, (path, kind)| {
        site.page(path, Fate::Either, Reply::new(200, kind, link))
    })]
}

/// Half a megabyte of text, to be repeated.
fn text() -> Bytes {
    Bytes::from("<p>and so on, and so forth, for ever and ever\n".repeat(11_000))
}

/// A site with a home page and one page that ends badly or not at all.
fn site(ground: &Ground, name: &str, page: Reply) -> Vec<Site> {
    vec![
        ground
            .site(name)
            .home(&["/page", "/other"])
            .leaves(&["/other"])
            .page("/page", Fate::Visit, page),
    ]
}

pub(super) fn endless(ground: &Ground) -> Vec<Site> {
    let body = vec![
        Step::Send("<title>endless</title>".into()),
        Step::Repeat(text(), None),
    ];
    site(
        ground,
        "body-endless",
        Reply::html("").body(Framing::Chunked, body),
    )
}

pub(super) fn large(ground: &Ground) -> Vec<Site> {
    let body = vec![
        Step::Send("<title>large</title><a href=\"/early\">x</a>".into()),
        Step::Repeat(text(), Some(7)),
    ];
    let sites = site(
        ground,
        "body-large",
        Reply::html("").body(Framing::Length, body),
    );
    sites
        .into_iter()
        .map(|site| site.html("/early", Fate::Either, &["/"]))
        .collect()
}

pub(super) fn reset(ground: &Ground) -> Vec<Site> {
    let page = Reply::html("").body(
        Framing::Claimed(10_000),
        vec![Step::Send("<title>broken off".into())],
    );
    site(ground, "body-reset", page.ending(Ending::Reset))
}

pub(super) fn short(ground: &Ground) -> Vec<Site> {
    let page = Reply::html("").body(
        Framing::Claimed(10_000),
        vec![Step::Send("<title>too short".into())],
    );
    site(ground, "body-short", page)
}

pub(super) fn long(ground: &Ground) -> Vec<Site> {
    let body = "<title>longer than it says</title><p>and on";
    site(
        ground,
        "body-long",
        Reply::html("").body(Framing::Claimed(34), vec![Step::Send(body.into())]),
    )
}
