//! The same content again: under several URLs, and at a second visit.

use super::Ground;
use crate::{
    reply::Reply,
    site::{Play, Site},
    truth::Fate,
};

const LICENCE: &str = "<!DOCTYPE html>\n<title>Licence</title>\n<p>Everyone may copy this page, and everyone does.</p>\n";

pub(super) fn everywhere(ground: &Ground) -> Vec<Site> {
    let copy = || Reply::html(LICENCE);
    let one =
        ground
            .site("copy-one")
            .home(&["/licence", "/licence?print=1", "/about/licence.html"]);
    let one = one
        .copy("/licence", "licence", copy())
        .copy("/licence?print=1", "licence", copy());
    let two = ground
        .site("copy-two")
        .home(&["/licence"])
        .copy("/licence", "licence", copy());
    // Line ends are not content.
    let other_lines = Reply::html(LICENCE.replace('\n', "\r\n"));
    vec![one.copy("/about/licence.html", "licence", other_lines), two]
}

pub(super) fn conditional(ground: &Ground) -> Vec<Site> {
    let site = ground.site("conditional").home(&["/page"]);
    let reply = Reply::html(site.text("/page", &["/"]));
    let play = Play::Unless {
        etag: "\"honey-1\"",
        modified: "Fri, 20 May 2022 10:00:00 GMT",
        reply,
    };
    vec![site.page("/page", Fate::Keep, play)]
}
