//! The pages of ordinary hosts as HTML, written on request.
//!
//! Besides honest links a page carries what a crawler must not fall for: links in comments, scripts
//! and styles, links marked `nofollow`, and links into a section that robots.txt forbids.

use crate::{
    atlas::{Atlas, Habit},
    draw::{Draw, Use},
    links::{Target, targets},
    prose::Prose,
    spelling::Reference,
};
use std::{fmt::Write, sync::Arc};

/// Spread of page sizes: the logarithm's standard deviation, from crawls of the public web (Barford
/// & Crovella 1998 found 0.9–1.3 for files of all kinds; HTML alone is narrower).
const SIZE_SIGMA: f64 = 0.8;
/// No page is larger, in bytes, so that none is cut off by a crawler's body limit.
const MAX_BYTES: f64 = 1_000_000.0;

/// Writes pages.
pub(crate) struct Pages {
    pub(crate) atlas: Arc<Atlas>,
    prose: Prose,
    /// Origins of the hosts with quirks, in the order in which [`Target::Quirk`] counts them.
    quirks: Vec<String>,
}

impl Pages {
    pub(crate) fn new(atlas: Arc<Atlas>, quirks: Vec<String>) -> Self {
        Pages {
            prose: Prose::new(atlas.seed),
            atlas,
            quirks,
        }
    }

    /// The HTML of a page.
    pub(crate) fn html(&self, host: u32, page: u32) -> String {
        match self.atlas.copy(host, page) {
            Some(document) => self.document(document),
            None => self.original(host, page),
        }
    }

    fn original(&self, host: u32, page: u32) -> String {
        let mut draw = Draw::new(self.atlas.seed, Use::Text, host.into(), page.into());
        let bytes = self.size(&mut draw);
        let (path, title) = (self.atlas.path(host, page), self.atlas.title(host, page));
        let mut html = String::with_capacity(bytes + 4096);
        let name = self.atlas.name(host);
        write_head(&mut html, &format!("{title} – {name}"));
        let folder = match draw.below(8) {
            0 => write_base(&mut html, "/archive/2001/"),
            _ => folder(&path).to_owned(),
        };
        let _ = write!(html, "</head>\n<body>\n<h1>{title}</h1>\n<nav>\n<ul>\n");
        self.write_links(&mut html, host, page, &folder);
        html.push_str("</ul>\n</nav>\n");
        self.write_lures(&mut html, host, page, &mut draw);
        self.write_prose(&mut html, bytes, &mut draw);
        let _ = write!(
            html,
            "<footer><img src=\"/img/{}.png\" alt=\"\"></footer>\n</body>\n</html>\n",
            page % 100
        );
        html
    }

    fn size(&self, draw: &mut Draw) -> usize {
        draw.log_normal(self.atlas.shape.mean_bytes.into(), SIZE_SIGMA)
            .min(MAX_BYTES) as usize
    }

    fn write_links(&self, html: &mut String, host: u32, page: u32, folder: &str) {
        let from_origin = self.atlas.origin(host);
        let mut draw = Draw::new(self.atlas.seed, Use::Spelling, host.into(), page.into());
        for target in targets(&self.atlas, self.quirks.len(), host, page) {
            let (to_origin, to_path, text) = self.describe(target);
            let link = Reference {
                from_origin: &from_origin,
                from_folder: folder,
                to_origin: &to_origin,
                to_path: &to_path,
            };
            let href = link.spell(&mut draw);
            let _ = match draw.below(8) {
                0 => writeln!(html, "<li><a class=x href='{href}'>{text}</a>"),
                1 => writeln!(
                    html,
                    "<LI><A HREF = \"{href}\" title=\"a > b\">{text}</A></LI>"
                ),
                _ => writeln!(html, "<li><a href=\"{href}\">{text}</a></li>"),
            };
        }
    }

    fn describe(&self, target: Target) -> (String, String, String) {
        match target {
            Target::Page { host, page } => (
                self.atlas.origin(host),
                self.atlas.path(host, page),
                self.atlas.title(host, page),
            ),
            Target::Quirk(n) => (
                self.quirks[n].clone(),
                "/".to_owned(),
                "An unusual site".to_owned(),
            ),
        }
    }

    /// Links that are none, and links that must not be followed.
    fn write_lures(&self, html: &mut String, host: u32, page: u32, draw: &mut Draw) {
        let _ = match draw.below(6) {
            0 => writeln!(
                html,
                "<!-- <a href=\"/fake/comment-{page}\">the old page</a> -->"
            ),
            1 => writeln!(
                html,
                "<script>document.write('<a href=\"/fake/script-{page}\">x</a>');</script>"
            ),
            2 => writeln!(
                html,
                "<style>/* <a href=\"/fake/style-{page}\">x</a> */</style>"
            ),
            3 => writeln!(
                html,
                "<p><a rel=\"noopener nofollow\" href=\"/hidden/{page}\">sponsored</a></p>"
            ),
            _ => Ok(()),
        };
        if self.atlas.habit(host) == Habit::Private {
            let _ = writeln!(html, "<p><a href=\"/private/{page}\">members only</a></p>");
        }
    }

    fn write_prose(&self, html: &mut String, bytes: usize, draw: &mut Draw) {
        while html.len() < bytes {
            let _ = write!(html, "<p>{}</p>\n\n", self.prose.paragraph(draw));
        }
    }

    /// A document that many hosts carry: the same bytes everywhere, so its links are absolute.
    fn document(&self, document: u32) -> String {
        let mut draw = Draw::new(self.atlas.seed, Use::Copy, u64::MAX, document.into());
        let bytes = self.size(&mut draw);
        let mut html = String::with_capacity(bytes + 1024);
        write_head(&mut html, &format!("Shared document {document}"));
        let _ = write!(
            html,
            "</head>\n<body>\n<h1>Shared document {document}</h1>\n"
        );
        for _ in 0..3 {
            let host = draw.skewed(self.atlas.hosts().into()) as u32;
            let _ = writeln!(
                html,
                "<p><a href=\"{}/\">{0}</a></p>",
                self.atlas.origin(host)
            );
        }
        self.write_prose(&mut html, bytes, &mut draw);
        html.push_str("</body>\n</html>");
        html
    }
}

fn write_head(html: &mut String, title: &str) {
    let _ = write!(
        html,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{title}</title>\n"
    );
}

fn write_base(html: &mut String, folder: &str) -> String {
    let _ = writeln!(html, "<base href=\"{folder}\">");
    folder.to_owned()
}

/// The folder that a page's relative links resolve against.
fn folder(path_and_query: &str) -> &str {
    let path = path_and_query
        .split_once('?')
        .map_or(path_and_query, |(path, _)| path);
    &path[..=path.rfind('/').unwrap_or(0)]
}
