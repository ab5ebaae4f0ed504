//! What the volunteer wants is shown, set, kept and obeyed, through the API and the command line
//! alike.

use crate::{
    patience,
    peer_process::{Launch, PeerProcess},
    toy::Toy,
};
use apoidea_model::PageUrl;
use apoidea_peer::{
    PREFERENCES_FILE, State, Status,
    governor::{Pace, Preferences, Preset, Reason, Run},
};
use apoidea_toyweb::ToyWeb;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::{fs, time::Duration};

const PATIENCE: Duration = Duration::from_secs(60);

impl PeerProcess {
    /// Changes its preferences; gives them, or what it says against it.
    pub async fn prefer(&self, changes: Value) -> Result<Preferences, String> {
        let answer = self
            .request(Method::PUT, "/api/preferences")
            .json(&changes)
            .send()
            .await
            .unwrap();
        if answer.status().is_success() {
            return Ok(answer.json().await.unwrap());
        }
        assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
        let problem: Value = answer.json().await.unwrap();
        Err(problem["error"].as_str().unwrap().to_owned())
    }

    /// Its preferences.
    pub async fn preferences(&self) -> Preferences {
        self.request(Method::GET, "/api/preferences")
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }

    async fn tell(&self, path: &str, body: Value) -> Status {
        self.request(Method::POST, path)
            .json(&body)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }
}

fn said(launch: &Launch, arguments: &[&str]) -> String {
    let output = launch.run(arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_headless_peer_runs_without_limits_until_it_is_told_some() {
    let folder = tempfile::tempdir().unwrap();
    let peer = Launch::new(&folder.path().join("data")).start().await;
    assert_eq!(peer.preferences().await, Preferences::dedicated());
    let allowance = peer.status().await.allowance;
    assert_eq!(
        (allowance.pace, allowance.reason, allowance.cpu_percent),
        (Pace::Full, None, None)
    );
}

#[tokio::test]
async fn preferences_are_kept_and_bad_ones_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data"));
    let peer = launch.start().await;
    let changed = peer
        .prefer(json!({ "preset": "generous", "full": { "cpu_percent": 33 } }))
        .await
        .unwrap();
    let mut expected = Preset::Generous.preferences();
    (expected.preset, expected.full.cpu_percent) = (Preset::Custom, 33);
    assert_eq!(changed, expected);
    for (bad, field, accepted) in [
        (
            json!({ "full": { "cpu_percent": 6401 } }),
            "full.cpu_percent",
            "1 to 6400",
        ),
        (json!({ "run": "now and then" }), "run", "when_idle"),
        (
            json!({ "colour": 1, "idle_seconds": 5 }),
            "colour",
            "unknown field",
        ),
        (
            json!({ "schedule": { "monday": "x" } }),
            "schedule.monday",
            "24 letters",
        ),
    ] {
        let words = peer.prefer(bad).await.unwrap_err();
        assert!(words.contains(field) && words.contains(accepted), "{words}");
    }
    assert_eq!(peer.preferences().await, expected);
    peer.stop().await;
    let peer = launch.start().await;
    assert_eq!(peer.preferences().await, expected);
    peer.stop().await;

    let file = folder.path().join("data").join(PREFERENCES_FILE);
    fs::write(&file, "idle_seconds = 0\n").unwrap();
    let words = launch.refused().await;
    assert!(
        words.contains(PREFERENCES_FILE)
            && words.contains("idle_seconds")
            && words.contains("1 to 86400")
    );
}

#[tokio::test]
async fn the_settings_file_can_hold_preferences() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::write(
        data.with_extension("toml"),
        "[preferences]\npreset = \"gentle\"\nrun = \"never\"\n",
    )
    .unwrap();
    let peer = Launch::new(&data).start().await;
    let preferences = peer.preferences().await;
    assert_eq!(
        (preferences.run, preferences.memory_mib),
        (Run::Never, Preset::Gentle.preferences().memory_mib)
    );
    peer.wait("it pauses", PATIENCE, |status| {
        status.reason == "Paused: your preferences say never"
    })
    .await;
    drop(peer);
    let words = Launch::new(&data)
        .set("preferences.memory_mib", 1)
        .refused()
        .await;
    assert!(
        words.contains("memory_mib") && words.contains("96 to"),
        "{words}"
    );
}

#[tokio::test]
async fn a_snooze_survives_a_restart_and_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data"));
    let peer = launch.start().await;
    let status = peer.tell("/api/snooze", json!({ "for": "1h" })).await;
    assert_eq!(status.state, State::Paused);
    assert!(
        status.reason.starts_with("Paused by you until "),
        "{}",
        status.reason
    );
    peer.stop().await;
    let peer = launch.start().await;
    let kept = peer.status().await.allowance.reason;
    assert!(matches!(kept, Some(Reason::Snoozed { .. })), "{kept:?}");
    assert_eq!(kept, status.allowance.reason);
    assert_ne!(
        peer.tell("/api/resume", json!({})).await.state,
        State::Paused
    );
    assert!(said(&launch, &["snooze", "3s"]).starts_with("Paused by you until "));
    peer.wait("the snooze ends", PATIENCE, |status| {
        status.state != State::Paused
    })
    .await;
    let refused = peer
        .request(Method::POST, "/api/snooze")
        .json(&json!({ "for": "a while" }))
        .send()
        .await
        .unwrap();
    assert_eq!(refused.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text().await.unwrap().contains("until tomorrow"));
    assert!(said(&launch, &["snooze", "until", "tomorrow"]).contains("tomorrow 07:00"));
}

#[tokio::test]
async fn the_command_line_shows_and_sets_the_limits() {
    let folder = tempfile::tempdir().unwrap();
    let launch = Launch::new(&folder.path().join("data"));
    let peer = launch.start().await;
    assert!(said(&launch, &["limits"]).contains("no limits"));
    let shown = said(
        &launch,
        &[
            "limits",
            "--cpu",
            "40",
            "--down=512",
            "--memory=200",
            "--schedule",
            "weekend=------------------gggggg",
        ],
    );
    for part in [
        "40 % of one core",
        "512 KiB/s down",
        "200 MiB",
        "------------------gggggg",
    ] {
        assert!(shown.contains(part), "{part:?} is missing in:\n{shown}");
    }
    let json: Preferences =
        serde_json::from_str(&said(&launch, &["limits", "--json", "--program", "doom"])).unwrap();
    assert_eq!(json, peer.preferences().await);
    assert_eq!(
        (json.full.cpu_percent, json.programs.as_slice()),
        (40, ["doom".to_owned()].as_slice())
    );
    let status = said(&launch, &["status"]);
    assert!(
        status.contains("40 % of one core, 512.00 KiB/s down"),
        "{status}"
    );
    let refused = launch.run(&["limits", "--memory", "5"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("96 to"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_volunteers_peer_is_last_in_line() {
    const IDLE: &str = "5";
    let folder = tempfile::tempdir().unwrap();
    let peer = Launch::new(&folder.path().join("data"))
        .set("preferences.priority", "lowest")
        .start()
        .await;
    let (first, tasks) = (peer.id().to_string(), format!("/proc/{}/task", peer.id()));
    let policies = || -> Vec<String> {
        // The first thread only waits for the others.
        let others = fs::read_dir(&tasks)
            .unwrap()
            .flatten()
            .filter(|thread| thread.file_name() != *first);
        let stats = others.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
        let policy = |stat: String| {
            Some(
                stat.rsplit_once(')')?
                    .1
                    .split_whitespace()
                    .nth(38)?
                    .to_owned(),
            )
        };
        stats.filter_map(policy).collect()
    };
    let is_lowered = |all: &[String]| !all.is_empty() && all.iter().all(|it| it == IDLE);
    let lowered = patience::look(PATIENCE, async || is_lowered(&policies()).then_some(()));
    assert!(
        lowered.await.is_some(),
        "scheduling policies of the threads: {:?}",
        policies()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limited_crawl_finds_the_same_pages() {
    let toy = Toy::start(ToyWeb::builder(9).hosts(8).pages(300).mean_bytes(3000)).await;
    let peer = toy
        .launch_with_seeds()
        .set(
            "preferences.full",
            "{ cpu_percent = 50, down_kib = 500, up_kib = 500, fetches = 4 }",
        )
        .set("preferences.memory_mib", 96)
        .start()
        .await;
    let done = peer.wait("everything is crawled", 3 * PATIENCE, |status| {
        status.state == State::Idle && status.totals.admitted > 0 && status.queued == 0
    });
    done.await;
    let visited = toy.web.log().requests_per_url();
    let missed: Vec<PageUrl> = toy
        .web
        .truth()
        .must_fetch()
        .filter(|url| !visited.contains_key(url.as_str()))
        .collect();
    assert_eq!(missed, []);
}
