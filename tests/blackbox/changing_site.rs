//! A site whose pages change when a test says so, with validators that are right, missing or wrong.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex},
    time::Instant,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Bytes of text on a page.
const PAGE_BYTES: usize = 12_000;
/// Largest request that is read, in bytes.
const MAX_REQUEST_BYTES: usize = 16 << 10;

/// How a site answers for its pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// An ETag that changes with the page.
    Honest,
    /// No validators.
    Silent,
    /// It calls every page unchanged that is asked for with a condition, and has a new ETag
    /// otherwise.
    Lying,
}

/// One request, as the site saw it.
#[derive(Debug, Clone)]
pub struct Asked {
    pub path: String,
    pub at: Instant,
    pub status: u16,
    /// Bytes of the body.
    pub bytes: usize,
    /// The version that was shown.
    pub version: u32,
}

/// A running site; dropping it ends it.
pub struct ChangingSite {
    address: SocketAddr,
    state: Arc<State>,
    task: JoinHandle<()>,
}

struct State {
    manner: Manner,
    pages: usize,
    versions: Mutex<BTreeMap<usize, u32>>,
    missing: Mutex<BTreeSet<usize>>,
    /// The pages in the sitemap with the time of their last change, in Unix seconds.
    listed: Mutex<BTreeMap<usize, u64>>,
    log: Mutex<Vec<Asked>>,
    origin: String,
}

impl ChangingSite {
    /// Serves so many pages, all linked from the first.
    pub async fn start(ip: IpAddr, port: u16, pages: usize, manner: Manner) -> Self {
        let listener = TcpListener::bind((ip, port)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            manner,
            pages,
            versions: Mutex::default(),
            missing: Mutex::default(),
            listed: Mutex::default(),
            log: Mutex::default(),
            origin: format!("http://{address}"),
        });
        let served = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = served.clone();
                tokio::spawn(async move { state.serve(stream).await });
            }
        });
        ChangingSite {
            address,
            state,
            task,
        }
    }

    /// The first page.
    pub fn url(&self) -> String {
        format!("{}/", self.state.origin)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// These pages read differently from now on.
    pub fn change(&self, pages: impl IntoIterator<Item = usize>) {
        let mut versions = self.state.versions.lock().unwrap();
        pages
            .into_iter()
            .for_each(|page| *versions.entry(page).or_default() += 1);
    }

    /// The sitemap tells that these pages have changed at this Unix time.
    pub fn tell(&self, pages: impl IntoIterator<Item = usize>, at: u64) {
        let mut listed = self.state.listed.lock().unwrap();
        pages
            .into_iter()
            .for_each(|page| _ = listed.insert(page, at));
    }

    /// These pages are gone.
    pub fn remove(&self, pages: impl IntoIterator<Item = usize>) {
        self.state.missing.lock().unwrap().extend(pages);
    }

    /// Everything that was asked so far, robots.txt and the sitemap aside.
    pub fn asked(&self) -> Vec<Asked> {
        let log = self.state.log.lock().unwrap();
        let is_page =
            |asked: &&Asked| !asked.path.ends_with(".txt") && !asked.path.ends_with(".xml");
        log.iter().filter(is_page).cloned().collect()
    }

    /// The path of a page.
    pub fn path(page: usize) -> String {
        match page {
            0 => "/".to_owned(),
            page => format!("/page/{page}"),
        }
    }
}

impl Drop for ChangingSite {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl State {
    async fn serve(&self, mut stream: TcpStream) {
        let mut head = Vec::new();
        loop {
            while !head.ends_with(b"\r\n\r\n") {
                let read = stream.read_buf(&mut head).await;
                if head.len() > MAX_REQUEST_BYTES || read.is_none_or_zero() {
                    return;
                }
            }
            let answer = self.answer(&String::from_utf8_lossy(&head));
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
            head.clear();
        }
    }

    fn answer(&self, head: &str) -> String {
        let path = head.split(' ').nth(1).unwrap_or_default();
        let field = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find_map(|(field, value)| field.eq_ignore_ascii_case(name).then_some(value))
        };
        let page = match path {
            "/" => Some(0),
            path => path
                .strip_prefix("/page/")
                .and_then(|page| page.parse().ok()),
        };
        let page =
            page.filter(|page| *page < self.pages && !self.missing.lock().unwrap().contains(page));
        let (mut status, mut tag, mut body, mut version) = (404, None, String::new(), 0);
        let mut kind = "text/html";
        if path == "/robots.txt" {
            (status, kind) = (200, "text/plain");
            body = format!("User-agent: *\nSitemap: {}/sitemap.xml\n", self.origin);
        } else if path == "/sitemap.xml" {
            (status, kind) = (200, "application/xml");
            body = self.sitemap();
        } else if let Some(page) = page {
            version = *self.versions.lock().unwrap().get(&page).unwrap_or(&0);
            let own = format!("\"{page}-{version}\"");
            let asked = field("if-none-match");
            let is_same = match self.manner {
                Manner::Honest => asked == Some(own.as_str()),
                Manner::Silent => false,
                Manner::Lying => asked.is_some(),
            };
            tag = (self.manner != Manner::Silent).then_some(own);
            status = if is_same { 304 } else { 200 };
            if !is_same {
                body = self.page(page, version);
            }
        }
        self.log.lock().unwrap().push(Asked {
            path: path.to_owned(),
            at: Instant::now(),
            status,
            bytes: body.len(),
            version,
        });
        let tag = tag
            .map(|tag| format!("ETag: {tag}\r\n"))
            .unwrap_or_default();
        let length = match status {
            304 => String::new(),
            _ => format!("Content-Type: {kind}\r\nContent-Length: {}\r\n", body.len()),
        };
        format!("HTTP/1.1 {status} So\r\n{tag}{length}\r\n{body}")
    }

    /// Another comment each time, and the same text until the page changes.
    fn page(&self, page: usize, version: u32) -> String {
        let serial = self.log.lock().unwrap().len();
        let links: String = match page {
            0 => (1..self.pages)
                .map(|page| format!("<a href=/page/{page}>{page}</a> "))
                .collect(),
            _ => String::new(),
        };
        let words = format!("page {page} in version {version} ").repeat(PAGE_BYTES / 28);
        let noise = match self.manner {
            Manner::Silent => format!("<!-- {serial} -->"),
            _ => String::new(),
        };
        format!("<title>{page}</title>{noise}{links}<p>{words}")
    }

    fn sitemap(&self) -> String {
        let listed = self.listed.lock().unwrap();
        let entry = |(page, at): (&usize, &u64)| {
            let path = ChangingSite::path(*page);
            let date = apoidea_model::Time::from_millis(at * 1000);
            let date = httpdate_iso(date);
            format!(
                "<url><loc>{}{path}</loc><lastmod>{date}</lastmod></url>",
                self.origin
            )
        };
        let entries: String = listed.iter().map(entry).collect();
        format!("<urlset>{entries}</urlset>")
    }
}

/// `1970-01-01T00:00:00Z`, as sitemaps write it.
fn httpdate_iso(time: apoidea_model::Time) -> String {
    let seconds = time.as_millis() / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970 (after Howard Hinnant).
    let z = days + 719_468;
    let era = z / 146_097;
    let of_era = z - era * 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

trait EndOfStream {
    fn is_none_or_zero(&self) -> bool;
}

impl EndOfStream for std::io::Result<usize> {
    fn is_none_or_zero(&self) -> bool {
        !matches!(self, Ok(1..))
    }
}
