//! Wishes of a page about itself: `X-Robots-Tag` headers and `<meta name=robots>`. What asks not to
//! be indexed or archived is visited and not kept; its links are followed unless it says otherwise.

use super::Ground;
use crate::{reply::Reply, site::Site, truth::Fate};

/// A page that asks for something.
struct Wish {
    name: &'static str,
    header: Option<&'static str>,
    meta: &'static str,
    /// What becomes of the page.
    fate: Fate,
    /// What becomes of the page it links to.
    after: Fate,
}

const fn in_meta(name: &'static str, meta: &'static str, fate: Fate, after: Fate) -> Wish {
    Wish {
        name,
        header: None,
        meta,
        fate,
        after,
    }
}

const fn in_header(name: &'static str, header: &'static str, fate: Fate, after: Fate) -> Wish {
    Wish {
        name,
        header: Some(header),
        meta: "",
        fate,
        after,
    }
}

const WISHES: [Wish; 14] = [
    in_meta(
        "meta-noindex",
        "<meta name=robots content=noindex>",
        Fate::Visit,
        Fate::Keep,
    ),
    in_meta(
        "meta-nofollow",
        "<META NAME=ROBOTS CONTENT=\"Index, NoFollow\">",
        Fate::Keep,
        Fate::Never,
    ),
    in_meta(
        "meta-none",
        "<meta content='none' name='robots'>",
        Fate::Visit,
        Fate::Never,
    ),
    in_meta(
        "meta-noarchive",
        "<meta name=\"robots\" content=\"noarchive\">",
        Fate::Visit,
        Fate::Keep,
    ),
    in_meta(
        "meta-all",
        "<meta name=\"robots\" content=\"all\">",
        Fate::Keep,
        Fate::Keep,
    ),
    in_meta(
        "meta-apoidea",
        "<meta name=\"apoidea\" content=\"noindex, nofollow\">",
        Fate::Visit,
        Fate::Never,
    ),
    in_meta(
        "meta-other",
        "<meta name=\"googlebot\" content=\"noindex, nofollow\">",
        Fate::Keep,
        Fate::Keep,
    ),
    in_header("header-noindex", "noindex", Fate::Visit, Fate::Keep),
    in_header("header-nofollow", "nofollow", Fate::Keep, Fate::Never),
    in_header("header-none", "none", Fate::Visit, Fate::Never),
    in_header(
        "header-noarchive",
        "max-snippet: 10, noarchive",
        Fate::Visit,
        Fate::Keep,
    ),
    in_header(
        "header-apoidea",
        "apoidea: noindex, nofollow",
        Fate::Visit,
        Fate::Never,
    ),
    in_header(
        "header-other",
        "googlebot: noindex, nofollow",
        Fate::Keep,
        Fate::Keep,
    ),
    Wish {
        name: "both",
        header: Some("noindex"),
        meta: "<meta name=robots content=nofollow>",
        fate: Fate::Visit,
        after: Fate::Never,
    },
];

pub(super) fn all(ground: &Ground) -> Vec<Site> {
    let links: String = WISHES
        .iter()
        .map(|wish| format!("<a href=\"/{0}\">{0}</a>\n", wish.name))
        .collect();
    let nofollow = "<a rel=\"nofollow\" href=\"/rel-nofollow\">x</a><a rel='external NOFOLLOW ugc' href=/rel-many>x</a>";
    let home = format!("<!DOCTYPE html>\n<title>directives.test</title>\n{links}{nofollow}");
    let site = ground
        .site("directives")
        .page("/", Fate::Keep, Reply::html(home));
    vec![
        WISHES
            .iter()
            .fold(site, add)
            .forbidden(&["/rel-nofollow", "/rel-many"]),
    ]
}

fn add(site: Site, wish: &Wish) -> Site {
    let Wish {
        name,
        header,
        meta,
        fate,
        after,
    } = wish;
    let (path, link) = (format!("/{name}"), format!("/after-{name}"));
    let html =
        format!("<!DOCTYPE html>\n<title>{name}</title>{meta}\n<a href=\"{link}\">after</a>");
    let reply = header.iter().fold(Reply::html(html), |reply, value| {
        reply.header("X-Robots-Tag", *value)
    });
    site.page(&path, *fate, reply).html(&link, *after, &["/"])
}
