//! Traps: hosts with endlessly many URLs. Each also has an honest page, which must not be lost in
//! the trap.

use super::Ground;
use crate::{reply::Reply, site::Site};

/// A page of a trap: unlike the others, and with these links.
fn page(path: &str, links: &[String]) -> Reply {
    let items: String = links
        .iter()
        .map(|link| format!("<a href=\"{}\">more</a>\n", link.replace('&', "&amp;")))
        .collect();
    Reply::html(format!(
        "<!DOCTYPE html>\n<title>{}</title>\n{items}",
        path.replace(['<', '&'], "")
    ))
}

/// A host with a way into the trap, and `about` which is honest.
fn trap(
    ground: &Ground,
    name: &str,
    start: &str,
    answer: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static,
) -> Vec<Site> {
    vec![
        ground
            .site(name)
            .home(&[start, "/about"])
            .leaves(&["/about"])
            .endless(answer),
    ]
}

pub(super) fn calendar(ground: &Ground) -> Vec<Site> {
    trap(
        ground,
        "trap-calendar",
        "/calendar?year=2024&month=1",
        |path| {
            let (year, month) = path
                .strip_prefix("/calendar?year=")?
                .split_once("&month=")?;
            let months = year
                .parse::<i64>()
                .ok()?
                .checked_mul(12)?
                .checked_add(month.parse::<i64>().ok()? - 1)?;
            let link = |months: i64| {
                format!(
                    "/calendar?year={}&month={}",
                    months.div_euclid(12),
                    months.rem_euclid(12) + 1
                )
            };
            Some(page(
                path,
                &[link(months.checked_add(1)?), link(months.checked_sub(1)?)],
            ))
        },
    )
}

pub(super) fn session(ground: &Ground) -> Vec<Site> {
    trap(
        ground,
        "trap-session",
        "/shop?item=1&PHPSESSID=0123456789abcdef0123456789abcdef",
        |path| {
            let _ = path.strip_prefix("/shop")?;
            let id = path.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            let item = id % 5 + 1;
            let links = [
                format!("/shop?item={item}&PHPSESSID={id:016x}{:016x}", !id),
                format!("/shop/item-{item};jsessionid={:016X}", id.rotate_left(17)),
                format!("/shop?sid={:x}&item={item}", id.rotate_left(31)),
            ];
            Some(page(&format!("/shop item {item}"), &links))
        },
    )
}

pub(super) fn repeat(ground: &Ground) -> Vec<Site> {
    trap(ground, "trap-repeat", "/images/css/", |path| {
        let is_trapped = path.starts_with("/images/") && path.ends_with('/');
        is_trapped.then(|| {
            page(
                "same",
                &[format!("{path}images/css/"), format!("{path}js/")],
            )
        })
    })
}

pub(super) fn depth(ground: &Ground) -> Vec<Site> {
    trap(ground, "trap-depth", "/deep/1/", |path| {
        let level: u64 = path
            .strip_suffix('/')?
            .strip_prefix("/deep/")?
            .rsplit('/')
            .next()?
            .parse()
            .ok()?;
        Some(page(path, &[format!("{path}{}/", level.checked_add(1)?)]))
    })
}

pub(super) fn facets(ground: &Ground) -> Vec<Site> {
    const FACETS: [&str; 6] = ["colour", "size", "brand", "sort", "view", "page"];
    trap(ground, "trap-facets", "/find?colour=1", |path| {
        let query = path.strip_prefix("/find?")?;
        let links = FACETS.map(|facet| format!("/find?{query}&{facet}={}", query.len() % 9));
        Some(page(path, &links))
    })
}
