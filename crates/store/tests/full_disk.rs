//! What happens when the disk is full. It needs one that may be filled: `APOIDEA_SMALL_DISK` names
//! an empty folder on a file system of 32 to 64 MB, such as `mount -t tmpfs -o size=40m tmpfs
//! /mnt/small`. Without it nothing is tested.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use apoidea_model::{PageUrl, Time};
use apoidea_store::{
    Commit, CommitError, Store, StoreOptions,
    archive::{
        self, Archive, ArchiveError, Capture, CaptureKind, EncodedRecords, Encoder, Head, Reader,
    },
};
use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// Made room with once the disk has been full for a while.
const FILLER_BYTES: usize = 20_000_000;
const VALUE_BYTES: usize = 700_000;

fn small_disk(name: &str) -> Option<PathBuf> {
    let Some(disk) = env::var_os("APOIDEA_SMALL_DISK") else {
        eprintln!("skipped: APOIDEA_SMALL_DISK is not set");
        return None;
    };
    let folder = Path::new(&disk).join(name);
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("filler"), noise(FILLER_BYTES, 1)).unwrap();
    Some(folder)
}

/// One test, since they would fill each other's disk.
#[test]
fn a_full_disk_is_reported_and_gone_when_there_is_space() {
    if let Some(folder) = small_disk("store") {
        the_store_recovers(&folder);
        fs::remove_dir_all(folder).unwrap();
    }
    if let Some(folder) = small_disk("archive") {
        the_archive_recovers(&folder);
        fs::remove_dir_all(folder).unwrap();
    }
}

fn the_store_recovers(folder: &Path) {
    let store = Store::open(&folder.join("store"), StoreOptions::default()).unwrap();
    let error = (0..).find_map(|n| store.commit(&value(n)).err().map(|error| (n, error)));
    let (failed, error) = error.unwrap();
    assert!(matches!(error, CommitError::Full(_)), "{error:?}");
    for _ in 0..3 {
        assert!(matches!(
            store.commit(&value(failed)),
            Err(CommitError::Full(_))
        ));
        assert!(
            store.value("0").unwrap().is_some(),
            "what is there can be read"
        );
        assert!(
            store.value(&failed.to_string()).unwrap().is_none(),
            "nothing is half applied"
        );
    }
    fs::remove_file(folder.join("filler")).unwrap();
    store.commit(&value(failed)).unwrap();
    store.commit(&value(failed + 1)).unwrap();
    check_values(&store, failed + 1);
    drop(store);
    let store =
        Store::open(&folder.join("store"), StoreOptions::default()).expect("it opens again");
    check_values(&store, failed + 1);
}

fn check_values(store: &Store, last: u64) {
    for n in 0..=last {
        assert_eq!(
            store.value(&n.to_string()).unwrap(),
            Some(noise(VALUE_BYTES, n)),
            "value {n}"
        );
    }
}

fn the_archive_recovers(folder: &Path) {
    let folder_of_files = folder.join("archive");
    let options = archive::ArchiveOptions {
        file_bytes: 8_000_000,
        ..archive::ArchiveOptions::default()
    };
    let mut archive = Archive::open(&folder_of_files, None, options, [1; 32]).unwrap();
    let mut append = |n| archive.append(&records(n)).and_then(|_| archive.sync());
    let (failed, error) = (0..)
        .find_map(|n| append(n).err().map(|error| (n, error)))
        .unwrap();
    assert!(matches!(error, ArchiveError::Full { .. }), "{error:?}");
    fs::remove_file(folder.join("filler")).unwrap();
    append(failed).unwrap();
    let reader = Reader::new(&folder_of_files);
    let records = reader
        .files()
        .unwrap()
        .into_iter()
        .flat_map(|file| Reader::records(&file).unwrap());
    let responses = records
        .map(Result::unwrap)
        .filter(|record| record.kind == "response");
    let found: Vec<u64> = responses
        .map(|record| record.url.unwrap().path()[1..].parse().unwrap())
        .collect();
    assert_eq!(found[..failed as usize], (0..failed).collect::<Vec<_>>());
    assert_eq!(found.last(), Some(&failed));
}

fn value(n: u64) -> Commit {
    let mut commit = Commit::new();
    commit.set_value(&n.to_string(), &noise(VALUE_BYTES, n));
    commit
}

fn records(n: u64) -> EncodedRecords {
    let capture = Capture {
        url: PageUrl::parse(&format!("http://a.example/{n}")).unwrap(),
        time: Time::from_millis(n * 1000),
        address: None,
        request: Head::default(),
        response: Head {
            first_line: "HTTP/1.1 200 OK".to_owned(),
            headers: Vec::new(),
        },
        body: noise(VALUE_BYTES, n).into(),
        digest: None,
        kind: CaptureKind::Response,
        truncation: None,
        outlinks: Vec::new(),
        metadata: Vec::new(),
    };
    let mut seed = [0; 32];
    seed[..8].copy_from_slice(&n.to_be_bytes());
    capture.encode(&mut Encoder::new(seed))
}

/// Bytes that do not compress.
fn noise(bytes: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let step = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..bytes).map(step).collect()
}
