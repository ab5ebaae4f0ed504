//! A made-up web: which pages a host has and what each links to follows from a seed, so that
//! nothing is stored.

use super::{CrawlSimOptions, draw};
use apoidea_model::{Domain, Link, PageUrl, Target};
use std::net::{IpAddr, Ipv4Addr};

/// How unequal hosts are: the n-th largest has n^-SKEW of the largest. Milder than the Internet,
/// whose largest hosts would make every crawl as long as politeness makes theirs.
const SKEW: f64 = 0.4;
/// Links of a page to front pages of other hosts; a third of the links of usual pages lead
/// elsewhere.
const AWAY: u64 = 2;
/// Hosts that a front page introduces: so wide that no page is further from the seed than admission
/// allows.
const WIDTH: usize = 8;
/// Links of all pages to the same few hosts, as to the large sites that everybody mentions.
const FAMOUS: u64 = 16;

/// The web.
pub(super) struct Web {
    seed: u64,
    sizes: Vec<usize>,
    domains: Vec<Domain>,
    paths: Paths,
}

/// How many ways lead to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paths {
    Many,
    /// One link introduces it; all others come later. So a link that is lost is missed.
    One,
}

/// A page: its host and its number there.
pub(super) type Place = (usize, usize);

impl Web {
    pub(super) fn new(options: &CrawlSimOptions) -> Self {
        let hosts = options.hosts.max(1);
        let weights: Vec<f64> = (1..=hosts).map(|rank| (rank as f64).powf(-SKEW)).collect();
        let total: f64 = weights.iter().sum();
        let spare = options.pages.saturating_sub(hosts);
        let mut sizes: Vec<usize> = weights
            .iter()
            .map(|weight| 1 + (spare as f64 * weight / total) as usize)
            .collect();
        let rest = (hosts + spare).saturating_sub(sizes.iter().sum());
        sizes.iter_mut().take(rest).for_each(|size| *size += 1);
        let domains = (0..hosts).map(|host| {
            format!("host{host}.example")
                .parse()
                .expect("letters and digits make a name")
        });
        Web {
            seed: options.seed,
            sizes,
            domains: domains.collect(),
            paths: match options.crashes > 0 && options.liars == 0.0 {
                true => Paths::One,
                false => Paths::Many,
            },
        }
    }

    pub(super) fn pages(&self) -> usize {
        self.sizes.iter().sum()
    }

    pub(super) fn domain(&self, host: usize) -> &Domain {
        &self.domains[host]
    }

    pub(super) fn hosts(&self) -> usize {
        self.domains.len()
    }

    /// The address of a host; the hosts share so many, or each has its own.
    pub(super) fn address(host: usize, addresses: Option<usize>) -> IpAddr {
        let host = addresses.map_or(host, |addresses| host % addresses.max(1));
        let number = 0x2000_0000 + u32::try_from(host % (1 << 24)).unwrap_or(0);
        Ipv4Addr::from(number).into()
    }

    pub(super) fn link(&self, (host, page): Place, depth: u16) -> Link {
        let url = format!("https://{}/{page}", self.domains[host]);
        let url = PageUrl::parse(&url).expect("a name and a number make a URL");
        Link {
            url,
            depth,
            target: Target::Page,
        }
    }

    /// The page behind a URL.
    pub(super) fn place(&self, url: &PageUrl) -> Option<Place> {
        let host = url
            .host()
            .strip_prefix("host")?
            .strip_suffix(".example")?
            .parse()
            .ok()?;
        let page = url.as_str().rsplit('/').next()?.parse().ok()?;
        Some((host, page))
    }

    /// What a page links to. Pages of a host form a tree, and so do the front pages of all hosts:
    /// everything can be reached from the first page.
    pub(super) fn links(&self, (host, page): Place) -> Vec<Place> {
        let below = [2 * page + 1, 2 * page + 2]
            .into_iter()
            .filter(|&child| child < self.sizes[host]);
        let mut links: Vec<Place> = below.map(|child| (host, child)).collect();
        links.push((host, 0));
        if page == 0 {
            let next =
                (WIDTH * host + 1..=WIDTH * host + WIDTH).filter(|&other| other < self.hosts());
            links.extend(next.map(|other| (other, 0)));
        }
        let number = (host as u64) << 32 | page as u64;
        let others = match self.paths {
            Paths::Many => self.hosts(),
            Paths::One => host + 1,
        } as u64;
        for nth in 0..AWAY {
            let away = draw(self.seed ^ nth, number);
            links.push(((away % others) as usize, 0));
        }
        let famous = draw(self.seed ^ 77, number) % FAMOUS.min(others);
        links.push((famous as usize, 0));
        links
    }

    /// How long a page takes: mostly 50 to 500 ms.
    pub(super) fn millis(&self, (host, page): Place) -> u64 {
        50 + draw(self.seed ^ 99, (host as u64) << 32 | page as u64) % 450
    }
}
