//! The dashboard in the app's own web view, driven by WebKit's own driver: every page, a setting
//! changed, news as they come.

use crate::{
    api::Api,
    app::{at_home, home, program, words},
    screen::{Screen, wait},
};
use base64::prelude::*;
use serde_json::{Value, json};
use std::{fs, net::TcpListener, path::Path, process::Child};

/// Where Debian keeps WebKit's own driver.
const DRIVER: &str = "/usr/bin/WebKitWebDriver";
/// Tells the app that its web view may be driven.
const AUTOMATION: &str = "TAURI_WEBVIEW_AUTOMATION";
const PAGES: [&str; 6] = [
    "overview", "domains", "peers", "settings", "activity", "about",
];
/// Counts what goes wrong on the page from now on.
const LISTEN: &str = "window.complaints = []; addEventListener('error', (event) => complaints.push(event.message)); \
    const say = console.error; console.error = (...words) => { complaints.push(words.join(' ')); say(...words); };";

/// A web view under control; dropping it ends the app.
struct View {
    driver: Child,
    session: String,
    api: Api,
}

impl View {
    /// Starts the app and waits for its window.
    fn open(screen: &Screen, home: &Path) -> Self {
        let port = free_port();
        let driver = at_home(screen, DRIVER, home)
            .args(["--host=127.0.0.1", &format!("--port={port}")])
            .env(AUTOMATION, "true")
            .spawn()
            .unwrap();
        let api = Api::of(home);
        let url = format!("http://127.0.0.1:{port}/session");
        let app =
            json!({ "webkitgtk:browserOptions": { "binary": program(), "args": words(home) } });
        let wanted = json!({ "capabilities": { "alwaysMatch": app } });
        let session = wait("the web view to be driven", || {
            api.answer(api.request("POST", &url).body(wanted.to_string()))
        });
        let session = format!("{url}/{}", session["value"]["sessionId"].as_str().unwrap());
        View {
            driver,
            session,
            api,
        }
    }

    fn send(&self, method: &str, path: &str, body: Value) -> Option<Value> {
        let request = self.api.request(method, &format!("{}{path}", self.session));
        let request = if method == "GET" {
            request
        } else {
            request.body(body.to_string())
        };
        self.api
            .answer(request)
            .map(|mut answer| answer["value"].take())
    }

    /// What a script on the page gives back.
    fn run(&self, script: &str) -> Value {
        self.send(
            "POST",
            "/execute/sync",
            json!({ "script": script, "args": [] }),
        )
        .unwrap_or_default()
    }

    fn element(&self, xpath: &str) -> String {
        wait(xpath, || {
            let found = self.send(
                "POST",
                "/element",
                json!({ "using": "xpath", "value": xpath }),
            )?;
            let id = found.as_object()?.values().next()?.as_str()?;
            Some(format!("/element/{id}"))
        })
    }

    fn click(&self, xpath: &str) {
        let element = self.element(xpath);
        assert!(
            self.send("POST", &format!("{element}/click"), json!({}))
                .is_some(),
            "{xpath}"
        );
    }

    /// Writes into a field as a person does, and leaves it.
    fn fill(&self, xpath: &str, text: &str) {
        let element = self.element(xpath);
        self.send("POST", &format!("{element}/clear"), json!({}));
        let keys = format!("{text}\u{e004}");
        assert!(
            self.send("POST", &format!("{element}/value"), json!({ "text": keys }))
                .is_some(),
            "{xpath}"
        );
    }

    fn picture(&self, name: &str) {
        let picture = self.send("GET", "/screenshot", Value::Null).unwrap();
        let bytes = BASE64_STANDARD.decode(picture.as_str().unwrap()).unwrap();
        fs::write(
            crate::screen::artefact(&format!("web-view-{name}.png")),
            bytes,
        )
        .unwrap();
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let _ = self.send("DELETE", "", json!({}));
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn free_port() -> String {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
        .to_string()
}

#[test]
fn the_dashboard_works_in_the_apps_own_web_view() {
    let Some(screen) = Screen::start().filter(|_| Path::new(DRIVER).exists()) else {
        eprintln!("there is no WebKitWebDriver or no X server here: nothing was tested");
        return;
    };
    let home = home();
    let view = View::open(&screen, home.path());
    view.element("//h1[text()='Welcome to Apoidea']");
    view.run(LISTEN);
    view.picture("welcome");
    view.api.wait("the peer to wait for consent", |status| {
        status["state"] == "paused"
    });
    view.click("//button[text()='Begin']");
    view.element("//h1[text()='Overview']");
    view.api
        .wait("the crawl to begin", |status| status["state"] != "paused");

    for page in PAGES {
        view.run(&format!("location.hash = '#/{page}'"));
        let (first, rest) = page.split_at(1);
        view.element(&format!("//h1[text()='{}{rest}']", first.to_uppercase()));
        wait("the page to be loaded", || {
            view.run("return !/Loading…|Looking round…/.test(document.body.textContent)")
                .as_bool()
                .filter(|is| *is)
        });
        let beyond = view.run(
            "const page = document.documentElement; return page.scrollWidth - page.clientWidth",
        );
        assert_eq!(beyond, 0, "{page} is wider than the window");
        view.picture(page);
    }

    view.run("location.hash = '#/settings'");
    view.fill("//input[@id='memory_mib']", "300");
    view.api.wait_for("the memory", "/api/preferences", |all| {
        all["memory_mib"] == 300
    });
    view.run("location.hash = '#/overview'");
    view.api.ask("POST", "/api/pause");
    view.element("//p[contains(@class, 'reason')][contains(text(), 'Paused by you')]");
    view.click("//button[contains(., 'Resume')]");
    view.api
        .wait("the pause to end", |status| status["state"] != "paused");
    assert_eq!(view.run("return window.complaints"), json!([]));
}
