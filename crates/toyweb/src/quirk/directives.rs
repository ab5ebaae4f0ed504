//! Wishes of a page about itself: `X-Robots-Tag` headers and `<meta name=robots>`. What asks not to be indexed or
//! archived is visited and not kept; its links are followed unless it says otherwise.

use super::Ground;
use crate::{reply::Reply, site::Site, truth::Fate};

/// Pages by name: header, meta name and content, what becomes of the page, what becomes of its link.
const PAGES: [(&str, Option<&str>, Option<(&str, &str)>, Fate, Fate); 14] = [
    ("meta-noindex", None, Some(("robots", "noindex")), Fate::Visit, Fate::Keep),
    ("meta-nofollow", None, Some(("ROBOTS", "Index, NoFollow")), Fate::Keep, Fate::Never),
    ("meta-none", None, Some(("robots", "none")), Fate::Visit, Fate::Never),
    ("meta-noarchive", None, Some(("robots", "noarchive")), Fate::Visit, Fate::Keep),
    ("meta-all", None, Some(("robots", "all")), Fate::Keep, Fate::Keep),
    ("meta-apoidea", None, Some(("apoidea", "noindex, nofollow")), Fate::Visit, Fate::Never),
    ("meta-other", None, Some(("googlebot", "noindex, nofollow")), Fate::Keep, Fate::Keep),
    ("header-noindex", Some("noindex"), None, Fate::Visit, Fate::Keep),
    ("header-nofollow", Some("nofollow"), None, Fate::Keep, Fate::Never),
    ("header-none", Some("none"), None, Fate::Visit, Fate::Never),
    ("header-noarchive", Some("max-snippet: 10, noarchive"), None, Fate::Visit, Fate::Keep),
    ("header-apoidea", Some("apoidea: noindex, nofollow"), None, Fate::Visit, Fate::Never),
    ("header-other", Some("googlebot: noindex, nofollow"), None, Fate::Keep, Fate::Keep),
    ("both", Some("noindex"), Some(("robots", "nofollow")), Fate::Visit, Fate::Never),
];

pub(super) fn all(ground: &Ground) -> Vec<Site> {
    let paths = PAGES.map(|(name, ..)| format!("/{name}"));
    let mut site = ground.site("directives");
    let links: String = paths.iter().map(|path| format!("<a href=\"{path}\">{path}</a>\n")).collect();
    let nofollow =
        "<a rel=\"nofollow\" href=\"/rel-nofollow\">x</a><a rel='external NOFOLLOW ugc' href=/rel-many>x</a>";
    let home = format!("<!DOCTYPE html>\n<title>directives.test</title>\n{links}{nofollow}");
    for (name, header, meta, fate, link_fate) in PAGES {
        let after = format!("/after-{name}");
        let meta = meta
            .map_or(String::new(), |(name, content)| format!("<meta name=\"{name}\" content=\"{content}\">"));
        let html = format!("<!DOCTYPE html>\n<title>{name}</title>{meta}\n<a href=\"{after}\">after</a>");
        let reply = match header {
            Some(header) => Reply::html(html).header("X-Robots-Tag", header),
            None => Reply::html(html),
        };
        site = site.page(&format!("/{name}"), fate, reply).html(&after, link_fate, &["/"]);
    }
    vec![site.page("/", Fate::Keep, Reply::html(home)).forbidden(&["/rel-nofollow", "/rel-many"])]
}
