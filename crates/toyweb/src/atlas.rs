//! Where everything is: names, schemes and sizes of ordinary hosts, and the path of every page. All
//! of it is computed both ways, from number to name and back, and nothing is stored per page.

use crate::{
    draw::{Draw, Use},
    prose,
    shape::Shape,
};
use apoidea_model::PageUrl;

/// Pages that a page's navigation leads to: page `i` links to `FAN * i + 1 ..= FAN * i + FAN`, so
/// every page of a host is within log₈(pages) links of its home page.
pub(crate) const FAN: u32 = 8;

/// The ports that URLs carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ports {
    pub(crate) http: u16,
    pub(crate) https: u16,
}

/// How a host is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Ports {
    /// The origin of a host, such as `http://amber-otter-3.test:8080`.
    pub(crate) fn origin(self, scheme: Scheme, name: &str) -> String {
        match scheme {
            Scheme::Http => format!("http://{name}:{}", self.http),
            Scheme::Https => format!("https://{name}:{}", self.https),
        }
    }
}

/// What an ordinary host's robots.txt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    /// There is none.
    NoRobots,
    /// Everything is allowed.
    Open,
    /// `/private/` is disallowed, and pages link there.
    Private,
}

/// The map of the ordinary hosts.
pub(crate) struct Atlas {
    pub(crate) seed: u64,
    pub(crate) shape: Shape,
    pub(crate) ports: Ports,
    sizes: Vec<u32>,
}

impl Atlas {
    pub(crate) fn new(seed: u64, shape: Shape, ports: Ports) -> Self {
        let shape = shape.checked();
        Atlas {
            seed,
            sizes: shape.host_sizes(),
            shape,
            ports,
        }
    }

    /// Ordinary hosts.
    pub(crate) fn hosts(&self) -> u32 {
        self.shape.hosts
    }

    /// Pages of a host.
    pub(crate) fn size(&self, host: u32) -> u32 {
        self.sizes[host as usize]
    }

    /// The name of a host. Every eighth is a second host (`blog.`) of the site before it.
    pub(crate) fn name(&self, host: u32) -> String {
        if host % 8 == 7 {
            return format!("blog.{}", self.name(host - 1));
        }
        let mut draw = Draw::new(self.seed, Use::HostName, host.into(), 0);
        format!(
            "{}-{}-{host}.test",
            prose::adjective(&mut draw),
            prose::noun(&mut draw)
        )
    }

    /// The host of a name, the inverse of [`Self::name`].
    pub(crate) fn host(&self, name: &str) -> Option<u32> {
        let (offset, site) = name
            .strip_prefix("blog.")
            .map_or((0, name), |site| (1, site));
        let number: u32 = site
            .strip_suffix(".test")?
            .rsplit_once('-')?
            .1
            .parse()
            .ok()?;
        let host = number.checked_add(offset)?;
        (host < self.hosts() && self.name(host) == name).then_some(host)
    }

    pub(crate) fn scheme(&self, host: u32) -> Scheme {
        let https =
            Draw::new(self.seed, Use::HostHabits, host.into(), 1).happens(self.shape.https_percent);
        if https { Scheme::Https } else { Scheme::Http }
    }

    pub(crate) fn habit(&self, host: u32) -> Habit {
        match Draw::new(self.seed, Use::HostHabits, host.into(), 0).below(10) {
            0..=3 => Habit::NoRobots,
            4..=6 => Habit::Open,
            _ => Habit::Private,
        }
    }

    pub(crate) fn origin(&self, host: u32) -> String {
        self.ports.origin(self.scheme(host), &self.name(host))
    }

    /// Path and query of a page, in canonical spelling.
    pub(crate) fn path(&self, host: u32, page: u32) -> String {
        if page == 0 {
            return "/".to_owned();
        }
        let mut draw = Draw::new(self.seed, Use::Path, host.into(), page.into());
        let (topic, style) = (prose::topic(&mut draw), draw.below(16));
        let slug = format!(
            "{}-{}-{page}",
            prose::adjective(&mut draw),
            prose::noun(&mut draw)
        );
        match style {
            0 | 1 => format!("/view?topic={topic}&id={page}"),
            2 => format!("/caf%C3%A9/{topic}/{slug}.html"),
            3 => format!("/~{topic}/{slug}.html"),
            4..=6 => format!("/{topic}/{slug}/"),
            7..=9 => format!("/{topic}/{slug}"),
            _ => format!("/{topic}/{slug}.html"),
        }
    }

    /// The page at a path, the inverse of [`Self::path`].
    pub(crate) fn page(&self, host: u32, path: &str) -> Option<u32> {
        if path == "/" {
            return Some(0);
        }
        let number = match path.strip_prefix("/view?") {
            Some(query) => query.rsplit_once("id=")?.1,
            None => {
                path.trim_end_matches('/')
                    .trim_end_matches(".html")
                    .rsplit_once('-')?
                    .1
            }
        };
        let page = number.parse().ok()?;
        (page < self.size(host) && self.path(host, page) == path).then_some(page)
    }

    /// The URL of a page.
    pub(crate) fn url(&self, host: u32, page: u32) -> PageUrl {
        let text = self.origin(host) + &self.path(host, page);
        PageUrl::parse(&text)
            .expect("a name of letters and digits and a short path make a valid URL")
    }

    /// The title of a page, taken from its path.
    pub(crate) fn title(&self, host: u32, page: u32) -> String {
        let mut draw = Draw::new(self.seed, Use::Path, host.into(), page.into());
        let topic = prose::topic(&mut draw);
        draw.next();
        let (adjective, noun) = (prose::adjective(&mut draw), prose::noun(&mut draw));
        format!("The {adjective} {noun} ({topic} {page})")
    }

    /// Has the page no pages below it in the navigation?
    pub(crate) fn is_leaf(&self, host: u32, page: u32) -> bool {
        u64::from(page) * u64::from(FAN) + 1 >= u64::from(self.size(host))
    }

    /// The document this page is a copy of, if it is one. Only leaves are: what a copy links to
    /// does not depend on where it is, so nothing may hang below it.
    pub(crate) fn copy(&self, host: u32, page: u32) -> Option<u32> {
        if page == 0 || !self.is_leaf(host, page) {
            return None;
        }
        let mut draw = Draw::new(self.seed, Use::Copy, host.into(), page.into());
        let copies = f64::from(self.shape.pages) * self.shape.copies_percent / 100.0;
        let documents = (copies / 4.0).max(1.0) as u64;
        draw.happens(self.shape.copies_percent)
            .then(|| draw.skewed(documents) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atlas() -> Atlas {
        let shape = Shape {
            hosts: 40,
            pages: 4000,
            ..Shape::default()
        };
        Atlas::new(
            7,
            shape,
            Ports {
                http: 8080,
                https: 8443,
            },
        )
    }

    #[test]
    fn names_and_paths_can_be_read_back() {
        let atlas = atlas();
        for host in 0..40 {
            assert_eq!(atlas.host(&atlas.name(host)), Some(host));
            for page in 0..atlas.size(host) {
                assert_eq!(atlas.page(host, &atlas.path(host, page)), Some(page));
            }
        }
    }

    #[test]
    fn paths_are_canonical_already() {
        let atlas = atlas();
        for page in 0..atlas.size(0) {
            assert_eq!(atlas.url(0, page).path_and_query(), atlas.path(0, page));
        }
    }

    #[test]
    fn what_does_not_exist_is_not_found() {
        let atlas = atlas();
        for name in [
            "other.test",
            "blog.other-3.test",
            "amber-otter-99999999999.test",
            "blog.x-4294967295.test",
            "",
        ] {
            assert_eq!(atlas.host(name), None, "{name}");
        }
        for path in [
            "/x",
            "/view?id=",
            "/view?id=1",
            "/-",
            "/news/a-b-1.html",
            "",
        ] {
            assert_eq!(atlas.page(0, path), None, "{path}");
        }
    }

    #[test]
    fn copies_are_leaves_and_about_as_many_as_asked_for() {
        let atlas = atlas();
        let pages = (0..40).flat_map(|host| (0..atlas.size(host)).map(move |page| (host, page)));
        let copies: Vec<_> = pages
            .filter(|&(host, page)| atlas.copy(host, page).is_some())
            .collect();
        assert!((100..260).contains(&copies.len()), "{}", copies.len());
        assert!(copies.iter().all(|&(host, page)| atlas.is_leaf(host, page)));
    }
}
