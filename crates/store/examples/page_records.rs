//! Remembers fetched pages as a peer would, a few dozen per commit, and measures what each takes.
//!
//! `cargo run --release -p apoidea-store --example page_records [pages] [hosts] [folder]`

use apoidea_model::{
    ChangeHistory, ContentHash, ContentMark, Domain, PageUrl, PeerId, Target, Time, Validators,
};
use apoidea_store::{
    ArchivePlace, Archived, Commit, PageRecord, PageStanding, Store, StoreOptions,
    archive::Position,
};
use std::{env, error::Error, path::PathBuf, time::Instant};

/// Pages that become durable together.
const PER_COMMIT: u64 = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (pages, hosts) = (number(1_000_000)?, number(20_000)?);
    let temporary = tempfile::tempdir()?;
    let folder: PathBuf = arguments
        .next()
        .map_or(temporary.path().to_owned(), Into::into);
    let store = Store::open(&folder, StoreOptions::default())?;
    let start = Instant::now();
    for first in (0..pages).step_by(PER_COMMIT as usize) {
        let mut commit = Commit::new();
        for number in first..(first + PER_COMMIT).min(pages) {
            let domain = host(mixed(number) % hosts);
            commit.put_page(&domain, &record(&domain, number));
        }
        store.apply(&commit)?;
    }
    store.commit(&Commit::new())?;
    println!(
        "{pages} pages in {:.1} s, {:.0} bytes each, journal included",
        start.elapsed().as_secs_f64(),
        store.disk_bytes()? as f64 / pages as f64
    );
    let begun = Instant::now();
    let read: usize = (0..1000)
        .map(|number| {
            store
                .pages(&host(number), None, 1000)
                .map(|read| read.len())
        })
        .sum::<Result<_, _>>()?;
    println!("{read} pages of 1000 hosts read in {:?}", begun.elapsed());
    Ok(())
}

/// Of eight pages three have an Apache-like tag, two a longer one, two only a date, one nothing;
/// one in ten was fetched by one of a few helpers.
fn record(domain: &Domain, number: u64) -> PageRecord {
    let random = mixed(number);
    let tag = match number % 8 {
        0..3 => format!("\"{:x}-{:x}\"", random % 60_000, random >> 12),
        3..5 => format!("W/\"{random:016x}{:016x}\"", mixed(random)),
        _ => String::new(),
    };
    let date = (number % 8 < 7).then_some("Sun, 06 Nov 1994 08:49:37 GMT");
    let visited = Time::from_millis(1_700_000_000_000 + number * 40);
    let place = if number.is_multiple_of(10) {
        ArchivePlace::Peer(PeerId::of_public_key(&[(number % 7) as u8]))
    } else {
        ArchivePlace::Here(Position {
            file: number / 8_000 + 1,
            offset: number % 8_000 * 8_000,
            length: 5_000 + random % 6_000,
        })
    };
    PageRecord {
        url: url(domain, number),
        visited,
        validators: Validators::read(Some(tag.as_bytes()), date.map(str::as_bytes)),
        content: ContentMark::of(&ContentHash::of_body(&random.to_be_bytes())),
        due: Some(visited + std::time::Duration::from_secs(86_400 * (1 + random % 100))),
        standing: PageStanding::There,
        depth: (random % 8) as u16,
        target: Target::Page,
        history: ChangeHistory::FIRST,
        archived: Some(Archived {
            time: visited,
            place,
        }),
    }
}

fn url(domain: &Domain, number: u64) -> PageUrl {
    let (section, title) = (number % 17, mixed(number) % 1_000_000);
    let text = format!("https://{domain}/section-{section}/a-usual-title-{title}.html");
    PageUrl::parse(&text).expect("the text is a URL")
}

fn host(number: u64) -> Domain {
    let text = format!("www.some-site-{number}.example");
    text.parse().expect("the text is a host name")
}

/// A number without pattern, the same in every run.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    number ^ number >> 29
}
