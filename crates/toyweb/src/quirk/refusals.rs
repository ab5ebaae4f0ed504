//! Hosts that want to be left alone and say so in the answer.

use super::Ground;
use crate::{reply::Reply, site::Site, truth::Fate};

/// Pages that are forbidden, far more than a polite crawler tries.
const FORBIDDEN: usize = 50;

pub(super) fn forbids(ground: &Ground) -> Vec<Site> {
    let paths: Vec<String> = (1..=FORBIDDEN).map(|n| format!("/page-{n}")).collect();
    let site = ground
        .site("forbids")
        .home(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    vec![paths.iter().fold(site, |site, path| {
        site.page(path, Fate::Either, Reply::error(403))
    })]
}

pub(super) fn challenge(ground: &Ground) -> Vec<Site> {
    let html = "<!DOCTYPE html>\n<title>Just a moment...</title>\n<h1>Checking your browser before you proceed</h1>\n\
        <form id=\"challenge-form\" action=\"/cdn-cgi/challenge-platform/verify\" method=\"POST\"></form>\n\
        <a href=\"/one\">one</a>\n";
    let page =
        || Reply::new(403, "text/html; charset=utf-8", html).header("cf-mitigated", "challenge");
    let site = ground.site("challenge").page("/", Fate::Visit, page());
    vec![site.page("/one", Fate::Either, page())]
}
