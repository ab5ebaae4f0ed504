//! robots.txt of every kind (RFC 9309).

use super::Ground;
use crate::{
    reply::{Ending, Framing, Reply, Step},
    site::{Play, Site},
    truth::Fate,
};
use std::time::Duration;

fn text(text: impl Into<String>) -> Reply {
    Reply::new(200, "text/plain", text.into())
}

/// A host with three ordinary pages.
fn open(ground: &Ground, name: &str, robots: impl Into<Play>) -> Site {
    ground
        .site(name)
        .robots(robots)
        .home(&["/one", "/two"])
        .leaves(&["/one", "/two"])
}

/// A host whose robots.txt cannot be read: nothing but robots.txt may be requested.
fn closed(ground: &Ground, name: &str, robots: impl Into<Play>) -> Site {
    ground
        .site(name)
        .html("/", Fate::Never, &["/one"])
        .forbidden(&["/one"])
        .robots(robots)
}

/// A host where `/no` is disallowed, however its robots.txt comes to be known.
fn mostly_open(ground: &Ground, name: &str, robots: impl Into<Play>) -> Site {
    ground
        .site(name)
        .robots(robots)
        .home(&["/one", "/no"])
        .leaves(&["/one"])
        .forbidden(&["/no"])
}

pub(super) fn forbidden(ground: &Ground) -> Vec<Site> {
    vec![open(ground, "robots-403", Reply::error(403))]
}

pub(super) fn rules(ground: &Ground) -> Vec<Site> {
    let robots = "User-agent: *\nDisallow: /no/\nAllow: /no/but-yes\nDisallow: /%7Ehome\n";
    let links = [
        "/yes",
        "/no/",
        "/no/way",
        "/no/but-yes",
        "/none",
        "/~home/x",
    ];
    let site = ground
        .site("robots-rules")
        .robots(text(robots))
        .home(&links);
    vec![
        site.leaves(&["/yes", "/no/but-yes", "/none"])
            .forbidden(&["/no/", "/no/way", "/~home/x"]),
    ]
}

pub(super) fn wildcards(ground: &Ground) -> Vec<Site> {
    let robots = "User-agent: *\nDisallow: /*.php$\nDisallow: /*/draft/\nAllow: /a/draft/final\n";
    let links = [
        "/x.php",
        "/x.php5",
        "/a/draft/one",
        "/a/draft/final",
        "/draft/x",
    ];
    let site = ground
        .site("robots-wildcards")
        .robots(text(robots))
        .home(&links);
    vec![
        site.leaves(&["/x.php5", "/a/draft/final", "/draft/x"])
            .forbidden(&["/x.php", "/a/draft/one"]),
    ]
}

pub(super) fn delay(ground: &Ground) -> Vec<Site> {
    vec![open(
        ground,
        "robots-delay",
        text("User-agent: *\nCrawl-delay: 2\nDisallow:\n"),
    )]
}

pub(super) fn agent(ground: &Ground) -> Vec<Site> {
    let robots = "User-agent: *\nDisallow: /\n\nUser-agent: apoidea\nDisallow: /no\n\n\
                  User-agent: other\nDisallow: /one\n\nUser-agent: Apoidea\nDisallow: /neither\n";
    let site = ground
        .site("robots-agent")
        .robots(text(robots))
        .home(&["/one", "/no", "/neither"]);
    vec![site.leaves(&["/one"]).forbidden(&["/no", "/neither"])]
}

pub(super) fn error(ground: &Ground) -> Vec<Site> {
    vec![closed(ground, "robots-503", Reply::error(503))]
}

pub(super) fn recovers(ground: &Ground) -> Vec<Site> {
    let robots = Play::First(2, Reply::error(500), text("User-agent: *\nDisallow:\n"));
    let site = ground
        .site("robots-recovers")
        .html("/", Fate::Later, &["/one"]);
    vec![site.html("/one", Fate::Later, &["/"]).robots(robots)]
}

pub(super) fn too_many(ground: &Ground) -> Vec<Site> {
    vec![closed(
        ground,
        "robots-429",
        Reply::error(429).header("Retry-After", "3600"),
    )]
}

pub(super) fn slow(ground: &Ground) -> Vec<Site> {
    let body = "User-agent: *\nDisallow: /no\n";
    let steps = vec![Step::Wait(Duration::from_secs(3)), Step::Send(body.into())];
    vec![mostly_open(
        ground,
        "robots-slow",
        text("").body(Framing::Length, steps),
    )]
}

pub(super) fn huge(ground: &Ground) -> Vec<Site> {
    let filler = "# There is much to be said about robots, and most of it is said here.\n";
    let before = filler.repeat(400 * 1024 / filler.len());
    let after = filler.repeat(624 * 1024 / filler.len());
    let robots = format!("{before}User-agent: *\nDisallow: /no\n{after}");
    vec![mostly_open(ground, "robots-huge", text(robots))]
}

pub(super) fn moved(ground: &Ground) -> Vec<Site> {
    let elsewhere = ground.origin("robots-elsewhere");
    let near = Reply::redirect(301, format!("{elsewhere}/5"));
    let far = Reply::redirect(302, format!("{elsewhere}/1"));
    let mut target = ground.site("robots-elsewhere").home(&[]);
    for hop in 1..5 {
        target = target.page(
            &format!("/{hop}"),
            Fate::Either,
            Reply::redirect(307, format!("/{}", hop + 1)),
        );
    }
    let target = target.page("/5", Fate::Either, text("User-agent: *\nDisallow: /no\n"));
    vec![
        mostly_open(ground, "robots-moved", near),
        mostly_open(ground, "robots-moved-far", far),
        target,
    ]
}

pub(super) fn binary(ground: &Ground) -> Vec<Site> {
    let bytes: Vec<u8> = (0..4096u32).map(|n| (n * n % 251) as u8).collect();
    vec![open(
        ground,
        "robots-binary",
        Reply::new(200, "application/octet-stream", bytes),
    )]
}

pub(super) fn reset(ground: &Ground) -> Vec<Site> {
    let broken = Reply::empty(0)
        .body(Framing::Raw, Vec::new())
        .ending(Ending::Reset);
    vec![closed(ground, "robots-reset", broken)]
}
