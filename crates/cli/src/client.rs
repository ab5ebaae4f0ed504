//! Talks to the running peer through its local API, and waits for the answers.

use crate::arguments::Place;
use apoidea_peer::{ApiClient, FindError};
use reqwest::Method;
use serde::{Serialize, de::DeserializeOwned};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

/// The API of one running peer.
pub struct Client {
    api: ApiClient,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// Finds the peer that uses this data folder.
    pub fn connect(place: &Place) -> anyhow::Result<Self> {
        // No TLS on loopback, but the client is built with it and asks for a provider.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .pool_idle_timeout(apoidea_peer::API_IDLE)
            .no_proxy()
            .timeout(TIMEOUT)
            .build()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let api = ApiClient::of(&place.data()?, http);
        let api = api.map_err(|error| match error {
            FindError::NotRunning(_) => {
                anyhow::anyhow!("{error} (start one with `apoidea run`)")
            }
            FindError::Unreadable { .. } => error.into(),
        })?;
        Ok(Client { api, runtime })
    }

    /// The address of the API, such as `http://127.0.0.1:7717`.
    pub fn address(&self) -> &str {
        self.api.address()
    }

    pub fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.ask(Method::GET, path, None::<&()>)
    }

    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        self.ask(Method::POST, path, body)
    }

    pub fn put<T: DeserializeOwned>(&self, path: &str, body: &impl Serialize) -> anyhow::Result<T> {
        self.ask(Method::PUT, path, Some(body))
    }

    pub fn delete<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        self.ask(Method::DELETE, path, body)
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> anyhow::Result<T> {
        Ok(self.runtime.block_on(self.api.ask(method, path, body))?)
    }
}
