//! Ways into a private network: redirects and links to addresses that a crawler must never connect
//! to.

use super::Ground;
use crate::{reply::Reply, site::Site, truth::Fate};

/// URLs that lead to honeypots and into private networks, in the spellings that fool a careless
/// check.
fn targets(ground: &Ground) -> Vec<String> {
    let port = ground.ports.http;
    let mut targets: Vec<String> = ground
        .honeypots
        .iter()
        .map(|address| format!("http://{address}/honeypot"))
        .collect();
    if ground
        .honeypots
        .iter()
        .any(|honeypot| honeypot.port() == port && honeypot.is_ipv4())
    {
        targets.extend(
            [
                "2130706433",
                "0x7f.1",
                "127.1",
                "017700000001",
                "[::ffff:127.0.0.1]",
                "0",
                "127.0.0.1.",
            ]
            .map(|host| format!("http://{host}:{port}/honeypot")),
        );
        targets.push(format!("http://user@127.0.0.1:{port}/honeypot"));
    }
    targets.extend(
        [
            "10.0.0.1",
            "192.168.1.1",
            "172.16.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "[fe80::1]",
            "[fd00::1]",
        ]
        .map(|host| format!("http://{host}:{port}/latest/meta-data/")),
    );
    targets
}

pub(super) fn redirects(ground: &Ground) -> Vec<Site> {
    let targets = targets(ground);
    let paths: Vec<String> = (1..=targets.len()).map(|n| format!("/{n}")).collect();
    let site = ground.site("redirect-private");
    let mut site = site.home(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    for (path, target) in paths.iter().zip(targets) {
        site = site.page(path, Fate::Visit, Reply::redirect(302, target));
    }
    vec![site]
}

pub(super) fn links(ground: &Ground) -> Vec<Site> {
    let targets = targets(ground);
    let mut links: Vec<&str> = targets.iter().map(String::as_str).collect();
    links.push("/honest");
    vec![
        ground
            .site("links-private")
            .home(&links)
            .leaves(&["/honest"]),
    ]
}
