//! `apoidea watch`: being told when something changes.

use crate::{
    arguments::{Place, WatchOptions},
    client::Client,
    control::print_json,
};
use anyhow::{Context, bail};
use apoidea_model::Time;
use apoidea_peer::{WatchList, WatchRequest, WatchedChange, words};
use serde_json::json;
use std::{
    process::ExitCode,
    time::{Duration, SystemTime},
};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// Changes that are shown.
const SHOWN: usize = 10;

pub fn watch(place: &Place, options: WatchOptions) -> anyhow::Result<ExitCode> {
    let until = options.until.as_deref().map(moment).transpose()?;
    let target = options.target.as_deref().map(str::parse).transpose()?;
    let client = Client::connect(place)?;
    let list: WatchList = match (target, options.end) {
        (Some(target), true) => {
            let request = WatchRequest {
                target,
                until: None,
            };
            client.delete("/api/watches", Some(&request))?
        }
        (Some(target), false) => {
            client.post("/api/watches", Some(&WatchRequest { target, until }))?
        }
        (None, _) if options.new_feed => client.post("/api/feed", None::<&()>)?,
        (None, _) => client.get("/api/watches")?,
    };
    let changes: Vec<WatchedChange> = client.get("/api/changes")?;
    if options.output.json {
        return print_json(&json!({
            "watches": list.watches,
            "feed": format!("{}{}", client.address(), list.feed),
            "changes": changes,
        }));
    }
    show(&list, &changes, client.address());
    Ok(ExitCode::SUCCESS)
}

fn show(list: &WatchList, changes: &[WatchedChange], address: &str) {
    let now = Time::from(SystemTime::now());
    if list.watches.is_empty() {
        println!("Nothing is watched. Begin with: apoidea watch https://example.org/page");
    }
    for watch in &list.watches {
        let days = watch.until.since(now).as_secs().div_ceil(24 * 3600);
        println!("{}", watch.target);
        println!("  {}; ends in {days} days", words::watch(watch, now));
    }
    println!("Feed for any reader: {address}{}", list.feed);
    for change in changes.iter().take(SHOWN) {
        println!("\n{}  {}", ago(change.at, now), words::change(change));
        for (mark, text) in [('+', &change.added), ('-', &change.removed)] {
            text.lines().for_each(|line| println!("  {mark} {line}"));
        }
        if change.is_cut {
            println!("  … and more");
        }
    }
}

fn ago(at: Time, now: Time) -> String {
    let minutes = now.since(at).as_secs() / 60;
    match minutes {
        0..60 => format!("{minutes} min ago"),
        60..2880 => format!("{} h ago", minutes / 60),
        _ => format!("{} days ago", minutes / 1440),
    }
}

/// A number of days from now, or a date.
fn moment(text: &str) -> anyhow::Result<Time> {
    if let Some(days) = text.strip_suffix('d') {
        let days: u32 = days
            .parse()
            .ok()
            .filter(|days| *days > 0)
            .with_context(|| format!("{text:?} is no number of days, such as 30d"))?;
        return Ok(Time::from(SystemTime::now()) + DAY * days);
    }
    let whole = format!("{text}T00:00:00Z");
    let read = apoidea_store::archive::parse_time(text)
        .or_else(|| apoidea_store::archive::parse_time(&whole));
    match read {
        Some(time) => Ok(time),
        None => bail!("{text:?} is no time: name days, such as 30d, or a date, such as 2026-12-31"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_read_and_anything_else_is_explained() {
        let now = Time::from(SystemTime::now());
        let days = moment("30d").unwrap().since(now).as_secs_f64() / DAY.as_secs_f64();
        assert!((29.9..30.1).contains(&days), "{days}");
        let date = moment("2026-12-31").unwrap();
        assert_eq!(date, moment("2026-12-31T00:00:00Z").unwrap());
        for wrong in ["", "d", "0d", "-1d", "tomorrow", "2026-13-01"] {
            let why = moment(wrong).unwrap_err().to_string();
            assert!(why.contains("30d"), "{why}");
        }
    }
}
