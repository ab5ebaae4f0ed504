//! Hosts that are busy and say for how long.

use super::Ground;
use crate::{
    reply::Reply,
    site::{Play, RetryAfter, Site},
    truth::Fate,
};

/// Times that a busy page refuses before it answers.
const TIMES: u32 = 2;
/// How long it asks to be left alone, in seconds: short, for tests.
const SECONDS: u32 = 2;

fn busy(ground: &Ground, name: &str, status: u16, form: RetryAfter) -> Vec<Site> {
    let site = ground.site(name).home(&["/busy", "/idle"]);
    let then = Reply::html(site.text("/busy", &["/"]));
    let play = Play::Busy {
        times: TIMES,
        status,
        seconds: SECONDS,
        form,
        then,
    };
    vec![
        site.page("/busy", Fate::Later, play)
            .html("/idle", Fate::Later, &["/"]),
    ]
}

pub(super) fn seconds(ground: &Ground) -> Vec<Site> {
    busy(ground, "busy-seconds", 429, RetryAfter::Seconds)
}

pub(super) fn date(ground: &Ground) -> Vec<Site> {
    busy(ground, "busy-date", 503, RetryAfter::Date)
}

pub(super) fn always(ground: &Ground) -> Vec<Site> {
    let refusal = Reply::error(503).header("Retry-After", "120");
    vec![ground.site("busy-always").page("/", Fate::Visit, refusal)]
}
