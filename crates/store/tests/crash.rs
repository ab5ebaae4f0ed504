//! A process that appends and commits is killed at arbitrary moments; whatever it said was
//! committed must be there, and nothing half written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use apoidea_model::{CrawlId, Domain, Link, PageUrl, Pending, Slot, Target, Time, UrlHash};
use apoidea_store::{
    Commit, Store, StoreOptions,
    archive::{self, Archive, Capture, CaptureKind, Encoder, Head, Reader},
};
use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

/// Set in the process that is to be killed; the folder it works in.
const VICTIM: &str = "APOIDEA_STORE_VICTIM";
const KILLS: u64 = 6;
/// The counter that each commit moves on.
const ROUND: &str = "round";
/// Small, so that files are closed all the time.
const FILE_BYTES: u64 = 20_000;

#[test]
fn everything_committed_survives_kill_9_and_nothing_half_written_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut committed = 0;
    for kill in 0..KILLS {
        let mut victim = start_victim(folder.path());
        let mut lines = BufReader::new(victim.stdout.take().unwrap()).lines();
        // Some moments lie just behind a commit, others anywhere in the work that follows it.
        let wanted = committed + 3 + kill * 5;
        while committed < wanted {
            let line = lines
                .next()
                .expect("the victim runs until it is killed")
                .unwrap();
            if let Some(round) = line.strip_prefix("committed ") {
                committed = round.parse().unwrap();
            }
        }
        victim.kill().unwrap();
        victim.wait().unwrap();
        let last_words = lines
            .map_while(Result::ok)
            .filter_map(|line| line.strip_prefix("committed ")?.parse().ok());
        committed = last_words.last().unwrap_or(committed);
        committed = verify(folder.path(), committed);
    }
}

/// Not a test: the process that is killed runs it.
#[test]
fn victim() {
    let Some(folder) = env::var_os(VICTIM) else {
        return;
    };
    let folder = Path::new(&folder);
    let store = Store::open(folder, StoreOptions::default()).unwrap();
    let mut archive = open_archive(folder, &store);
    let mut encoder = Encoder::new([1; 32]);
    for round in round(&store) + 1.. {
        archive
            .append(&capture(round).encode(&mut encoder))
            .unwrap();
        store.commit(&changes(round, &mut archive)).unwrap();
        println!("committed {round}");
    }
}

fn start_victim(folder: &Path) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["victim", "--exact", "--nocapture"])
        .env(VICTIM, folder);
    command.stdout(Stdio::piped()).spawn().unwrap()
}

fn open_archive(folder: &Path, store: &Store) -> Archive {
    let options = archive::ArchiveOptions {
        file_bytes: FILE_BYTES,
        ..archive::ArchiveOptions::default()
    };
    Archive::open(
        &folder.join("archive"),
        store.archive_mark().unwrap(),
        options,
        [2; 32],
    )
    .unwrap()
}

fn round(store: &Store) -> u64 {
    store
        .value(ROUND)
        .unwrap()
        .map_or(0, |value| u64::from_be_bytes(value.try_into().unwrap()))
}

/// Each round settles the URL of the last one and discovers the next.
fn changes(round: u64, archive: &mut Archive) -> Commit {
    let mut commit = Commit::new();
    let domain = domain(round);
    let slot = Slot {
        rank: 0,
        sequence: round,
    };
    let link = Link {
        url: url(round),
        depth: 1,
        target: Target::Page,
    };
    let pending = Pending::admitted(link.clone(), slot, CrawlId::OPEN);
    commit.put_pending(&domain, &pending);
    commit.append_seen(&domain, &[UrlHash(round)]);
    commit.put_domain(&domain, round.to_be_bytes().to_vec());
    commit.park(&domain, Time::from_millis(round));
    commit.put_outbox(round, CrawlId::OPEN, &[link]);
    commit.remove_outbox(round - 1);
    commit.set_value(ROUND, &round.to_be_bytes());
    commit.set_archive_mark(&archive.sync().unwrap());
    commit
}

/// Checks everything and says which round is the last.
fn verify(folder: &Path, at_least: u64) -> u64 {
    let store = Store::open(folder, StoreOptions::default()).unwrap();
    drop(open_archive(folder, &store));
    let last = round(&store);
    assert!(
        last >= at_least,
        "round {at_least} was committed, {last} is there"
    );
    assert_eq!(
        store
            .outbox(None, 9)
            .unwrap()
            .iter()
            .map(|record| record.sequence)
            .collect::<Vec<_>>(),
        [last]
    );
    let mut queued: Vec<u64> = Vec::new();
    let mut seen: Vec<u64> = Vec::new();
    for domain in (0..DOMAINS).map(domain) {
        queued.extend(
            store
                .pending(&domain, None, usize::MAX)
                .unwrap()
                .iter()
                .map(|pending| pending.slot.sequence),
        );
        seen.extend(store.seen(&domain).map(|hash| hash.unwrap().0));
    }
    queued.sort_unstable();
    seen.sort_unstable();
    let expected: Vec<u64> = (1..=last).collect();
    assert_eq!((&queued, &seen), (&expected, &expected));
    assert_eq!(store.parked(99).unwrap().len() as u64, DOMAINS.min(last));
    verify_archive(&folder.join("archive"), &expected);
    last
}

fn verify_archive(folder: &Path, rounds: &[u64]) {
    let reader = Reader::new(folder);
    let records = reader
        .files()
        .unwrap()
        .into_iter()
        .flat_map(|file| Reader::records(&file).unwrap());
    let urls = records
        .map(Result::unwrap)
        .filter(|record| record.kind == "response");
    let urls: Vec<PageUrl> = urls.map(|record| record.url.unwrap()).collect();
    assert_eq!(
        urls,
        rounds.iter().map(|&round| url(round)).collect::<Vec<_>>()
    );
    for &round in rounds {
        let entries = reader.find(&url(round)).unwrap();
        assert_eq!(entries.len(), 1);
        assert_eq!(
            reader.page(&entries[0]).unwrap().body.as_deref(),
            Some(&capture(round).body[..])
        );
    }
}

const DOMAINS: u64 = 5;

fn domain(round: u64) -> Domain {
    format!("{}.example", round % DOMAINS).parse().unwrap()
}

fn url(round: u64) -> PageUrl {
    PageUrl::parse(&format!("https://{}/{round}", domain(round))).unwrap()
}

fn capture(round: u64) -> Capture {
    Capture {
        url: url(round),
        time: Time::from_millis(round * 1000),
        address: None,
        request: Head {
            first_line: "GET / HTTP/1.1".to_owned(),
            headers: Vec::new(),
        },
        response: Head {
            first_line: "HTTP/1.1 200 OK".to_owned(),
            headers: Vec::new(),
        },
        body: format!("page {round} ").repeat(100).into(),
        digest: None,
        kind: CaptureKind::Response,
        truncation: None,
        outlinks: Vec::new(),
        metadata: Vec::new(),
    }
}
