//! The `spider` crate as a contestant of the benchmark: crawls from a start page over a list of
//! hosts, keeps nothing.
//!
//! Usage: `spider-contestant START CONNECTIONS HOST…`, where a host is written as `http://address`,
//! on any port.

use spider::website::Website;

/// As many as the other contestants have.
const WORKER_THREADS: usize = 2;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let start = arguments.next().expect("a start page");
    let connections = arguments.next().and_then(|text| text.parse().ok()).expect("a number of connections");
    let mut website = Website::new(&start);
    website
        .with_external_domains(Some(arguments))
        .with_concurrency_limit(Some(connections))
        .with_respect_robots_txt(true)
        .with_user_agent(Some("spider-contestant"))
        .with_delay(0);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(WORKER_THREADS).enable_all().build().expect("a runtime");
    runtime.block_on(website.crawl_raw());
    println!("{} pages", website.get_links().len());
}
