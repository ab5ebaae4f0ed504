//! Which pages a page links to. The truth is computed from the same structure: navigation reaches
//! every page of a host, and home pages reach every host, so what is reachable needs no crawl to
//! know.

use crate::{
    atlas::{Atlas, FAN},
    draw::{Draw, Use},
};

/// Hosts that a home page leads to: host `h` links to `HOST_FAN * h + 1 ..= HOST_FAN * h +
/// HOST_FAN`.
const HOST_FAN: u64 = 8;
/// Home pages that share the links to hosts with quirks, so that no page carries them all.
const DIRECTORIES: u64 = 16;
/// Links within a host, besides navigation: drawn from zero up to this.
const LOCAL_LINKS: u64 = 10;
/// Links to other hosts: drawn from zero up to this.
const FOREIGN_LINKS: u64 = 5;

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A page of an ordinary host.
    Page { host: u32, page: u32 },
    /// The home page of the n-th host with a quirk.
    Quirk(usize),
}

/// The links of one page: those that make everything reachable first, then drawn ones with popular
/// targets.
pub(crate) fn targets(atlas: &Atlas, quirks: usize, host: u32, page: u32) -> Vec<Target> {
    let mut targets = vec![Target::Page { host, page: 0 }];
    targets.extend(
        below(page.into(), FAN.into(), atlas.size(host).into())
            .map(|page| Target::Page { host, page }),
    );
    if page == 0 {
        let hosts = below(host.into(), HOST_FAN, atlas.hosts().into());
        targets.extend(hosts.map(|host| Target::Page { host, page: 0 }));
        targets.extend(directory(atlas, quirks, host));
    }
    let mut draw = Draw::new(atlas.seed, Use::Links, host.into(), page.into());
    for _ in 0..=draw.below(LOCAL_LINKS) {
        targets.push(Target::Page {
            host,
            page: draw.skewed(atlas.size(host).into()) as u32,
        });
    }
    for _ in 0..draw.below(FOREIGN_LINKS + 1) {
        let host = draw.skewed(atlas.hosts().into()) as u32;
        targets.push(Target::Page {
            host,
            page: draw.skewed(atlas.size(host).into()) as u32,
        });
    }
    targets
}

/// The children of `parent` in a tree where each has `fan` of them.
fn below(parent: u64, fan: u64, end: u64) -> impl Iterator<Item = u32> {
    let first = parent * fan + 1;
    (first..(first + fan).min(end)).map(|child| child as u32)
}

/// The hosts with quirks that this host's home page leads to.
fn directory(atlas: &Atlas, quirks: usize, host: u32) -> impl Iterator<Item = Target> {
    let directories = DIRECTORIES.min(atlas.hosts().into()) as usize;
    let first = host as usize;
    let is_directory = first < directories;
    (first..quirks)
        .step_by(directories)
        .filter(move |_| is_directory)
        .map(Target::Quirk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{atlas::Ports, shape::Shape};
    use std::collections::HashSet;

    #[test]
    fn everything_is_reachable_within_a_few_links_of_the_first_home_page() {
        let atlas = Atlas::new(
            3,
            Shape {
                hosts: 200,
                pages: 5000,
                ..Shape::default()
            },
            Ports {
                http: 80,
                https: 443,
            },
        );
        let (mut seen, mut quirks) = (HashSet::from([(0, 0)]), HashSet::new());
        let mut front = vec![(0, 0)];
        for _ in 0..8 {
            for (host, page) in std::mem::take(&mut front) {
                for target in targets(&atlas, 40, host, page) {
                    match target {
                        Target::Page { host, page } if seen.insert((host, page)) => {
                            front.push((host, page))
                        }
                        Target::Page { .. } => {}
                        Target::Quirk(n) => drop(quirks.insert(n)),
                    }
                }
            }
        }
        assert_eq!((seen.len(), quirks.len()), (5000, 40));
    }
}
