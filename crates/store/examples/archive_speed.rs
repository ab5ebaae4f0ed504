//! How long it takes to turn pages into compressed WARC records, and how small they get.
//!
//! `cargo run --release -p apoidea-store --example archive_speed [folder with HTML files]`; without
//! a folder the pages are made up.

use apoidea_model::{ContentHash, PageUrl, Time};
use apoidea_store::archive::{Capture, CaptureKind, Encoder, Head};
use std::{env, error::Error, fs, path::Path, time::Instant};

const PAGES: usize = 400;
const PAGE_BYTES: usize = 35_000;
/// The fastest of several runs is the one with the warmest caches.
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let bodies = match env::args().nth(1) {
        Some(folder) => html_files(Path::new(&folder))?,
        None => (0..PAGES).map(made_up).collect(),
    };
    let captures: Vec<Capture> = bodies
        .into_iter()
        .enumerate()
        .map(|(n, body)| capture(n, body))
        .collect();
    let plain: usize = captures.iter().map(|capture| capture.body.len()).sum();
    let mut encoder = Encoder::new([1; 32]);
    let mut fastest = f64::MAX;
    let mut packed = 0;
    let begun = Instant::now();
    for _ in 0..RUNS {
        let start = processor_seconds(begun);
        packed = captures
            .iter()
            .map(|capture| capture.encode(&mut encoder).len())
            .sum();
        fastest = fastest.min(processor_seconds(begun) - start);
    }
    println!(
        "{} pages of {} bytes: {:.1} µs each, {:.0} MB/s, {:.1} % of the size",
        captures.len(),
        plain / captures.len(),
        fastest * 1e6 / captures.len() as f64,
        plain as f64 / 1e6 / fastest,
        packed as f64 * 100.0 / plain as f64
    );
    Ok(())
}

/// Time that this thread ran, which others cannot disturb; where the system does not tell, time
/// that passed.
fn processor_seconds(begun: Instant) -> f64 {
    let nanoseconds = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = nanoseconds.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(
        || begun.elapsed().as_secs_f64(),
        |nanoseconds| nanoseconds / 1e9,
    )
}

fn html_files(folder: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut bodies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "html")
            && bodies.len() < PAGES
        {
            bodies.push(fs::read(path)?);
        }
    }
    if bodies.is_empty() {
        Err("no HTML files there".into())
    } else {
        Ok(bodies)
    }
}

/// Markup and words of uneven frequency, which compress about as well as pages do.
fn made_up(seed: usize) -> Vec<u8> {
    let mut state = seed as u64 + 1;
    let mut next = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut body = String::from("<!doctype html><html><head><title>A page</title></head><body>");
    while body.len() < PAGE_BYTES {
        body.push_str(&format!(
            "<p class=\"c{}\"><a href=\"/a/{}.html\">",
            next(9),
            next(100_000)
        ));
        for _ in 0..next(40) {
            let scale = 1 << next(14);
            let word = next(scale) * 2_654_435_761 % 308_915_776;
            let letters = (0..3 + word % 6)
                .map(|n| char::from(b'a' + (word / 26u64.pow(n as u32 % 6) % 26) as u8));
            body.extend(letters);
            body.push(' ');
        }
        body.push_str("</a></p>\n");
    }
    body.push_str("</body></html>");
    body.into_bytes()
}

fn capture(number: usize, body: Vec<u8>) -> Capture {
    let header = |name: &str, value: &str| (name.to_owned(), value.as_bytes().to_vec());
    let url =
        PageUrl::parse(&format!("https://www.example.com/articles/{number}.html")).expect("a URL");
    let (_, digest) = ContentHash::with_digest(&body);
    Capture {
        time: Time::from_millis(1_700_000_000_000),
        address: Some([192, 0, 2, 1].into()),
        request: Head {
            first_line: format!("GET {} HTTP/1.1", url.path_and_query()),
            headers: vec![
                header("Host", "www.example.com"),
                header(
                    "User-Agent",
                    "Apoidea/0.1 (+https://apoidea.example/crawler)",
                ),
                header("Accept", "text/html,application/xhtml+xml;q=0.9"),
                header("Accept-Encoding", "gzip, br"),
            ],
        },
        response: Head {
            first_line: "HTTP/1.1 200 OK".to_owned(),
            headers: vec![
                header("Date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                header("Content-Type", "text/html; charset=utf-8"),
                header("Content-Encoding", "gzip"),
                header("Server", "nginx"),
                header("Cache-Control", "max-age=600"),
            ],
        },
        digest,
        body: body.into(),
        kind: CaptureKind::Response,
        truncation: None,
        outlinks: (0..50)
            .filter_map(|n| {
                url.join(&format!("/articles/{}.html", number * 31 + n))
                    .ok()
            })
            .collect(),
        metadata: vec![("fetchTimeMs".to_owned(), "120".to_owned())],
        url,
    }
}
