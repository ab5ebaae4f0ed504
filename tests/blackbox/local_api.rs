//! The local API: who may use it, what it does with what is wrong, and what it tells programs.

use crate::{
    peer_process::{Launch, PeerProcess},
    toy::Toy,
};
use apoidea_peer::{PageEvent, PageOutcome, Status, governor::Reason};
use apoidea_toyweb::ToyWeb;
use reqwest::{
    Client, Method, RequestBuilder, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, COOKIE, HOST, LOCATION, ORIGIN, SET_COOKIE},
};
use serde_json::{Value, json};
use std::{collections::BTreeMap, fs, time::Duration};

/// Every path that tells or changes something, with its method.
const PRIVATE: [(&str, &str); 25] = [
    ("GET", "/api/status"),
    ("GET", "/api/events"),
    ("GET", "/api/domains"),
    ("GET", "/api/pages"),
    ("GET", "/api/peers"),
    ("GET", "/api/owners?domain=a.example"),
    ("GET", "/metrics"),
    ("GET", "/"),
    ("GET", "/assets/index.js"),
    ("GET", "/api/history"),
    ("GET", "/api/journal"),
    ("GET", "/api/places"),
    ("GET", "/api/refusals"),
    ("POST", "/api/refusals"),
    ("DELETE", "/api/refusals"),
    ("GET", "/icon.svg"),
    ("POST", "/api/seeds"),
    ("POST", "/api/pause"),
    ("POST", "/api/resume"),
    ("POST", "/api/link"),
    ("GET", "/api/preferences"),
    ("PUT", "/api/preferences"),
    ("GET", "/api/preferences/ranges"),
    ("POST", "/api/snooze"),
    ("POST", "/api/quit"),
];
/// The paths that read a body, with one that they take.
const BODIES: [(&str, &str, &str); 5] = [
    ("POST", "/api/seeds", r#"{"urls": ["http://a.example/"]}"#),
    ("POST", "/api/refusals", r#"{"domain": "a.example"}"#),
    ("DELETE", "/api/refusals", r#"{"domain": "a.example"}"#),
    ("PUT", "/api/preferences", r#"{"memory_mib": 300}"#),
    ("POST", "/api/snooze", r#"{"for": "1h"}"#),
];

/// A peer without work, and a browser that knows nothing.
struct Visitor {
    peer: PeerProcess,
    browser: Client,
    /// As they were at the start.
    preferences: Value,
    _folder: tempfile::TempDir,
}

impl Visitor {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let peer = Launch::new(&folder.path().join("data")).start().await;
        // The peer hangs up on a request that is too large; the next one must not come upon that
        // connection.
        let browser = Client::builder()
            .pool_max_idle_per_host(0)
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(Duration::from_secs(20))
            .build()
            .unwrap();
        let preferences = preferences_of(&peer).await;
        Visitor {
            peer,
            browser,
            preferences,
            _folder: folder,
        }
    }

    /// Without any right.
    fn ask(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = self
            .browser
            .request(method.clone(), format!("{}{path}", self.peer.address()));
        match BODIES
            .iter()
            .find(|(known, at, _)| (*known, *at) == (method.as_str(), path))
        {
            Some((.., body)) => request.header(CONTENT_TYPE, "application/json").body(*body),
            None => request,
        }
    }

    /// With the token.
    fn ask_by_right(&self, method: &str, path: &str) -> RequestBuilder {
        self.ask(method, path).bearer_auth(self.peer.token())
    }

    fn cookie_name(&self) -> String {
        let (_, port) = self.peer.address().rsplit_once(':').unwrap();
        format!("apoidea-{port}")
    }

    /// The path of a link to the dashboard.
    async fn link(&self) -> String {
        let link = self.ask_by_right("POST", "/api/link").send().await.unwrap();
        let link: Value = link.json().await.unwrap();
        link["path"].as_str().unwrap().to_owned()
    }

    /// What a link to the dashboard brings: the cookie and the key.
    async fn open(&self) -> (String, String) {
        let opened = self.ask("GET", &self.link().await).send().await.unwrap();
        let header = |name| opened.headers()[name].to_str().unwrap().to_owned();
        let (cookie, location) = (header(SET_COOKIE), header(LOCATION));
        let (cookie, _) = cookie.split_once(';').unwrap();
        let (_, key) = location.split_once("?key=").unwrap();
        (cookie.to_owned(), key.to_owned())
    }

    async fn assert_unchanged(&self) {
        let status = self.peer.status().await;
        assert_eq!(
            (status.queued, status.domains, status.totals.admitted),
            (0, 0, 0)
        );
        assert_ne!(status.state, apoidea_peer::State::Paused);
        let refused = self
            .peer
            .request(Method::GET, "/api/refusals")
            .send()
            .await
            .unwrap();
        assert_eq!(refused.json::<Vec<String>>().await.unwrap(), [""; 0]);
        assert!(
            !matches!(status.allowance.reason, Some(Reason::Snoozed { .. })),
            "snoozed"
        );
        assert_eq!(
            self.preferences().await,
            self.preferences,
            "the preferences were changed"
        );
    }

    async fn preferences(&self) -> Value {
        preferences_of(&self.peer).await
    }
}

async fn preferences_of(peer: &PeerProcess) -> Value {
    peer.request(Method::GET, "/api/preferences")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap()
}

/// The answer is this status with a reason in JSON.
async fn assert_problem(request: RequestBuilder, status: StatusCode) {
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), status, "{}", answer.url());
    let problem: Value = answer.json().await.unwrap();
    assert!(
        problem["error"].as_str().is_some_and(|why| why.len() > 5),
        "{problem}"
    );
}

#[tokio::test]
async fn nobody_without_the_token_learns_or_changes_anything() {
    let visitor = Visitor::new().await;
    for (method, path) in PRIVATE {
        assert_problem(visitor.ask(method, path), StatusCode::UNAUTHORIZED).await;
        for wrong in ["", "Bearer", "Bearer ", "Bearer wrong", "Basic YTpi"] {
            let request = visitor.ask(method, path).header(AUTHORIZATION, wrong);
            assert_problem(request, StatusCode::UNAUTHORIZED).await;
        }
        let almost = &visitor.peer.token()[1..];
        assert_problem(
            visitor.ask(method, path).bearer_auth(almost),
            StatusCode::UNAUTHORIZED,
        )
        .await;
        let cookie = format!("{}={}", visitor.cookie_name(), visitor.peer.token());
        assert_problem(
            visitor.ask(method, path).header(COOKIE, cookie),
            StatusCode::UNAUTHORIZED,
        )
        .await;
    }
    visitor.assert_unchanged().await;
}

#[tokio::test]
async fn other_sites_and_other_names_are_refused_even_with_the_token() {
    let visitor = Visitor::new().await;
    let port = visitor
        .peer
        .address()
        .rsplit_once(':')
        .unwrap()
        .1
        .to_owned();
    for (method, path) in PRIVATE.into_iter().chain([("GET", "/open?key=x")]) {
        for host in [
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "0",
            "",
        ] {
            let request = visitor.ask_by_right(method, path).header(HOST, host);
            assert_problem(request, StatusCode::MISDIRECTED_REQUEST).await;
        }
        for origin in [
            "http://evil.example",
            "null",
            "https://127.0.0.1",
            "http://127.0.0.1:1",
            "file://",
        ] {
            let request = visitor.ask_by_right(method, path).header(ORIGIN, origin);
            assert_problem(request, StatusCode::FORBIDDEN).await;
        }
    }
    let own = format!("http://127.0.0.1:{port}");
    let answer = visitor
        .ask_by_right("GET", "/api/status")
        .header(ORIGIN, own)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    // What a browser says of a page's requests that carry no Origin; another port of this machine
    // is another site.
    for site in ["cross-site", "same-site"] {
        let request = visitor
            .ask_by_right("GET", "/api/status")
            .header("sec-fetch-site", site);
        assert_problem(request, StatusCode::FORBIDDEN).await;
    }
    visitor.assert_unchanged().await;
}

#[tokio::test]
async fn malformed_and_oversized_requests_change_nothing() {
    let visitor = Visitor::new().await;
    let seeds = |body: String, kind: &'static str| {
        let url = format!("{}/api/seeds", visitor.peer.address());
        let request = visitor.browser.post(url).bearer_auth(visitor.peer.token());
        request.header(CONTENT_TYPE, kind).body(body)
    };
    let many = format!(
        "{{\"urls\": [{}\"x\"]}}",
        "\"http://a.example/\",".repeat(100_000)
    );
    let deep = "[".repeat(100_000);
    for (body, kind, status) in [
        ("", "application/json", 400),
        (
            "{\"urls\": [\"http://a.example/\"]",
            "application/json",
            400,
        ),
        (&deep, "application/json", 422),
        ("[]", "application/json", 422),
        ("{\"urls\": \"http://a.example/\"}", "application/json", 422),
        ("{\"urls\": [1]}", "application/json", 422),
        (
            "{\"urls\": [\"http://a.example/\"], \"more\": 1}",
            "application/json",
            422,
        ),
        ("{\"urls\": [\"http://a.example/\"]}", "text/plain", 415),
        (&many, "application/json", 413),
    ] {
        assert_problem(
            seeds(body.to_owned(), kind),
            StatusCode::from_u16(status).unwrap(),
        )
        .await;
    }
    for (method, path, right) in BODIES {
        for (body, kind) in [
            ("", "application/json"),
            (&right[..right.len() - 1], "application/json"),
            (&deep, "application/json"),
            ("[]", "application/json"),
            ("7", "application/json"),
            (r#"{"unknown": 1}"#, "application/json"),
            (right, "text/plain"),
            (right, "application/x-www-form-urlencoded"),
            (&many, "application/json"),
        ] {
            let url = format!("{}{path}", visitor.peer.address());
            let request = visitor
                .browser
                .request(method.parse().unwrap(), url)
                .bearer_auth(visitor.peer.token());
            let answer = request
                .header(CONTENT_TYPE, kind)
                .body(body.to_owned())
                .send()
                .await
                .unwrap();
            let start: String = body.chars().take(40).collect();
            assert!(
                answer.status().is_client_error(),
                "{method} {path} {kind} {start}: {}",
                answer.status()
            );
        }
    }
    for (method, path, status) in [
        ("GET", "/nowhere", StatusCode::NOT_FOUND),
        ("GET", "/api/../etc/passwd", StatusCode::NOT_FOUND),
        ("GET", "/open?key=wrong", StatusCode::FORBIDDEN),
    ] {
        assert_problem(visitor.ask_by_right(method, path), status).await;
    }
    for (method, path) in [
        ("GET", "/api/pause"),
        ("DELETE", "/api/status"),
        ("PATCH", "/api/seeds"),
    ] {
        let answer = visitor.ask_by_right(method, path).send().await.unwrap();
        assert_eq!(
            answer.status(),
            StatusCode::METHOD_NOT_ALLOWED,
            "{method} {path}"
        );
    }
    for path in [
        "/open",
        "/api/hello",
        "/api/hello?nonce=x",
        "/api/domains?limit=x",
        "/api/domains?limit=-1",
    ] {
        let answer = visitor.ask_by_right("GET", path).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{path}");
    }
    visitor.assert_unchanged().await;
}

#[tokio::test]
async fn every_answer_keeps_foreign_pages_out() {
    let visitor = Visitor::new().await;
    for request in [
        visitor.ask_by_right("GET", "/"),
        visitor.ask_by_right("GET", "/api/status"),
        visitor.ask("GET", "/api/status"),
        visitor.ask("GET", "/nowhere"),
    ] {
        let answer = request.send().await.unwrap();
        let header = |name: &str| answer.headers()[name].to_str().unwrap();
        assert!(
            header("content-security-policy").starts_with("default-src 'none'; script-src 'self';")
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cross-origin-resource-policy"), "same-origin");
        assert!(["no-store", "no-cache"].contains(&header("cache-control")));
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
    }
}

#[tokio::test]
async fn a_stranger_who_asks_without_end_is_slowed_down_and_the_owner_is_not() {
    let visitor = Visitor::new().await;
    let mut last = StatusCode::OK;
    for _ in 0..5000 {
        last = visitor
            .ask("GET", "/api/status")
            .send()
            .await
            .unwrap()
            .status();
        if last == StatusCode::TOO_MANY_REQUESTS {
            break;
        }
        assert_eq!(last, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(last, StatusCode::TOO_MANY_REQUESTS);
    visitor.assert_unchanged().await;
}

#[tokio::test]
async fn only_so_many_can_follow_the_events() {
    let visitor = Visitor::new().await;
    let mut following = Vec::new();
    let refused = loop {
        let answer = visitor
            .ask_by_right("GET", "/api/events")
            .send()
            .await
            .unwrap();
        if answer.status() != StatusCode::OK || following.len() > 100 {
            break answer.status();
        }
        following.push(answer);
    };
    assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS);
    following.clear();
    let again = async || {
        let answer = visitor
            .ask_by_right("GET", "/api/events")
            .send()
            .await
            .unwrap();
        answer.status().is_success().then_some(())
    };
    visitor
        .peer
        .observe("a place for one more", Duration::from_secs(20), again)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_domain_is_not_crawled_any_more_also_after_a_restart() {
    let toy = Toy::start(ToyWeb::builder(8).hosts(4).pages(200).mean_bytes(1000)).await;
    let launch = toy.launch();
    let peer = launch.start().await;
    let seeds = toy.web.seeds();
    let refused = seeds[0].domain().to_string();
    let body = json!({ "domain": refused });
    let answer = peer
        .request(Method::POST, "/api/refusals")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(
        answer.json::<Vec<String>>().await.unwrap(),
        [refused.as_str()]
    );
    peer.stop().await;

    let peer = launch.start().await;
    let seeded = peer
        .seed(&seeds.iter().map(ToString::to_string).collect::<Vec<_>>())
        .await;
    assert_eq!(
        seeded.refused.len(),
        seeds.iter().filter(|url| url.host() == refused).count()
    );
    peer.wait(
        "other domains to be crawled",
        Duration::from_secs(60),
        |status| status.totals.pages > 20,
    )
    .await;
    let row = peer
        .domains()
        .await
        .into_iter()
        .find(|row| row.domain.as_str() == refused);
    assert!(
        row.is_none_or(|row| row.fetched == 0),
        "a refused domain was crawled"
    );

    let answer = peer
        .request(Method::DELETE, "/api/refusals")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.json::<Vec<String>>().await.unwrap(), [""; 0]);
    assert!(peer.seed(&[seeds[0].to_string()]).await.refused.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusing_a_domain_forgets_what_waits_of_it() {
    let toy = Toy::start(ToyWeb::builder(9).hosts(4).pages(2000).mean_bytes(1000)).await;
    let peer = toy
        .launch()
        .set("crawl.private_delay_ms", 200)
        .start()
        .await;
    peer.seed(
        &toy.web
            .seeds()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    )
    .await;
    let busiest = async || {
        peer.domains()
            .await
            .into_iter()
            .max_by_key(|row| row.queued)
    };
    let row = peer
        .observe("a queue", Duration::from_secs(60), async || {
            busiest().await.filter(|row| row.queued > 20)
        })
        .await;
    let body = json!({ "domain": row.domain });
    peer.request(Method::POST, "/api/refusals")
        .json(&body)
        .send()
        .await
        .unwrap();
    let is_empty = async || {
        let rows = peer.domains().await;
        rows.into_iter()
            .find(|other| other.domain == row.domain)
            .filter(|row| row.queued == 0)
    };
    peer.observe("its queue to be empty", Duration::from_secs(20), is_empty)
        .await;
    let notes: Vec<Value> = peer
        .request(Method::GET, "/api/journal")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert!(
        notes
            .iter()
            .any(|note| note["text"].as_str().unwrap().contains("You refused")),
        "{notes:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_is_told_by_the_hour_also_after_a_restart() {
    let toy = Toy::start(ToyWeb::builder(10).hosts(4).pages(60).mean_bytes(3000)).await;
    let launch = toy.launch();
    let peer = launch.start().await;
    peer.seed(
        &toy.web
            .seeds()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    )
    .await;
    peer.wait("all pages", Duration::from_secs(60), |status| {
        status.totals.pages >= 60
    })
    .await;
    peer.stop().await;
    let peer = launch.start().await;
    let told = async || {
        let answer = peer
            .request(Method::GET, "/api/history")
            .send()
            .await
            .unwrap();
        let hours: Vec<apoidea_peer::Hour> = answer.json().await.unwrap();
        (hours.iter().map(|hour| hour.pages).sum::<u64>() == peer.status().await.totals.pages)
            .then_some(())
    };
    peer.observe(
        "the hours to add up to the total",
        Duration::from_secs(20),
        told,
    )
    .await;
}

#[tokio::test]
async fn a_link_to_the_dashboard_works_once() {
    let visitor = Visitor::new().await;
    let path = &visitor.link().await;
    let opened = visitor.ask("GET", path).send().await.unwrap();
    assert!(opened.status().is_redirection(), "{opened:?}");
    let cookie = opened.headers()[SET_COOKIE].to_str().unwrap().to_owned();
    assert!(
        cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"),
        "{cookie}"
    );
    let location = opened.headers()[LOCATION].to_str().unwrap();
    let (target, key) = location.split_once("?key=").unwrap();
    assert_eq!((target, key.len()), ("/#/", 64));
    assert_problem(visitor.ask("GET", path), StatusCode::FORBIDDEN).await;
    // A person sees a page instead; the browser that the link let in is let in again.
    let again = || visitor.ask("GET", path).header(ACCEPT, "text/html");
    let stranger = again().send().await.unwrap();
    assert_eq!(stranger.status(), StatusCode::FORBIDDEN);
    assert!(stranger.text().await.unwrap().contains("yours alone"));
    let (known, _) = cookie.split_once(';').unwrap();
    assert!(
        again()
            .header(COOKIE, known)
            .send()
            .await
            .unwrap()
            .status()
            .is_redirection()
    );
    for (page, target) in [
        ("settings", "/#/settings"),
        ("//evil.example", "/#/"),
        ("%0d%0ax:y", "/#/"),
    ] {
        let path = visitor.link().await;
        let opened = visitor
            .ask("GET", &format!("{path}&page={page}"))
            .send()
            .await
            .unwrap();
        let location = opened.headers()[LOCATION].to_str().unwrap();
        assert_eq!(location.split_once("?key=").unwrap().0, target, "{page}");
    }

    let (cookie, _) = cookie.split_once(';').unwrap();
    for path in ["/", "/icon.svg"] {
        let request = visitor.ask("GET", path).header(COOKIE, cookie);
        assert_eq!(
            request.send().await.unwrap().status(),
            StatusCode::OK,
            "{path}"
        );
    }
    for (method, path) in PRIVATE {
        let foreign = || visitor.ask(method, path).header(COOKIE, cookie);
        assert_problem(
            foreign().header(ORIGIN, "http://evil.example"),
            StatusCode::FORBIDDEN,
        )
        .await;
        assert_problem(
            foreign().header(HOST, "evil.example"),
            StatusCode::MISDIRECTED_REQUEST,
        )
        .await;
    }
    visitor.assert_unchanged().await;
}

/// A browser sends its cookies to every port of a host, so every program that listens on this
/// computer may have them.
#[tokio::test]
async fn a_cookie_alone_tells_and_changes_nothing() {
    let visitor = Visitor::new().await;
    let (cookie, key) = visitor.open().await;
    let api = |path: &str| path.starts_with("/api/") || path == "/metrics";
    for (method, path) in PRIVATE.into_iter().filter(|(_, path)| api(path)) {
        let request = visitor.ask(method, path).header(COOKIE, &cookie);
        assert_problem(request, StatusCode::UNAUTHORIZED).await;
    }
    let status = |request: RequestBuilder| async { request.send().await.unwrap().status() };
    let by_key = visitor.ask("GET", "/api/status").bearer_auth(&key);
    assert_eq!(status(by_key).await, StatusCode::OK);
    // Only for the events may the key be in the address.
    let in_address = |path: &str| visitor.ask("GET", &format!("{path}?key={key}"));
    assert_eq!(status(in_address("/api/events")).await, StatusCode::OK);
    assert_problem(in_address("/api/status"), StatusCode::UNAUTHORIZED).await;
    let token = format!("/api/events?key={}", visitor.peer.token());
    assert_problem(visitor.ask("GET", &token), StatusCode::UNAUTHORIZED).await;
    visitor.assert_unchanged().await;
}

#[tokio::test]
async fn a_stranger_who_asks_without_end_does_not_close_the_doors() {
    let visitor = Visitor::new().await;
    let foreign = |path: &str| {
        let request = visitor.ask("GET", path);
        request.header("sec-fetch-site", "cross-site")
    };
    let mut asked = 0;
    while foreign("/open?key=x").send().await.unwrap().status() != StatusCode::TOO_MANY_REQUESTS {
        asked += 1;
        assert!(asked < 5000, "a foreign page is not slowed down");
    }
    assert_problem(visitor.ask("GET", "/open?key=x"), StatusCode::FORBIDDEN).await;
    let nonce = "0".repeat(64);
    let hello = visitor.ask("GET", &format!("/api/hello?nonce={nonce}"));
    assert_eq!(hello.send().await.unwrap().status(), StatusCode::OK);
    visitor.open().await;
}

#[cfg(unix)]
#[tokio::test]
async fn the_token_is_for_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let visitor = Visitor::new().await;
    let token = visitor._folder.path().join("data/api-token");
    assert_eq!(
        fs::metadata(&token).unwrap().permissions().mode() & 0o777,
        0o600
    );
    for folder in ["data", "data/db", "data/archive"] {
        let folder = visitor._folder.path().join(folder);
        let mode = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "{}", folder.display());
    }
    assert!(visitor.peer.address().starts_with("http://127.0.0.1:"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programs_can_follow_a_crawl() {
    let toy = Toy::start(ToyWeb::builder(6).hosts(4).pages(60).mean_bytes(3000)).await;
    let peer = toy.launch().start().await;
    let mut events = peer
        .request(Method::GET, "/api/events")
        .send()
        .await
        .unwrap();
    assert_eq!(events.headers()[CONTENT_TYPE], "text/event-stream");
    peer.seed(
        &toy.web
            .seeds()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    )
    .await;
    let (mut text, mut statuses, mut pages) =
        (String::new(), Vec::<Status>::new(), Vec::<PageEvent>::new());
    while statuses
        .last()
        .is_none_or(|status| status.totals.pages < 60)
    {
        let chunk = tokio::time::timeout(Duration::from_secs(30), events.chunk()).await;
        text += std::str::from_utf8(&chunk.expect("events keep coming").unwrap().unwrap()).unwrap();
        while let Some((event, rest)) = text.split_once("\n\n") {
            match event.split_once('\n') {
                Some(("event: status", data)) => statuses.push(parse(data)),
                Some(("event: page", data)) => pages.push(parse(data)),
                Some(("event: note", data)) => {
                    assert!(!parse::<apoidea_peer::Note>(data).text.is_empty())
                }
                _ => assert!(event.starts_with(':'), "{event:?}"),
            }
            text = rest.to_owned();
        }
    }
    assert!(statuses.len() > 1);
    assert_eq!(
        pages
            .iter()
            .filter(|page| matches!(page.outcome, PageOutcome::Page | PageOutcome::Duplicate))
            .count(),
        60
    );

    let metrics = peer
        .request(Method::GET, "/metrics")
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    let metrics = parse_metrics(&metrics);
    assert_eq!(metrics["apoidea_pages_total"], 60.0);
    assert_eq!(metrics["apoidea_queued_urls"], 0.0);
    assert!(metrics["apoidea_resident_memory_bytes"] > 1e6);
}

fn parse<T: serde::de::DeserializeOwned>(data: &str) -> T {
    serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap()
}

/// Prometheus text format 0.0.4: every sample has a type that was said before, and a number.
fn parse_metrics(text: &str) -> BTreeMap<String, f64> {
    let (mut types, mut samples) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert!(types.insert(name, kind).is_none(), "{name} has two types");
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let name = sample.split('{').next().unwrap();
            assert!(types.contains_key(name), "{line} has no type");
            assert!(
                samples
                    .insert(sample.to_owned(), value.parse().unwrap())
                    .is_none(),
                "{line} comes twice"
            );
        }
    }
    samples
}
