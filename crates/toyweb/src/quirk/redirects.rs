//! Redirects that stay on the public web.

use super::Ground;
use crate::{reply::Reply, site::Site, truth::Fate};

pub(super) fn every_status(ground: &Ground) -> Vec<Site> {
    let statuses = [301, 302, 303, 307, 308];
    let links = statuses.map(|status| format!("/{status}"));
    let mut site = ground
        .site("redirects")
        .home(&links.each_ref().map(String::as_str));
    for status in statuses {
        let target = format!("/after-{status}");
        let location = if status % 2 == 0 {
            target.clone()
        } else {
            ground.origin("redirects") + &target + "#here"
        };
        site = site.page(
            &format!("/{status}"),
            Fate::Visit,
            Reply::redirect(status, location),
        );
        site = site.leaves(&[&target]);
    }
    vec![site]
}

pub(super) fn chain(ground: &Ground) -> Vec<Site> {
    let mut site = ground.site("redirect-chain").home(&["/1"]).leaves(&["/6"]);
    for hop in 1..6 {
        site = site.page(
            &format!("/{hop}"),
            Fate::Visit,
            Reply::redirect(302, format!("/{}", hop + 1)),
        );
    }
    vec![site]
}

pub(super) fn circle(ground: &Ground) -> Vec<Site> {
    let site = ground.site("redirect-loop").home(&["/self", "/there"]);
    let site = site.page("/self", Fate::Visit, Reply::redirect(301, "/self"));
    let site = site.page("/there", Fate::Visit, Reply::redirect(302, "/back"));
    vec![site.page("/back", Fate::Visit, Reply::redirect(302, "/there"))]
}

pub(super) fn away(ground: &Ground) -> Vec<Site> {
    let target = ground.origin("redirect-arrival") + "/only-by-redirect";
    vec![
        ground.site("redirect-away").home(&["/away"]).page(
            "/away",
            Fate::Visit,
            Reply::redirect(301, target),
        ),
        ground
            .site("redirect-arrival")
            .home(&[])
            .leaves(&["/only-by-redirect"]),
    ]
}

pub(super) fn schemes(ground: &Ground) -> Vec<Site> {
    let targets = [
        ("/ftp", "ftp://example.com/"),
        ("/file", "file:///etc/passwd"),
        ("/script", "javascript:alert(1)"),
        ("/data", "data:text/html,<p>hello"),
        ("/nothing", ""),
        ("/nonsense", "http://[::::]:port/"),
    ];
    let site = ground
        .site("redirect-schemes")
        .home(&targets.map(|(path, _)| path));
    let add = |site: Site, (path, target): (&str, &'static str)| {
        site.page(path, Fate::Visit, Reply::redirect(302, target))
    };
    vec![targets.into_iter().fold(site, add)]
}
