//! What the whole web answers: names and requests are led to the ordinary host or the site with a
//! quirk they mean.

use crate::{
    access_log::Visit,
    atlas::{Atlas, Habit, Scheme},
    connection::Answer,
    dns::{Resolution, Resolve, TTL_S},
    pages::Pages,
    reply::Reply,
    site::Site,
};
use apoidea_model::PageUrl;
use hickory_server::proto::rr::RecordType;
use std::{collections::HashMap, net::IpAddr, sync::Arc};

/// One black pixel.
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0:~\x9bU\0\0\0\nIDATx\x9cc`\0\0\0\x02\0\x01H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82";

/// When every ordinary page was last changed.
const MODIFIED: &str = "Sat, 01 Jan 2022 00:00:00 GMT";

/// The hosts of a web and what they answer.
pub(crate) struct World {
    pub(crate) pages: Pages,
    pub(crate) sites: Arc<HashMap<String, Site>>,
    pub(crate) addresses: Vec<IpAddr>,
}

impl World {
    fn atlas(&self) -> &Atlas {
        &self.pages.atlas
    }

    /// The address where a name is served: fixed, and spread evenly.
    fn address(&self, number: u64) -> IpAddr {
        self.addresses[(number % self.addresses.len() as u64) as usize]
    }

    fn site_address(&self, name: &str) -> IpAddr {
        self.address(
            name.bytes()
                .fold(7, |hash, byte| hash * 31 % 1_000_003 + u64::from(byte)),
        )
    }

    fn ordinary(&self, host: u32, path: &str, visit: &Visit) -> Reply {
        if let Some(page) = self.atlas().page(host, path) {
            return self.page(host, page, visit);
        }
        match path.split('/').nth(1).unwrap_or_default() {
            "robots.txt" => self.robots(host),
            "img" => Reply::new(200, "image/png", PIXEL),
            "private" | "hidden" | "fake" => {
                Reply::html("<title>Forbidden fruit</title><p>Nobody comes here.")
            }
            _ => Reply::error(404),
        }
    }

    fn page(&self, host: u32, page: u32, visit: &Visit) -> Reply {
        let etag = format!("\"{:x}-{host}-{page}\"", self.atlas().seed);
        let reply = match &visit.if_none_match {
            Some(known) if **known == etag => Reply::empty(304),
            _ => Reply::html(self.pages.html(host, page)),
        };
        reply.header("ETag", etag).header("Last-Modified", MODIFIED)
    }

    fn robots(&self, host: u32) -> Reply {
        let plain = |text: &'static str| Reply::new(200, "text/plain", text);
        match self.atlas().habit(host) {
            Habit::NoRobots => Reply::error(404),
            Habit::Open => plain("User-agent: *\nDisallow:\n"),
            Habit::Private => {
                plain("# Our members like it quiet.\nUser-agent: *\nDisallow: /private/\n")
            }
        }
    }
}

impl Answer for World {
    fn answer(&self, visit: &Visit) -> Reply {
        if !matches!(&*visit.method, "GET" | "HEAD") {
            return Reply::error(405);
        }
        let Ok(url) = PageUrl::parse(&format!("http://host.test{}", visit.path)) else {
            return Reply::error(400);
        };
        let path = url.path_and_query();
        let scheme = if &*visit.scheme == "https" {
            Scheme::Https
        } else {
            Scheme::Http
        };
        if let Some(site) = self.sites.get(&*visit.host) {
            return if site.scheme == scheme {
                site.answer(path, visit)
            } else {
                Reply::error(421)
            };
        }
        match self.atlas().host(&visit.host) {
            Some(host) if self.atlas().scheme(host) == scheme => self.ordinary(host, path, visit),
            _ => Reply::error(421),
        }
    }
}

impl Resolve for World {
    fn resolve(&self, name: &str, kind: RecordType) -> Resolution {
        let (alias, host) = split_alias(name);
        if let Some(site) = self.sites.get(host) {
            // Only look-ups that could lead somewhere count, so that the order of A and AAAA
            // queries does not matter.
            let counts = kind == RecordType::A || !site.is_rebinding();
            let here = self.site_address(host);
            return if counts {
                site.resolve(here, alias)
            } else {
                Resolution::Addresses(Vec::new(), 0)
            };
        }
        match self.atlas().host(name) {
            Some(host) => Resolution::Addresses(vec![self.address(host.into())], TTL_S),
            None => Resolution::Missing,
        }
    }
}

/// Reads `alias-2.name.test` as the second alias of `name.test`.
fn split_alias(name: &str) -> (Option<u32>, &str) {
    let alias = name
        .strip_prefix("alias-")
        .and_then(|rest| rest.split_once('.'));
    match alias.and_then(|(number, host)| Some((number.parse().ok()?, host))) {
        Some((number, host)) => (Some(number), host),
        None => (None, name),
    }
}
