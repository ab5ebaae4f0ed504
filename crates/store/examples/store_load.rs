//! Loads a store as a busy peer would: URLs over many hosts, a few thousand per commit, then reads
//! and reopens.
//!
//! `cargo run --release -p apoidea-store --example store_load [urls] [hosts] [urls per commit]
//! [folder]`

use apoidea_model::{CrawlId, Domain, Link, PageUrl, Pending, Slot, Target, Time, UrlHash};
use apoidea_store::{Commit, Store, StoreOptions};
use std::{env, error::Error, fs, path::Path, time::Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (urls, hosts, per_commit) = (number(5_000_000)?, number(100_000)?, number(5_000)?);
    let temporary = tempfile::tempdir()?;
    let folder = arguments
        .next()
        .map_or(temporary.path().to_owned(), Into::into);
    let start = Instant::now();
    let store = Store::open(&folder, StoreOptions::default())?;
    report("opened", start, &folder);

    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut done = 0;
    let mut slowest = 0.0f64;
    while done < urls {
        let count = per_commit.min(urls - done);
        let commit = discoveries(&mut numbers, done, count, hosts);
        let begun = Instant::now();
        store.commit(&commit)?;
        slowest = slowest.max(begun.elapsed().as_secs_f64());
        done += count;
        if done % (urls / 10).max(1) < per_commit {
            report(
                &format!(
                    "{done} URLs, {:.0}/s",
                    done as f64 / start.elapsed().as_secs_f64()
                ),
                start,
                &folder,
            );
        }
    }
    println!(
        "slowest commit {slowest:.3} s, {} domains",
        store.domain_count()?
    );

    let begun = Instant::now();
    for _ in 0..1000 {
        let domain = host(numbers.next() % hosts);
        let _ = store.pending(&domain, None, 16)?;
        let _ = store.worst(&domain)?;
    }
    report(
        &format!(
            "1000 queues read, {:.0} µs each",
            begun.elapsed().as_secs_f64() * 1e3
        ),
        start,
        &folder,
    );
    let begun = Instant::now();
    let seen: usize = (0..1000).map(|n| store.seen(&host(n)).count()).sum();
    report(
        &format!(
            "{seen} seen of 1000 hosts in {:.3} s",
            begun.elapsed().as_secs_f64()
        ),
        start,
        &folder,
    );

    drop(store);
    let begun = Instant::now();
    let store = Store::open(&folder, StoreOptions::default())?;
    report(
        &format!("reopened in {:.3} s", begun.elapsed().as_secs_f64()),
        start,
        &folder,
    );
    assert_eq!(store.parked(1)?.len(), 1);
    Ok(())
}

/// What a peer commits when links for many domains arrive.
fn discoveries(numbers: &mut Numbers, first: u64, count: u64, hosts: u64) -> Commit {
    let mut commit = Commit::new();
    for sequence in first..first + count {
        let domain = host(numbers.next() % hosts);
        let text = format!(
            "https://{domain}/articles/{}/a-title-of-some-length-{sequence}.html",
            sequence % 97
        );
        let url = PageUrl::parse(&text).expect("the text is a URL");
        commit.append_seen(&domain, &[UrlHash(numbers.next())]);
        let slot = Slot {
            rank: (sequence % 7) as u16,
            sequence,
        };
        let link = Link {
            url,
            depth: 3,
            target: Target::Page,
        };
        let pending = Pending::admitted(link, slot, CrawlId::OPEN);
        commit.put_pending(&domain, &pending);
        commit.put_domain(&domain, vec![7; 120]);
        commit.park(&domain, Time::from_millis(sequence));
    }
    commit
}

fn host(number: u64) -> Domain {
    format!("www.host-{number}.example")
        .parse()
        .expect("the text is a host name")
}

fn report(what: &str, start: Instant, folder: &Path) {
    println!(
        "{:7.1} s  {what}; resident {} MB, processor {:.1} s, disk {} MB",
        start.elapsed().as_secs_f64(),
        resident_bytes() / 1_000_000,
        processor_seconds(),
        disk_bytes(folder) / 1_000_000
    );
}

fn resident_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok())
        .unwrap_or(0)
        * 4096
}

/// User and system time, in the hundredths of a second that Linux counts in.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(") ")
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let ticks = |field: usize| {
        fields
            .get(field)
            .and_then(|ticks| ticks.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    (ticks(11) + ticks(12)) / 100.0
}

fn disk_bytes(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = fs::read_dir(folder) else {
        return 0;
    };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        Ok(metadata) => metadata.blocks() * 512,
        Err(_) => 0,
    });
    sizes.sum()
}

/// A small generator, so that every run does the same.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
