//! Asks the peer as every other face does: through its local API, so that a field has one meaning
//! everywhere.

use anyhow::Context;
use apoidea_peer::ApiClient;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::{path::Path, time::Duration};

/// Nothing on this machine takes longer, unless it is in trouble.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The API of the peer inside the app.
pub struct LocalApi(ApiClient);

impl LocalApi {
    /// That of the peer that uses this data folder.
    pub fn of(folder: &Path) -> anyhow::Result<Self> {
        // No TLS on loopback, but the client is built with it and asks for a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .pool_idle_timeout(apoidea_peer::API_IDLE)
            .no_proxy()
            .timeout(TIMEOUT)
            .build()?;
        Ok(LocalApi(ApiClient::of(folder, http)?))
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

    /// Hands an invite to the dashboard, which asks the volunteer about it.
    pub async fn open_invite(&self, link: String) -> anyhow::Result<()> {
        self.ask(Method::PUT, "/api/invite", Some(json!({ "link": link })))
            .await
            .map(drop)
    }

    /// A link that opens a page of the dashboard, once.
    pub async fn link(&self, page: &str) -> anyhow::Result<String> {
        let answer = self.ask(Method::POST, "/api/link", None).await?;
        let path = answer["path"].as_str().context("the peer gave no link")?;
        Ok(format!("{}{path}&page={page}", self.0.address()))
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<Value> {
        Ok(self.0.ask(method, path, body.as_ref()).await?)
    }
}
