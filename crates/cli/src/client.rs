//! Talks to the running peer through its local API.

use crate::arguments::Place;
use anyhow::{Context, bail};
use apoidea_peer::{API_ADDRESS_FILE, API_TOKEN_FILE};
use reqwest::Method;
use serde::{Serialize, de::DeserializeOwned};
use std::{fs, io, path::Path, time::Duration};

const TIMEOUT: Duration = Duration::from_secs(60);

/// The API of one running peer.
pub struct Client {
    address: String,
    token: String,
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// Finds the peer that uses this data folder.
    pub fn connect(place: &Place) -> anyhow::Result<Self> {
        let folder = place.data()?;
        let address = read(&folder, API_ADDRESS_FILE)?;
        let token = read(&folder, API_TOKEN_FILE)?;
        // No TLS on loopback, but the client is built with it and asks for a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .no_proxy()
            .timeout(TIMEOUT)
            .build()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Client {
            address,
            token,
            http,
            runtime,
        })
    }

    /// The address of the API, such as `http://127.0.0.1:7717`.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.send(Method::GET, path, None::<&()>)
    }

    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        self.send(Method::POST, path, body)
    }

    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> anyhow::Result<T> {
        self.send(Method::PUT, path, Some(body))
    }

    fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.address))
            .bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(body);
        }
        self.runtime.block_on(async {
            let answer = request.send().await;
            let answer = answer.with_context(|| {
                format!(
                    "the peer at {} does not answer; is it running?",
                    self.address
                )
            })?;
            if !answer.status().is_success() {
                let status = answer.status();
                let problem: serde_json::Value = answer.json().await.unwrap_or_default();
                match problem["error"].as_str() {
                    Some(why) => bail!("{why}"),
                    None => bail!("the peer answered {status} and gave no reason"),
                }
            }
            answer
                .json()
                .await
                .context("the peer's answer is not what this version understands")
        })
    }
}

fn read(folder: &Path, name: &str) -> anyhow::Result<String> {
    let path = folder.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!(
                "no peer is running with the data folder {} (start one with `apoidea run`)",
                folder.display()
            )
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}
