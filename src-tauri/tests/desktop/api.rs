//! The API of the peer that lives in a home, asked as any program asks it.

use crate::screen::{SOON, wait};
use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Asks the peer of a home.
pub struct Api {
    home: PathBuf,
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

impl Api {
    /// That of the peer in this home, once it runs.
    pub fn of(home: &Path) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .pool_idle_timeout(apoidea_peer::API_IDLE)
            .no_proxy()
            .timeout(SOON)
            .build()
            .unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Api {
            home: home.to_owned(),
            http,
            runtime,
        }
    }

    /// Asks, and expects an answer.
    pub fn ask(&self, method: &str, path: &str) -> Value {
        self.send(method, path, None)
            .unwrap_or_else(|| panic!("{path} was refused"))
    }

    /// Asks with a body; none if there is no answer, or no.
    pub fn send(&self, method: &str, path: &str, body: Option<Value>) -> Option<Value> {
        let read = |name: &str| fs::read_to_string(self.home.join("data").join(name)).ok();
        let (address, token) = (read("api-address")?, read("api-token")?);
        let url = format!("{}{path}", address.trim());
        let request = self
            .http
            .request(method.parse().unwrap(), url)
            .bearer_auth(token.trim());
        self.answer(match body {
            Some(body) => request
                .header("Content-Type", "application/json")
                .body(body.to_string()),
            None => request,
        })
    }

    /// Sends a request to anybody, and takes JSON from them.
    pub fn answer(&self, request: reqwest::RequestBuilder) -> Option<Value> {
        let body = self.runtime.block_on(async {
            let answer = request.send().await.ok()?.error_for_status().ok()?;
            answer.bytes().await.ok()
        });
        serde_json::from_slice(&body?).ok()
    }

    /// A request to anybody.
    pub fn request(&self, method: &str, url: &str) -> reqwest::RequestBuilder {
        self.http.request(method.parse().unwrap(), url)
    }

    /// Waits until an answer is as wanted.
    pub fn wait_for(&self, what: &str, path: &str, is_so: impl Fn(&Value) -> bool) {
        wait(what, || self.send("GET", path, None).filter(&is_so));
    }

    /// Waits until the status is as wanted.
    pub fn wait(&self, what: &str, is_so: impl Fn(&Value) -> bool) {
        self.wait_for(what, "/api/status", is_so);
    }

    /// Changes preferences.
    pub fn prefer(&self, changes: Value) {
        assert!(
            self.send("PUT", "/api/preferences", Some(changes.clone()))
                .is_some(),
            "{changes}"
        );
    }
}
