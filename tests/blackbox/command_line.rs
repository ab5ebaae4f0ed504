//! The command line: what it prints, what it refuses, and with which exit codes.

use crate::{
    archived::Archived,
    peer_process::{Launch, PeerProcess, program},
    toy::Toy,
};
use apoidea_peer::{SeedAnswer, State, Status};
use apoidea_toyweb::ToyWeb;
use std::{
    fs,
    io::{self, Write},
    process::{Command, Output, Stdio},
    time::Duration,
};

const PATIENCE: Duration = Duration::from_secs(60);

fn apoidea(arguments: &[&str]) -> Output {
    Command::new(program()).args(arguments).output().unwrap()
}

fn apoidea_reading(input: &str, arguments: &[&str]) -> Output {
    let mut child = Command::new(program())
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

/// It failed, said why on stderr, and nothing on stdout.
fn assert_refused(output: &Output, words: &[&str]) {
    assert!(!output.status.success(), "{output:?}");
    assert_eq!(stdout(output), "");
    for word in words {
        assert!(
            stderr(output).contains(word),
            "{word:?} is not in {:?}",
            stderr(output)
        );
    }
}

#[test]
fn a_reader_who_has_had_enough_ends_a_command_without_a_word() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = Command::new(program())
        .arg("config")
        .stdout(writer)
        .output()
        .unwrap();
    assert_eq!(stderr(&output), "");
}

#[test]
fn canonical_prints_the_one_spelling_of_a_url() {
    for (url, canonical) in [
        (
            "HTTP://Example.COM:80/a/../b/./c%7e?#top",
            "http://example.com/b/c~",
        ),
        (
            "https://bücher.example/ü?q=%c3%bc",
            "https://xn--bcher-kva.example/%C3%BC?q=%C3%BC",
        ),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://example.com.", "http://example.com/"),
    ] {
        let output = apoidea(&["canonical", url]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(stdout(&output), format!("{canonical}\n"), "{url}");
    }
    for (url, why) in [
        ("mailto:a@b.example", "http and https"),
        ("nonsense", "not a URL"),
        ("http://", "not a URL"),
        ("http://user:secret@example.com/", "user name"),
    ] {
        assert_refused(&apoidea(&["canonical", url]), &[why]);
    }
}

#[test]
fn links_prints_the_links_of_a_file_or_of_standard_input() {
    let html = "<base href=/x/><a href=1>1</a><a href='2#here'>2</a><a href=1>again</a>\
                <a rel=nofollow href=3>3</a><a href=mailto:a@b>4</a><!-- <a href=5> --><A HREF='//Other.Example'>6</a>";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("page.html");
    fs::write(&file, html).unwrap();
    let expected = "http://a.example/x/1\nhttp://a.example/x/2\nhttp://other.example/\n";
    let output = apoidea(&["links", "http://a.example/dir/page", file.to_str().unwrap()]);
    assert_eq!((stdout(&output), output.status.code()), (expected, Some(0)));
    let output = apoidea_reading(html, &["links", "http://a.example/dir/page", "-"]);
    assert_eq!((stdout(&output), output.status.code()), (expected, Some(0)));
    assert_refused(
        &apoidea(&["links", "http://a.example/", "/does/not/exist"]),
        &["/does/not/exist"],
    );
    assert_refused(
        &apoidea(&["links", "ftp://a.example/", file.to_str().unwrap()]),
        &["ftp"],
    );
}

#[test]
fn robots_says_whether_and_why() {
    let robots = "User-agent: *\nDisallow: /\n\nUser-agent: apoidea\nAllow: /yes\nDisallow: /no\n";
    for (agent, url, code, answer) in [
        ("Apoidea", "/no/page", 1, "disallowed by line 6"),
        ("Apoidea", "https://a.example/yes?x", 0, "allowed by line 5"),
        ("apoidea", "/other", 0, "allowed: no line"),
        ("Other", "/yes", 1, "disallowed by line 2"),
    ] {
        let output = apoidea_reading(robots, &["robots", "-", agent, url]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{agent} {url}: {output:?}"
        );
        assert!(
            stdout(&output).starts_with(answer),
            "{agent} {url}: {output:?}"
        );
    }
    let missing = apoidea(&["robots", "/does/not/exist", "Apoidea", "/"]);
    assert_refused(&missing, &["/does/not/exist"]);
}

#[test]
fn a_wrong_setting_is_refused_with_file_line_field_and_range() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let name = file.to_str().unwrap();
    for (text, words) in [
        (
            "[crawl]\nports = [80]\nfetches = 5000\n",
            &["mine.toml", "line 3", "fetches", "1 to 4096"][..],
        ),
        (
            "[crawl]\nfetches = -1\n",
            &["mine.toml", "line 2", "fetches", "1 to 4096"],
        ),
        (
            "[crawl]\nfetches = \"many\"\n",
            &["mine.toml", "line 2", "fetches", "1 to 4096"],
        ),
        ("[crawl]\nfetchs = 5\n", &["mine.toml", "line 2", "fetchs"]),
        ("[nonsense]\n", &["mine.toml", "line 1", "nonsense"]),
        (
            "[crawl]\nseeds = [\"ftp://a.example/\"]\n",
            &["mine.toml", "line 2", "seeds", "ftp"],
        ),
        (
            "[crawl]\nprivate_networks = [\"10.0.0.1/8\"]\n",
            &["mine.toml", "line 2", "private_networks", "10.0.0.0/8"],
        ),
        ("[crawl\n", &["mine.toml", "line 1"]),
    ] {
        fs::write(&file, text).unwrap();
        assert_refused(&apoidea(&["--config", name, "config"]), words);
        let data = folder.path().join("data");
        let output = apoidea(&["--config", name, "--data", data.to_str().unwrap(), "run"]);
        assert_refused(&output, words);
        assert!(
            !data.exists(),
            "nothing is made before the settings are right"
        );
    }
    let missing = folder.path().join("missing.toml");
    for (setting, words) in [
        ("crawl.fetches=0", &["crawl.fetches=0", "1 to 4096"][..]),
        ("crawl.depth=99999", &["crawl.depth=99999", "0 to 10000"]),
        ("crawl.nonsense=1", &["crawl.nonsense=1", "nonsense"]),
        ("nonsense.x=1", &["nonsense"]),
        ("fetches", &["section.field=value"]),
    ] {
        let output = apoidea(&[
            "--config",
            missing.to_str().unwrap(),
            "--set",
            setting,
            "config",
        ]);
        assert_refused(&output, words);
    }
}

#[test]
fn the_settings_that_are_printed_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a.toml"), folder.path().join("b.toml"));
    let changes = [
        "--set",
        "crawl.fetches=7",
        "--set",
        "crawl.only=[\"example.org\"]",
    ];
    let output = apoidea(
        &[
            &["--config", first.to_str().unwrap()],
            &changes[..],
            &["config"],
        ]
        .concat(),
    );
    assert!(
        output.status.success() && stdout(&output).contains("fetches = 7"),
        "{output:?}"
    );
    fs::write(&second, &output.stdout).unwrap();
    let again = apoidea(&["--config", second.to_str().unwrap(), "config"]);
    let settings = |output: &Output| {
        stdout(output)
            .lines()
            .skip(1)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(settings(&again), settings(&output));
}

#[test]
fn unknown_words_and_missing_peers_are_refused() {
    for arguments in [
        &["--nonsense"][..],
        &["run", "--nonsense"],
        &["nonsense"],
        &[],
        &["seed"],
        &["robots", "x"],
    ] {
        let output = apoidea(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data"));
    for arguments in [
        &["status"][..],
        &["pause"],
        &["resume"],
        &["domains"],
        &["pages"],
        &["dashboard"],
    ] {
        assert_refused(&launch.run(arguments), &["no peer is running"]);
    }
    assert_refused(
        &launch.run(&["seed", "http://a.example/"]),
        &["no peer is running"],
    );
    assert_refused(&launch.run(&["export", "x.warc.gz"]), &["no archive"]);
    assert_refused(&launch.run(&["run", "--seed", "nonsense"]), &["nonsense"]);
    assert!(apoidea(&["--version"]).status.success() && apoidea(&["help", "run"]).status.success());
}

async fn done(peer: &PeerProcess) -> Status {
    peer.wait("the crawl is done", PATIENCE, |status| {
        status.state == State::Idle && status.totals.pages > 0 && status.queued == 0
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_peer_answers_the_command_line() {
    let toy = Toy::start(ToyWeb::builder(3).hosts(6).pages(120).mean_bytes(3000)).await;
    let launch = toy.launch();
    let peer = launch.start().await;

    let home = toy.web.seeds()[0].to_string();
    let output = launch.run(&["seed", &home, "nonsense", "http://10.0.0.1/"]);
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(1), "1 accepted\n")
    );
    assert!(
        stderr(&output).contains("\"nonsense\" refused: not a URL"),
        "{output:?}"
    );
    assert!(
        stderr(&output).contains("\"http://10.0.0.1/\" refused: "),
        "{output:?}"
    );
    let output = launch.run(&["seed", "--json", &home]);
    let answer: SeedAnswer = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (answer.accepted, answer.refused.len(), output.status.code()),
        (1, 0, Some(0))
    );

    let status = done(&peer).await;
    assert_eq!(status.totals.pages, 120);
    let output = launch.run(&["status"]);
    assert!(
        output.status.success() && stdout(&output).contains("120 ("),
        "{output:?}"
    );
    let output = launch.run(&["status", "--json"]);
    let told: Status = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((told.totals, told.state), (status.totals, State::Idle));

    let domains = launch.run(&["domains", "--json"]);
    let rows: Vec<apoidea_peer::DomainRow> = serde_json::from_slice(&domains.stdout).unwrap();
    let mut hosts: Vec<(String, u64)> = toy
        .web
        .truth()
        .hosts()
        .map(|(name, pages)| (name, u64::from(pages) + 1))
        .collect();
    hosts.sort();
    let found: Vec<(String, u64)> = rows
        .iter()
        .map(|row| (row.domain.to_string(), row.fetched))
        .collect();
    assert_eq!(found, hosts, "every page and one robots.txt each");
    let one = launch.run(&["domains", &hosts[2].0, "--limit", "5"]);
    assert_eq!(stdout(&one).lines().count(), 2, "{one:?}");
    let pages = launch.run(&["pages", "--json"]);
    let pages: Vec<apoidea_peer::PageEvent> = serde_json::from_slice(&pages.stdout).unwrap();
    assert_eq!(pages.len(), 100, "the last hundred");
    assert_eq!(stdout(&launch.run(&["pages"])).lines().count(), 100);
    export(&toy, &launch, &hosts[0].0);
    peer.stop().await;
    assert_refused(&launch.run(&["status"]), &["no peer is running"]);
}

/// Exports all, one domain, a time before and a time after the crawl.
fn export(toy: &Toy, launch: &Launch, domain: &str) {
    let of_domain = toy
        .web
        .truth()
        .must_keep()
        .filter(|url| url.host() == domain)
        .count();
    for (selection, expected) in [
        (&[][..], 120),
        (&["--domain", domain], of_domain),
        (&["--domain", "elsewhere.example"], 0),
        (&["--to", "2020-01-01"], 0),
        (
            &["--from", "2020-01-01T00:00:00Z", "--to", "2999-01-01"],
            120,
        ),
    ] {
        let file = toy.folder().join("export.warc.gz");
        let output = launch.run(&[&["export", file.to_str().unwrap()], selection].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(
            stdout(&output).starts_with(&format!("{expected} pages")),
            "{selection:?}: {output:?}"
        );
        let exported = Archived::in_files(vec![file.clone()]);
        assert_eq!(exported.responses.len() + exported.revisits.len(), expected);
        exported.check_with_warcio();
        let again = launch.run(&["export", file.to_str().unwrap()]);
        assert_refused(&again, &["exists already"]);
        fs::remove_file(file).unwrap();
    }
    assert_refused(
        &launch.run(&["export", "x.warc.gz", "--from", "yesterday"]),
        &["yesterday", "2026-11-16"],
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_peer_asks_nobody_also_after_a_restart() {
    let toy = Toy::start(ToyWeb::builder(4).hosts(10).pages(1000).mean_bytes(3000)).await;
    let launch = toy.launch_with_seeds().set("crawl.private_delay_ms", 100);
    let peer = launch.start().await;
    peer.wait("some pages are there", PATIENCE, |status| {
        status.totals.pages > 20
    })
    .await;
    let output = launch.run(&["pause"]);
    assert_eq!(
        (output.status.code(), stdout(&output)),
        (Some(0), "Paused by you\n")
    );
    let paused = peer
        .wait("fetches under way have ended", PATIENCE, |status| {
            status.fetching == 0
        })
        .await;
    assert_eq!(paused.state, State::Paused);
    let before = toy.web.log().visits.len();
    peer.stop().await;

    let peer = launch.start().await;
    let started = peer.status().await.started;
    // Twenty delays: whoever were to ask, would have asked.
    let later = peer.wait("time passes", PATIENCE, |status| {
        status.at.since(started) > Duration::from_secs(2)
    });
    assert_eq!(later.await.state, State::Paused);
    assert_eq!(
        toy.web.log().visits.len(),
        before,
        "nobody was asked while paused"
    );
    let output = launch.run(&["resume"]);
    assert!(output.status.success(), "{output:?}");
    peer.wait("it goes on", PATIENCE, |status| {
        status.totals.pages > paused.totals.pages + 20
    })
    .await;
    assert!(toy.web.log().visits.len() > before);
}

#[test]
fn a_swarm_can_be_watched_and_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let options = [
        "--peers=3",
        "--hosts=20",
        "--pages=300",
        "--delay=10",
        "--exit-when-done",
    ];
    let output = Command::new(program())
        .arg("demo")
        .args(options)
        .env("TMPDIR", folder.path())
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{words}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        words.contains("Everything is crawled: 300 pages by 3 peers."),
        "{words}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
