//! Real pages from a real server: the toolchain's own documentation, served by nginx. What the peer
//! fetches is compared with what a small crawl of the files, written on a complete HTML parser,
//! says can be reached.

use crate::{nginx::Nginx, peer_process::Launch};
use apoidea_model::{ContentHash, PageUrl};
use apoidea_peer::State;
use scraper::{Html, Selector};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    net::IpAddr,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(240);
/// Folders of the documentation, each served at an address of its own.
const FOLDERS: [&str; 6] = [
    "book",
    "reference",
    "cargo",
    "nomicon",
    "rustc",
    "error_codes",
];
const ADDRESSES: [&str; 3] = ["127.77.10.1", "127.77.10.2", "127.77.10.3"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_page_of_the_toolchains_documentation_is_fetched_once() {
    crawl_and_compare(&FOLDERS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes some ten minutes"]
async fn every_page_of_all_the_toolchains_documentation_is_fetched_once() {
    crawl_and_compare(&[
        "std",
        "core",
        "alloc",
        "book",
        "reference",
        "cargo",
        "nomicon",
        "rustc",
        "error_codes",
    ])
    .await;
}

async fn crawl_and_compare(folders: &[&str]) {
    let Some(documentation) = documentation().filter(|_| Nginx::is_installed()) else {
        eprintln!("note: skipped, since the toolchain's documentation or nginx is not installed");
        return;
    };
    let workspace = tempfile::tempdir().unwrap();
    let sites = lay_out(workspace.path(), &documentation, folders);
    let nginx = Nginx::start(workspace.path(), &sites).await;
    write_home(&sites, folders, nginx.port());
    let web = Files {
        sites: sites.clone(),
        port: nginx.port(),
    };
    let home = PageUrl::parse(&format!("http://{}:{}/", ADDRESSES[0], nginx.port())).unwrap();
    let expected = web.reachable(&home);

    let launch = Launch::new(&workspace.path().join("data"))
        .set("crawl.ports", format!("[{}]", nginx.port()))
        .set("crawl.only", format!("{ADDRESSES:?}"))
        .set("crawl.private_networks", format!("{ADDRESSES:?}"))
        .set("crawl.private_delay_ms", 0)
        .set("crawl.private_address_delay_ms", 0)
        .set("crawl.depth", 10_000)
        .option(format!("--seed={home}"));
    let peer = launch.start().await;
    let is_done = |status: &apoidea_peer::Status| {
        status.state == State::Idle && status.queued == 0 && status.totals.pages > 0
    };
    let status = peer.wait("everything is crawled", PATIENCE, is_done).await;
    peer.stop().await;

    let requests = nginx.requests();
    let mut times = BTreeMap::<&str, usize>::new();
    let pages = requests
        .iter()
        .filter(|request| !request.url.ends_with("/robots.txt"));
    pages.for_each(|request| *times.entry(&request.url).or_default() += 1);
    assert_eq!(
        times
            .iter()
            .filter(|(_, times)| **times > 1)
            .collect::<Vec<_>>(),
        []
    );
    let fetched: BTreeSet<&str> = times.into_keys().collect();
    let known: BTreeSet<&str> = expected.all.iter().map(PageUrl::as_str).collect();
    assert_eq!(
        fetched.difference(&known).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "nobody links to these"
    );
    let certain: BTreeSet<&str> = expected.certain.iter().map(PageUrl::as_str).collect();
    assert_eq!(
        certain.difference(&fetched).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "these are missing"
    );
    let good = requests
        .iter()
        .filter(|request| request.status == 200)
        .count();
    assert!(
        good > 1000 && status.totals.pages > 1000,
        "{good} pages are too few"
    );
    println!(
        "{} URLs fetched, {} pages, {} certain",
        fetched.len(),
        status.totals.pages,
        certain.len()
    );
}

/// The toolchain's documentation, if it is installed.
fn documentation() -> Option<PathBuf> {
    let output = Command::new("rustc")
        .args(["--print", "sysroot"])
        .output()
        .ok()?;
    let root = String::from_utf8(output.stdout).ok()?;
    Some(Path::new(root.trim()).join("share/doc/rust/html")).filter(|folder| folder.is_dir())
}

/// A folder for each address, with links to some of the documentation's folders each.
fn lay_out(workspace: &Path, documentation: &Path, folders: &[&str]) -> Vec<(IpAddr, PathBuf)> {
    let sites = ADDRESSES.map(|address| (address.parse().unwrap(), workspace.join(address)));
    for (_, root) in &sites {
        fs::create_dir(root).unwrap();
    }
    for (n, folder) in folders.iter().enumerate() {
        let root = &sites[n % sites.len()].1;
        std::os::unix::fs::symlink(documentation.join(folder), root.join(folder)).unwrap();
    }
    sites.into()
}

/// The first site's home page leads to all folders; without the last slash, so that nginx
/// redirects.
fn write_home(sites: &[(IpAddr, PathBuf)], folders: &[&str], port: u16) {
    let link = |(n, folder): (usize, &&str)| {
        format!(
            "<a href=\"http://{}:{port}/{folder}\">{folder}</a>\n",
            sites[n % sites.len()].0
        )
    };
    let links: String = folders.iter().enumerate().map(link).collect();
    fs::write(
        sites[0].1.join("index.html"),
        format!("<title>Documentation</title>\n{links}"),
    )
    .unwrap();
}

/// The same pages, read from the files.
struct Files {
    sites: Vec<(IpAddr, PathBuf)>,
    port: u16,
}

/// What can be reached.
struct Reachable {
    /// By any page.
    all: BTreeSet<PageUrl>,
    /// Whichever of several pages with the same content comes first: only its links are followed,
    /// so that only links which they all have are certain.
    certain: BTreeSet<PageUrl>,
}

/// What a URL answers.
enum Answer {
    Page(Vec<u8>),
    Moved(PageUrl),
    Other,
}

impl Files {
    fn reachable(&self, home: &PageUrl) -> Reachable {
        let mut contents = BTreeMap::<PageUrl, ContentHash>::new();
        let mut leads = BTreeMap::<PageUrl, Vec<PageUrl>>::new();
        let all = closure(home, |url| {
            let found = match self.answer(url) {
                Answer::Page(body) => {
                    contents.insert(url.clone(), ContentHash::of_body(&body));
                    self.links(url, &String::from_utf8_lossy(&body))
                }
                Answer::Moved(to) => vec![to],
                Answer::Other => Vec::new(),
            };
            leads.insert(url.clone(), found.clone());
            found
        });
        let mut common = BTreeMap::<&ContentHash, BTreeSet<PageUrl>>::new();
        for (url, content) in &contents {
            let links: BTreeSet<PageUrl> = leads[url].iter().cloned().collect();
            common
                .entry(content)
                .and_modify(|common| common.retain(|link| links.contains(link)))
                .or_insert(links);
        }
        let certain = closure(home, |url| match contents.get(url) {
            Some(content) => common[content].iter().cloned().collect(),
            None => leads[url].clone(),
        });
        Reachable { all, certain }
    }

    /// What nginx makes of a path.
    fn answer(&self, url: &PageUrl) -> Answer {
        let root = self
            .sites
            .iter()
            .find(|(address, _)| url.host() == address.to_string())
            .map(|(_, root)| root);
        let path = percent_decoded(url.path());
        let file = root
            .expect("links elsewhere are left out")
            .join(path.trim_start_matches('/'));
        if file.is_dir() && !path.ends_with('/') {
            let to = format!("{}{}/", url.origin(), url.path());
            return Answer::Moved(PageUrl::parse(&to).unwrap());
        }
        let file = if path.ends_with('/') {
            file.join("index.html")
        } else {
            file
        };
        let is_page = file
            .extension()
            .is_some_and(|extension| extension == "html");
        match fs::read(&file) {
            Ok(body) if is_page => Answer::Page(body),
            _ => Answer::Other,
        }
    }

    fn links(&self, page: &PageUrl, html: &str) -> Vec<PageUrl> {
        let tree = Html::parse_document(html);
        let select = |selector| Selector::parse(selector).unwrap();
        let anchors =
            select("a[href], area[href], link[rel~=next][href], link[rel~=canonical][href]");
        let mut found: Vec<String> = tree
            .select(&anchors)
            .filter(|a| !a.attr("rel").unwrap_or_default().contains("nofollow"))
            .map(|a| a.attr("href").unwrap().to_owned())
            .collect();
        found.extend(
            tree.select(&select("iframe[src]"))
                .map(|frame| frame.attr("src").unwrap().to_owned()),
        );
        let refresh = select("meta[http-equiv=refresh i][content]");
        let refresh = tree.select(&refresh);
        found.extend(
            refresh.filter_map(|meta| Some(meta.attr("content")?.split_once("rl=")?.1.to_owned())),
        );
        let is_here = |url: &PageUrl| {
            url.port() == self.port
                && self
                    .sites
                    .iter()
                    .any(|(address, _)| url.host() == address.to_string())
        };
        found
            .iter()
            .filter_map(|href| page.join(href).ok())
            .filter(is_here)
            .collect()
    }
}

fn closure(home: &PageUrl, mut leads: impl FnMut(&PageUrl) -> Vec<PageUrl>) -> BTreeSet<PageUrl> {
    let (mut seen, mut queue) = (
        BTreeSet::from([home.clone()]),
        VecDeque::from([home.clone()]),
    );
    while let Some(url) = queue.pop_front() {
        queue.extend(
            leads(&url)
                .into_iter()
                .filter(|link| seen.insert(link.clone())),
        );
    }
    seen
}

fn percent_decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail
            .get(..2)
            .and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match code.filter(|_| first == b'%') {
            Some(byte) => (bytes.push(byte), rest = &tail[2..]).0,
            None => (bytes.push(first), rest = tail).0,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
