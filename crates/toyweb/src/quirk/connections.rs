//! Servers that are slow, old-fashioned or no web servers.

use super::Ground;
use crate::{
    reply::{Ending, Framing, Reply, Step},
    site::Site,
    truth::Fate,
};
use std::time::Duration;

/// Pause between two bytes of a slow answer: long enough that no crawler should wait for the end,
/// and shorter than any time-out between two bytes.
const PAUSE: Duration = Duration::from_millis(500);

fn site(ground: &Ground, name: &str, page: Reply) -> Vec<Site> {
    vec![
        ground
            .site(name)
            .home(&["/page", "/other"])
            .leaves(&["/other"])
            .page("/page", Fate::Visit, page),
    ]
}

fn raw(bytes: impl Into<bytes::Bytes>) -> Reply {
    Reply::empty(0).body(Framing::Raw, vec![Step::Send(bytes.into())])
}

pub(super) fn slow_head(ground: &Ground) -> Vec<Site> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nX-Patience: {}\r\n\r\n",
        "a".repeat(1000)
    );
    let reply = Reply::empty(0).body(Framing::Raw, vec![Step::Trickle(head.into(), PAUSE)]);
    site(ground, "slow-head", reply)
}

pub(super) fn slow_body(ground: &Ground) -> Vec<Site> {
    let body = format!("<title>slow</title><p>{}", "a".repeat(1000));
    site(
        ground,
        "slow-body",
        Reply::html("").body(Framing::Length, vec![Step::Trickle(body.into(), PAUSE)]),
    )
}

pub(super) fn old_http(ground: &Ground) -> Vec<Site> {
    let site = ground.site("old-http");
    let body = |path: &str, links| vec![Step::Send(site.text(path, links).into())];
    let old = |body| {
        Reply::html("")
            .version("HTTP/1.0")
            .body(Framing::Close, body)
    };
    let (home, page) = (old(body("/", &["/page"])), old(body("/page", &["/"])));
    vec![
        site.page("/", Fate::Keep, home)
            .page("/page", Fate::Keep, page),
    ]
}

pub(super) fn huge_head(ground: &Ground) -> Vec<Site> {
    let headers = format!("X-Filler: {}\r\n", "a".repeat(1000)).repeat(260);
    let reply = raw(format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n{headers}\r\n<p>x"
    ));
    site(ground, "huge-head", reply)
}

pub(super) fn reset(ground: &Ground) -> Vec<Site> {
    site(ground, "reset", raw("").ending(Ending::Reset))
}

pub(super) fn not_http(ground: &Ground) -> Vec<Site> {
    site(
        ground,
        "not-http",
        raw("220 mail.example.com ESMTP\r\n\0\x01\x02\r\n\r\n"),
    )
}
