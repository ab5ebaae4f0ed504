//! What reading a page costs, for our scanner, for lol_html and for a tree: `extract_cost FOLDER
//! [EVERY [ENGINE]]`.
//!
//! Reads every `EVERY`th HTML file below the folder into memory first, so that only CPU time is
//! measured. lol_html merely collects the attributes; ours and the tree also resolve, canonicalise
//! and deduplicate the links.

use apoidea_crawl::extract::{extract, reference};
use apoidea_model::PageUrl;
use lol_html::{HtmlRewriter, Settings, element};
use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Instant,
};

fn main() {
    let mut arguments = env::args().skip(1);
    let Some(folder) = arguments.next() else {
        eprintln!("usage: extract_cost FOLDER [EVERY [ours|lol_html|scraper]]");
        std::process::exit(2);
    };
    let every = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1);
    let only = arguments.next();
    let pages = read(Path::new(&folder), every);
    let bytes: usize = pages.iter().map(|page| page.body.len()).sum();
    println!(
        "{} pages, {:.1} MB, mean {} bytes",
        pages.len(),
        bytes as f64 / 1e6,
        bytes / pages.len().max(1)
    );
    let type_ = Some("text/html; charset=utf-8");
    let run = |name: &str, count: &dyn Fn(&Page) -> usize| {
        if only.as_deref().is_none_or(|only| only == name) {
            measure(name, &pages, bytes, count);
        }
    };
    run("ours", &|page| {
        extract(&page.url, type_, &page.body).links.len()
    });
    run("lol_html", &|page| with_lol_html(&page.body));
    run("scraper", &|page| {
        reference::extract(&page.url, type_, &page.body).links.len()
    });
}

struct Page {
    url: PageUrl,
    body: Vec<u8>,
}

fn read(folder: &Path, every: usize) -> Vec<Page> {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let page = |file: &PathBuf| {
        let path = file.strip_prefix(folder).ok()?.to_str()?;
        let url = PageUrl::parse(&format!("https://docs.example/{path}")).ok()?;
        Some(Page {
            url,
            body: fs::read(file).ok()?,
        })
    };
    files.iter().step_by(every).filter_map(page).collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "html")
        {
            files.push(path);
        }
    }
}

fn measure(name: &str, pages: &[Page], bytes: usize, count: impl Fn(&Page) -> usize) {
    let start = Stopwatch::start();
    let links: usize = pages.iter().map(count).sum();
    let seconds = start.seconds();
    let per_page = seconds * 1e6 / pages.len().max(1) as f64;
    let speed = bytes as f64 / 1e6 / seconds;
    println!(
        "{name:9} {seconds:7.3} CPU-s  {speed:6.0} MB/s  {per_page:7.1} us per page  {links} links"
    );
}

fn with_lol_html(body: &[u8]) -> usize {
    let mut found: Vec<String> = Vec::new();
    let mut take = |value: Option<String>| found.extend(value);
    let handler = element!(
        "a[href], area[href], link[href], base[href], iframe[src], meta[content]",
        |element| {
            take(
                ["href", "src", "content"]
                    .iter()
                    .find_map(|name| element.get_attribute(name)),
            );
            Ok(())
        }
    );
    let settings = Settings::new().append_element_content_handler(handler);
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| {});
    let _ = rewriter.write(body).and_then(|()| rewriter.end());
    found.len()
}

/// Measures CPU time of this thread where the system tells it, and elapsed time elsewhere.
struct Stopwatch {
    cpu: Option<f64>,
    wall: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Stopwatch {
            cpu: Self::cpu(),
            wall: Instant::now(),
        }
    }

    fn seconds(&self) -> f64 {
        let cpu = Self::cpu().zip(self.cpu).map(|(now, then)| now - then);
        cpu.unwrap_or_else(|| self.wall.elapsed().as_secs_f64())
    }

    fn cpu() -> Option<f64> {
        let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        text.split(' ')
            .next()?
            .parse::<f64>()
            .ok()
            .map(|nanoseconds| nanoseconds / 1e9)
    }
}
