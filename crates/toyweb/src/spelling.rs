//! How a link is written: the same URL in one of the many spellings found on the web. Every
//! spelling means the same page once resolved and canonicalised.

use crate::draw::Draw;

/// Where a link stands and where it leads.
pub(crate) struct Reference<'a> {
    /// Origin of the page that carries the link.
    pub(crate) from_origin: &'a str,
    /// The folder that relative references resolve against, beginning and ending with `/`.
    pub(crate) from_folder: &'a str,
    /// Origin of the target.
    pub(crate) to_origin: &'a str,
    /// Path and query of the target.
    pub(crate) to_path: &'a str,
}

impl Reference<'_> {
    /// Writes the link's target in a drawn spelling, HTML-escaped, ready for a quoted attribute.
    pub(crate) fn spell(&self, draw: &mut Draw) -> String {
        let path = respell_path(self.to_path, draw);
        let reference = match (self.from_origin == self.to_origin, draw.below(12)) {
            (true, 2..=5) => self.relative().unwrap_or(path),
            (true, 6..=10) => path,
            (_, 0) if self.same_scheme() => self.without_scheme() + &path,
            (_, 1 | 11) => shout_host(self.to_origin) + &path,
            _ => self.to_origin.to_owned() + &path,
        };
        decorate(reference, draw).replace('&', "&amp;")
    }

    /// The target relative to the folder, if it lies in it or close by.
    fn relative(&self) -> Option<String> {
        let path = self
            .to_path
            .strip_prefix(self.from_folder)
            .filter(|rest| !rest.is_empty());
        path.map(str::to_owned).or_else(|| self.climbing())
    }

    /// The target through `../`, from at most a few folders down.
    fn climbing(&self) -> Option<String> {
        let depth = self.from_folder.matches('/').count() - 1;
        (1..=3)
            .contains(&depth)
            .then(|| "../".repeat(depth) + &self.to_path[1..])
    }

    fn same_scheme(&self) -> bool {
        self.from_origin.starts_with("https:") == self.to_origin.starts_with("https:")
    }

    fn without_scheme(&self) -> String {
        self.to_origin
            .split_once(':')
            .map_or(String::new(), |(_, rest)| rest.to_owned())
    }
}

fn shout_host(origin: &str) -> String {
    match origin.rsplit_once(':') {
        Some((host, port)) if host.contains("//") => {
            let (scheme, name) = host.split_once("//").unwrap_or(("", host));
            format!("{scheme}//{}:{port}", name.to_uppercase())
        }
        _ => origin.to_owned(),
    }
}

/// The path with dot segments or needless or lower-case escapes.
fn respell_path(path: &str, draw: &mut Draw) -> String {
    match draw.below(16) {
        0 => format!("/.{path}"),
        1 => format!("/nowhere/..{path}"),
        2 if path.len() > 2 => format!("/%{:02x}{}", path.as_bytes()[1], &path[2..]),
        3 => path.replace("%C3%A9", "%c3%a9"),
        4 => path.replace("%C3%A9", "é"),
        5 => path.replace("/~", "/%7E"),
        _ => path.to_owned(),
    }
}

fn decorate(reference: String, draw: &mut Draw) -> String {
    match draw.below(16) {
        0 => reference + "#top",
        1 => reference + "#",
        2 => format!(" {reference}\n"),
        _ => reference,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Use;
    use apoidea_model::PageUrl;
    use std::collections::BTreeSet;

    #[test]
    fn every_spelling_means_the_same_page() {
        let page = PageUrl::parse("http://a-b-1.test:81/news/old/x.html").unwrap();
        for to_path in [
            "/",
            "/news/old/y.html",
            "/view?topic=x&id=3",
            "/caf%C3%A9/z.html",
            "/~maps/q/",
        ] {
            for to_origin in ["http://a-b-1.test:81", "http://blog.c-d-2.test:81"] {
                let link = Reference {
                    from_origin: "http://a-b-1.test:81",
                    from_folder: "/news/old/",
                    to_origin,
                    to_path,
                };
                let mut spellings = BTreeSet::new();
                for n in 0..500 {
                    let spelling = link.spell(&mut Draw::new(n, Use::Spelling, 0, 0));
                    let resolved = page.join(&spelling.replace("&amp;", "&")).unwrap();
                    assert_eq!(
                        resolved.as_str(),
                        format!("{to_origin}{to_path}"),
                        "{spelling:?}"
                    );
                    spellings.insert(spelling);
                }
                assert!(spellings.len() > 8, "{spellings:?}");
            }
        }
    }
}
