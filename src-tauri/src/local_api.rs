//! Asks the peer as every other face does: through its local API, so that a field has one meaning
//! everywhere.

use anyhow::{Context, bail};
use apoidea_peer::{API_ADDRESS_FILE, API_TOKEN_FILE};
use reqwest::{Method, header::CONTENT_TYPE};
use serde_json::{Map, Value, json};
use std::{fs, path::Path, time::Duration};

/// Nothing on this machine takes longer, unless it is in trouble.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The API of the peer inside the app.
pub struct LocalApi {
    http: reqwest::Client,
    address: String,
    token: String,
}

impl LocalApi {
    /// That of the peer that uses this data folder.
    pub fn of(folder: &Path) -> anyhow::Result<Self> {
        let read = |name: &str| -> anyhow::Result<String> {
            let text = fs::read_to_string(folder.join(name))
                .with_context(|| format!("cannot read {name}"))?;
            Ok(text.trim().to_owned())
        };
        // No TLS on loopback, but the client is built with it and asks for a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(TIMEOUT)
            .build()?;
        Ok(LocalApi {
            http,
            address: read(API_ADDRESS_FILE)?,
            token: read(API_TOKEN_FILE)?,
        })
    }

    /// Changes some preferences.
    pub async fn prefer(&self, changes: Map<String, Value>) -> anyhow::Result<()> {
        self.ask(
            Method::PUT,
            "/api/preferences",
            Some(Value::Object(changes)),
        )
        .await
        .map(drop)
    }

    /// Starts no more fetches.
    pub async fn pause(&self) -> anyhow::Result<()> {
        self.ask(Method::POST, "/api/pause", None).await.map(drop)
    }

    /// Goes on.
    pub async fn resume(&self) -> anyhow::Result<()> {
        self.ask(Method::POST, "/api/resume", None).await.map(drop)
    }

    /// Pauses for a while, said as people do: "1h", "until tomorrow".
    pub async fn snooze(&self, length: String) -> anyhow::Result<()> {
        self.ask(Method::POST, "/api/snooze", Some(json!({ "for": length })))
            .await
            .map(drop)
    }

    /// A link that opens a page of the dashboard, once.
    pub async fn link(&self, page: &str) -> anyhow::Result<String> {
        let answer = self.ask(Method::POST, "/api/link", None).await?;
        let path = answer["path"].as_str().context("the peer gave no link")?;
        Ok(format!("{}{path}&page={page}", self.address))
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.address))
            .bearer_auth(&self.token);
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let answer = request.send().await.context("the peer does not answer")?;
        let is_fine = answer.status().is_success();
        let value: Value = serde_json::from_slice(&answer.bytes().await?).unwrap_or_default();
        if !is_fine {
            bail!(
                "{}",
                value["error"].as_str().unwrap_or("the peer gave no reason")
            );
        }
        Ok(value)
    }
}
