//! How a program knows the peer before it says anything that another must not hear.
//!
//! After a crash the note of the API's address stays, and anybody on this computer may listen there.
//! So a program asks first, with a number that was never used before, and the answer shows that
//! the other side knows the token: HMAC-SHA256 with the token as the key, over the number and the
//! port. The port is in it so that an impostor gains nothing by asking the real peer at another
//! port.

use super::Api;
use apoidea_model::Key;
use axum::{
    Json,
    extract::{Query, State},
};
use ring::hmac;
use serde::{Deserialize, Serialize};

/// Said first, so that no answer can be taken for one to another question.
const PURPOSE: &[u8] = b"apoidea hello";

/// 256 bits that are used once.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Nonce(Key);

impl Nonce {
    pub(super) fn random() -> Self {
        Nonce(Key::from_bytes(rand::random()))
    }

    /// The question about it.
    pub(super) fn path(self) -> String {
        format!("/api/hello?nonce={}", self.0)
    }
}

/// Shows that its maker knows the token.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Proof(Key);

impl Proof {
    pub(super) fn new(token: &str, port: u16, nonce: Nonce) -> Self {
        let tag = hmac::sign(&key(token), &message(port, nonce));
        let bytes = <[u8; 32]>::try_from(tag.as_ref()).unwrap_or_default();
        Proof(Key::from_bytes(bytes))
    }

    /// Whether it was made for this port and number by somebody who knows the token. It takes the
    /// same time for every wrong answer.
    pub(super) fn holds(self, token: &str, port: u16, nonce: Nonce) -> bool {
        hmac::verify(&key(token), &message(port, nonce), self.0.as_bytes()).is_ok()
    }
}

fn key(token: &str) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, token.as_bytes())
}

fn message(port: u16, Nonce(nonce): Nonce) -> Vec<u8> {
    [PURPOSE, &port.to_be_bytes(), nonce.as_bytes()].concat()
}

/// The answer to a program that wants to know.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    pub proof: Proof,
}

#[derive(Debug, Deserialize)]
pub(super) struct HelloQuery {
    nonce: Nonce,
}

pub(super) async fn hello(State(api): State<Api>, Query(query): Query<HelloQuery>) -> Json<Hello> {
    Json(Hello {
        proof: api.access.proof(query.nonce),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::access::random_text;

    #[test]
    fn only_the_token_the_port_and_the_number_that_were_asked_for_prove_anything() {
        let (token, nonce) = (random_text(), Nonce::random());
        let proof = Proof::new(&token, 7717, nonce);
        assert!(proof.holds(&token, 7717, nonce));
        assert!(!proof.holds(&token, 7718, nonce));
        assert!(!proof.holds(&token, 7717, Nonce::random()));
        assert!(!proof.holds(&random_text(), 7717, nonce));
        assert!(!Proof(Key::from_bytes([0; 32])).holds(&token, 7717, nonce));
    }
}
