//! What happens to a peer's memory when things go wrong around it: a second peer, no right to
//! write, damage, a full disk, and being told to stop.

use crate::{
    archived::Archived,
    patience,
    peer_process::{Launch, PeerProcess, Signal},
    toy::Toy,
};
use apoidea_model::PageUrl;
use apoidea_peer::{State, Status, words};
use apoidea_toyweb::ToyWeb;
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(90);

async fn web(pages: u32) -> Toy {
    Toy::start(
        ToyWeb::builder(9)
            .hosts(10)
            .pages(pages)
            .mean_bytes(6000)
            .skew(0.0),
    )
    .await
}

async fn done(peer: &PeerProcess) -> Status {
    peer.wait("the crawl is done", PATIENCE, |status| {
        status.state == State::Idle && status.queued == 0 && status.totals.pages > 0
    })
    .await
}

/// Everything was fetched and is in the archive, once.
fn assert_whole(toy: &Toy) {
    let requests = toy.web.log().requests_per_url();
    let archived = Archived::of(&toy.data());
    for url in toy.web.truth().must_keep() {
        assert!(requests.contains_key(url.as_str()), "{url} was not fetched");
        assert!(archived.contains(&url), "{url} is not in the archive");
    }
}

fn assert_says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_peer_on_the_same_folder_is_refused_and_the_first_unharmed() {
    let toy = web(300).await;
    let launch = toy.launch_with_seeds();
    let peer = launch.start().await;
    peer.wait("it crawls", PATIENCE, |status| status.totals.pages > 10)
        .await;
    for _ in 0..3 {
        assert_says(
            &launch.refused().await,
            &[toy.data().to_str().unwrap(), "another"],
        );
    }
    assert!(
        launch.run(&["status"]).status.success(),
        "the first can still be found"
    );
    assert_eq!(done(&peer).await.totals.pages, 300);
    peer.stop().await;
    assert_whole(&toy);
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o555)).unwrap();
    let launch = Launch::new(&data);
    let mut command = launch.command();
    if is_root() {
        // The administrator may write anywhere, so somebody else tries.
        let program = folder.path().join("apoidea");
        // Not by this process: a test beside this one that starts a program at this moment would
        // hold the file open for writing, and such a file cannot be run.
        let mut copy = Command::new("cp");
        copy.arg(crate::peer_process::program()).arg(&program);
        assert!(copy.status().unwrap().success());
        command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(program);
        launch.complete(&mut command);
    }
    assert_says(
        &launch.refused_as(&mut command).await,
        &[data.to_str().unwrap(), "ermission"],
    );
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    assert_says(
        &Launch::new(&file).refused().await,
        &[file.to_str().unwrap()],
    );
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                files(&path)
            } else {
                vec![path]
            }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_database_is_refused_or_lived_with_but_never_panics() {
    let toy = web(200).await;
    let launch = toy.launch_with_seeds();
    let peer = launch.start().await;
    done(&peer).await;
    peer.stop().await;
    let archive = toy.data().join("archive");
    let is_damageable =
        |path: &PathBuf| !path.starts_with(&archive) && fs::metadata(path).unwrap().len() > 200;
    let database: Vec<PathBuf> = files(&toy.data())
        .into_iter()
        .filter(is_damageable)
        .collect();
    assert!(!database.is_empty(), "{:?}", files(&toy.data()));
    for (n, file) in database.iter().enumerate() {
        let copy = toy.folder().join(format!("copy-{n}"));
        let copied = Command::new("cp")
            .arg("-r")
            .arg(toy.data())
            .arg(&copy)
            .status()
            .unwrap();
        assert!(copied.success());
        damage(&copy.join(file.strip_prefix(toy.data()).unwrap()));
        start_damaged(&launch.at(&copy), file).await;
    }
}

/// Turns bits in the middle of a file.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle - 50..middle + 50]
        .iter_mut()
        .for_each(|byte| *byte ^= 0x5a);
    fs::write(file, bytes).unwrap();
}

/// Either the damage is noticed and the start refused, or the peer runs until it is told to stop.
async fn start_damaged(launch: &Launch, file: &Path) {
    let mut peer = launch.spawn();
    let ended = match peer.ended(Duration::from_secs(3)).await {
        Some(status) => Some(status).filter(|status| status.code() == Some(1)),
        None => peer.end(Signal::Terminate, Duration::from_secs(10)).await,
    };
    let words = peer.words();
    assert!(
        ended.is_some() && !words.contains("panicked"),
        "{}: {ended:?}\n{words}",
        file.display()
    );
}

/// A small file system of its own, gone afterwards.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where that is not permitted.
    fn mount(at: &Path, mib: u32) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let size = format!("size={mib}m");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(at)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| SmallDisk(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_pauses_the_crawl_and_nothing_is_lost() {
    let toy = Toy::start(
        ToyWeb::builder(9)
            .hosts(20)
            .pages(2000)
            .mean_bytes(30_000)
            .skew(0.0),
    )
    .await;
    let Some(disk) = SmallDisk::mount(&toy.data(), 160) else {
        eprintln!("note: skipped, since no file system may be mounted here");
        return;
    };
    let filler = disk.0.join("filler");
    let launch = toy.launch_with_seeds().set("archive.file_mib", 1);
    let peer = launch.start().await;
    peer.wait("it crawls", PATIENCE, |status| status.totals.pages > 100)
        .await;
    fill(&filler);
    let full = peer
        .wait("it needs attention", PATIENCE, |status| {
            status.attention.is_some()
        })
        .await;
    let attention = words::attention(&full.attention.unwrap());
    assert!(
        attention.contains("write") || attention.contains("space"),
        "{attention}"
    );
    let stalled = patience::look(PATIENCE, async || {
        let before = toy.web.log().visits.len();
        let at = peer.status().await.at;
        peer.wait("two seconds pass", PATIENCE, |status| {
            status.at.since(at) > Duration::from_secs(2)
        })
        .await;
        (toy.web.log().visits.len() == before).then_some(())
    });
    assert!(stalled.await.is_some(), "it does not stop fetching");
    assert!(
        toy.web.log().visits.len() < 2000,
        "the disk was not full early enough"
    );
    fs::remove_file(&filler).unwrap();
    let status = done(&peer).await;
    assert_eq!(status.attention, None);
    peer.stop().await;
    assert_whole(&toy);
    let repeated = toy
        .web
        .log()
        .requests_per_url()
        .into_values()
        .filter(|times| *times > 1)
        .count();
    assert_eq!(repeated, 0, "nothing had to be fetched again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_with_a_full_disk_ends_when_it_is_told_to_and_goes_on_later() {
    let toy = Toy::start(
        ToyWeb::builder(9)
            .hosts(20)
            .pages(1000)
            .mean_bytes(30_000)
            .skew(0.0),
    )
    .await;
    let Some(disk) = SmallDisk::mount(&toy.data(), 100) else {
        eprintln!("note: skipped, since no file system may be mounted here");
        return;
    };
    let filler = disk.0.join("filler");
    let launch = toy.launch_with_seeds().set("archive.file_mib", 1);
    let mut peer = launch.start().await;
    peer.wait("it crawls", PATIENCE, |status| status.totals.pages > 50)
        .await;
    fill(&filler);
    peer.wait("it needs attention", PATIENCE, |status| {
        status.attention.is_some()
    })
    .await;
    let ended = peer.end(Signal::Terminate, Duration::from_secs(10)).await;
    assert!(
        ended.is_some_and(|status| status.code().is_some()),
        "{ended:?}\n{}",
        peer.words()
    );
    assert!(
        !toy.data().join("api-address").exists(),
        "it says that it still runs"
    );
    fs::remove_file(&filler).unwrap();
    let peer = launch.start().await;
    done(&peer).await;
    peer.stop().await;
    assert_whole(&toy);
}

/// Takes all the room there is.
fn fill(file: &Path) {
    use std::io::Write;
    let mut filler = fs::File::create(file).unwrap();
    let block = vec![0; 1 << 16];
    while filler.write_all(&block).is_ok() {}
    while filler.write_all(&[0]).is_ok() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_is_told_to_stop_ends_soon_and_goes_on_later() {
    // Hosts that answer slowly, too.
    use apoidea_toyweb::Quirk::{BodyEndless, SlowBody, SlowHead};
    let plan = ToyWeb::builder(9)
        .hosts(10)
        .pages(600)
        .mean_bytes(6000)
        .skew(0.0);
    let toy = Toy::start(plan.quirks([SlowHead, SlowBody, BodyEndless])).await;
    let launch = toy.launch_with_seeds().set("crawl.private_delay_ms", 50);
    for (signal, pages) in [(Signal::Interrupt, 20), (Signal::Terminate, 100)] {
        let mut peer = launch.start().await;
        let before = peer
            .wait("it crawls", PATIENCE, |status| status.totals.pages > pages)
            .await;
        let told = Instant::now();
        let ended = peer.end(signal, Duration::from_secs(8)).await;
        let took = told.elapsed();
        assert!(
            ended.is_some_and(|status| status.code() == Some(0)),
            "{signal:?} {ended:?}\n{}",
            peer.words()
        );
        assert!(took < Duration::from_secs(5), "{signal:?} took {took:?}");
        assert!(!toy.data().join("api-address").exists());
        assert!(before.totals.pages < 600);
    }
    let peer = launch.start().await;
    peer.wait("every page is there", PATIENCE, |status| {
        status.totals.pages >= 600
    })
    .await;
    peer.observe("only slow hosts are left", PATIENCE, async || {
        let waiting: Vec<_> = peer
            .domains()
            .await
            .into_iter()
            .filter(|row| row.queued > 0)
            .collect();
        waiting
            .iter()
            .all(|row| row.domain.as_str().starts_with("slow-"))
            .then_some(())
    })
    .await;
    peer.stop().await;
    let archived = Archived::of(&toy.data());
    let is_slow = |url: &PageUrl| url.host().starts_with("slow-");
    let due = toy.web.truth().must_keep().filter(|url| !is_slow(url));
    let missing: Vec<PageUrl> = due.filter(|url| !archived.contains(url)).collect();
    assert_eq!(missing, []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_stops_finishes_what_is_under_way() {
    let toy = web(600).await;
    let launch = toy.launch_with_seeds().set("crawl.private_delay_ms", 20);
    for pages in [50, 150, 250, 350] {
        let peer = launch.start().await;
        peer.wait("it crawls", PATIENCE, |status| status.totals.pages > pages)
            .await;
        peer.stop().await;
    }
    let peer = launch.start().await;
    done(&peer).await;
    peer.stop().await;
    assert_whole(&toy);
    let requests = toy.web.log().requests_per_url();
    let due = toy.web.truth().must_fetch();
    let repeated: Vec<_> = due
        .filter(|url| requests.get(url.as_str()).is_some_and(|&count| count > 1))
        .collect();
    assert_eq!(repeated, []);
}
