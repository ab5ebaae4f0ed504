//! The local API from outside, as the command line and the tray app use it.
//!
//! The token is sent only to a peer that has shown that it knows the token. That is asked before
//! each request, since a peer may end at any time and its port may go to another program.

use super::{
    Access,
    hello::{Hello, Nonce},
};
use reqwest::{Method, RequestBuilder, Response, StatusCode, header::CONTENT_TYPE};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The API of one running peer.
#[derive(Debug, Clone)]
pub struct ApiClient {
    http: reqwest::Client,
    address: reqwest::Url,
    token: String,
}

/// Why there is no peer to ask.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// None has said where it listens.
    #[error("no peer is running with the data folder {}", .0.display())]
    NotRunning(PathBuf),
    /// A file of the data folder cannot be used.
    #[error("cannot read {}: {why}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nothing listens there, or it says nothing.
    #[error("the peer at {address} does not answer; is it running? ({why})")]
    Silent {
        /// The address of the API.
        address: String,
        /// What the system said.
        why: String,
    },
    /// It does not know the token.
    #[error("another program answers on {0}; the peer is not running")]
    Impostor(String),
    /// The peer said no, with this reason.
    #[error("{0}")]
    Refused(String),
    /// Another version, perhaps.
    #[error("the peer's answer is not what this version understands: {0}")]
    NotUnderstood(String),
}

impl ApiClient {
    /// Name of the file in the data folder that says where the API listens.
    pub const ADDRESS_FILE: &str = "api-address";

    /// Finds the peer that uses this data folder. The HTTP client must use no proxy.
    pub fn of(folder: &Path, http: reqwest::Client) -> Result<Self, FindError> {
        let address = read(folder, Self::ADDRESS_FILE)?;
        let address = address.parse().map_err(|error| FindError::Unreadable {
            path: folder.join(Self::ADDRESS_FILE),
            why: format!("{address:?} is no address: {error}"),
        })?;
        let token = read(folder, Access::TOKEN_FILE)?;
        Ok(ApiClient {
            http,
            address,
            token,
        })
    }

    /// The address of the API, such as `http://127.0.0.1:7717`.
    pub fn address(&self) -> &str {
        self.address.as_str().trim_end_matches('/')
    }

    /// Asks the peer, once it has shown that it is the peer.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T, AskError> {
        self.prove().await?;
        let mut request = self.request(method, path).bearer_auth(&self.token);
        if let Some(body) = body {
            let body = serde_json::to_vec(body).map_err(not_understood)?;
            request = request.header(CONTENT_TYPE, "application/json").body(body);
        }
        let answer = self.send(request).await?;
        let status = answer.status();
        let bytes = answer.bytes().await.map_err(|why| self.silent(&why))?;
        if !status.is_success() {
            return Err(AskError::Refused(reason(status, &bytes)));
        }
        serde_json::from_slice(&bytes).map_err(not_understood)
    }

    /// Everything but the right answer is that of another program, except that the peer may be
    /// asked too often.
    async fn prove(&self) -> Result<(), AskError> {
        let nonce = Nonce::random();
        let answer = self.send(self.request(Method::GET, &nonce.path())).await?;
        let status = answer.status();
        let impostor = || AskError::Impostor(self.address().to_owned());
        let bytes = short_body(answer).await.ok_or_else(impostor)?;
        if status == StatusCode::TOO_MANY_REQUESTS {
            return Err(AskError::Refused(reason(status, &bytes)));
        }
        let hello: Hello = serde_json::from_slice(&bytes).map_err(|_| impostor())?;
        let port = self.address.port_or_known_default().unwrap_or_default();
        if hello.proof.holds(&self.token, port, nonce) {
            Ok(())
        } else {
            Err(impostor())
        }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http
            .request(method, format!("{}{path}", self.address()))
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, AskError> {
        request.send().await.map_err(|why| self.silent(&why))
    }

    fn silent(&self, why: &reqwest::Error) -> AskError {
        AskError::Silent {
            address: self.address().to_owned(),
            why: why.to_string(),
        }
    }
}

/// A stranger's answer, if it is no longer than a proof or a reason is.
async fn short_body(mut answer: Response) -> Option<Vec<u8>> {
    const MAX_BYTES: usize = 4096;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.ok()? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_BYTES {
            return None;
        }
    }
    Some(body)
}

/// The reason in a refusal.
fn reason(status: StatusCode, body: &[u8]) -> String {
    let problem: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    match problem["error"].as_str() {
        Some(why) => why.to_owned(),
        None => format!("the peer answered {status} and gave no reason"),
    }
}

fn not_understood(error: serde_json::Error) -> AskError {
    AskError::NotUnderstood(error.to_string())
}

fn read(folder: &Path, name: &str) -> Result<String, FindError> {
    let path = folder.join(name);
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(FindError::NotRunning(folder.to_owned()))
        }
        Err(error) => Err(FindError::Unreadable {
            path,
            why: error.to_string(),
        }),
    }
}
