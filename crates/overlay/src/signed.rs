//! Statements that name the peer that made them, and can be shown to others.
//!
//! A connection proves which peer speaks, but only to the peer that listens. A [`Signed`] statement
//! proves it to everybody: it carries the Ed25519 key of its signer, whose hash is the signer's id,
//! and a signature. The signature covers the [`Purpose`] and the network, so that a statement made
//! for one purpose, or in one network, passes for no other.

use crate::{Identity, NetworkId};
use apoidea_model::PeerId;
use bytes::Bytes;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{DeserializeOwned, Error, Visitor},
};
use std::fmt;

/// Everything before the 32 bytes of an Ed25519 key in its SubjectPublicKeyInfo (RFC 8410). There
/// is one encoding, so that there is one id per key.
pub(crate) const SPKI_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];
/// The first bytes under every signature, so that none of them is one of another protocol's.
const HEAD: &[u8] = b"apoidea signed statement\0";

/// The use of a statement, a few letters. Each kind of statement has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Purpose(&'static str);

/// A statement of any content together with its signer's key and signature: 97 bytes more than the
/// content, or a few more.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Signed {
    key: [u8; 32],
    /// Its two halves: serde knows no arrays beyond 32 bytes.
    signature: ([u8; 32], [u8; 32]),
    content: Content,
}

/// Why a statement is not what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Forged {
    /// The signature is not the key's, or was made for another purpose or network.
    #[error("the signature does not fit the statement")]
    Signature,
    /// It is signed, but its content is of another kind.
    #[error("the signed content cannot be read")]
    Content,
}

/// Makes and reads signed statements in one network.
#[derive(Clone)]
pub struct Signer {
    identity: Identity,
    network: NetworkId,
}

impl Purpose {
    /// A purpose by its name.
    pub const fn new(name: &'static str) -> Self {
        assert!(name.len() < 256);
        Purpose(name)
    }
}

impl Signer {
    /// Signs as this peer.
    pub fn new(identity: Identity, network: NetworkId) -> Self {
        Signer { identity, network }
    }

    /// The peer that signs.
    pub fn me(&self) -> PeerId {
        self.identity.id()
    }

    /// Signs a statement.
    pub fn sign(&self, purpose: Purpose, statement: &impl Serialize) -> Signed {
        let content = postcard::to_stdvec(statement);
        let content = content.expect("names, numbers and lists always serialise");
        let message = message(purpose, &self.network, &content);
        let (key, signature) = self.identity.sign(&message);
        let (mut first, mut second) = ([0; 32], [0; 32]);
        first.copy_from_slice(&signature[..32]);
        second.copy_from_slice(&signature[32..]);
        Signed {
            key,
            signature: (first, second),
            content: Content(content.into()),
        }
    }

    /// Reads a statement if it was signed for this purpose in this network; tells by whom.
    pub fn open<T: DeserializeOwned>(
        &self,
        purpose: Purpose,
        signed: &Signed,
    ) -> Result<(PeerId, T), Forged> {
        let message = message(purpose, &self.network, &signed.content.0);
        let (first, second) = signed.signature;
        let signature = [first, second].concat();
        UnparsedPublicKey::new(&ED25519, signed.key)
            .verify(&message, &signature)
            .map_err(|_| Forged::Signature)?;
        let statement = signed.peek().ok_or(Forged::Content)?;
        Ok((signed.signer(), statement))
    }
}

impl Signed {
    /// The peer whose key it carries; it has signed only if [`Signer::open`] says so.
    pub fn signer(&self) -> PeerId {
        PeerId::of_public_key(&[&SPKI_PREFIX[..], &self.key].concat())
    }

    /// Its content, whoever made it: for a peer that knows the signer without the signature.
    pub fn peek<T: DeserializeOwned>(&self) -> Option<T> {
        postcard::from_bytes(&self.content.0).ok()
    }

    /// Bytes of its content.
    pub fn content_bytes(&self) -> usize {
        self.content.0.len()
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network = self.network.as_str();
        f.debug_tuple("Signer")
            .field(&self.me())
            .field(&network)
            .finish()
    }
}

/// The bytes under a signature. Lengths come first, so that no two statements have the same bytes.
fn message(purpose: Purpose, network: &NetworkId, content: &[u8]) -> Vec<u8> {
    let network = network.as_str();
    let mut message = Vec::with_capacity(HEAD.len() + 2 + 128 + content.len());
    message.extend_from_slice(HEAD);
    for text in [purpose.0, network] {
        message.push(text.len() as u8);
        message.extend_from_slice(text.as_bytes());
    }
    message.extend_from_slice(content);
    message
}

/// Bytes that are copied as a whole, and not one by one as serde copies a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Content(Bytes);

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

struct ContentVisitor;

impl Visitor<'_> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Content, E> {
        Ok(Content(Bytes::copy_from_slice(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND: Purpose = Purpose::new("round");
    const FACTS: Purpose = Purpose::new("facts");

    fn signer(network: &str) -> Signer {
        Signer::new(Identity::ephemeral().unwrap(), network.parse().unwrap())
    }

    fn copy(signed: &Signed) -> Signed {
        postcard::from_bytes(&postcard::to_stdvec(signed).unwrap()).unwrap()
    }

    #[test]
    fn a_statement_names_its_signer_to_everybody() {
        let (one, other) = (signer("toy"), signer("toy"));
        let signed = one.sign(ROUND, &("a.test", 7u32));
        let read = other.open::<(String, u32)>(ROUND, &copy(&signed));
        assert_eq!(read, Ok((one.me(), ("a.test".to_owned(), 7))));
        assert_eq!(signed.signer(), one.me());
        assert_ne!(one.me(), other.me());
    }

    #[test]
    fn a_statement_passes_for_no_other_purpose_network_content_or_signer() {
        let (one, other) = (signer("toy"), signer("toy"));
        let signed = one.sign(ROUND, &7u32);
        let elsewhere = Signer::new(one.identity.clone(), "other".parse().unwrap());
        let refused = Err(Forged::Signature);
        assert_eq!(one.open::<u32>(FACTS, &signed), refused);
        assert_eq!(elsewhere.open::<u32>(ROUND, &signed), refused);
        let content = one.sign(ROUND, &8u32).content;
        let changed = Signed {
            content,
            ..signed.clone()
        };
        assert_eq!(one.open::<u32>(ROUND, &changed), refused);
        let key = other.sign(ROUND, &7u32).key;
        let claimed = Signed {
            key,
            ..signed.clone()
        };
        assert_eq!(one.open::<u32>(ROUND, &claimed), refused);
        assert_eq!(one.open::<(u32, u32)>(ROUND, &signed), Err(Forged::Content));
    }

    #[test]
    fn purpose_and_network_cannot_run_into_each_other() {
        let identity = Identity::ephemeral().unwrap();
        let one = Signer::new(identity.clone(), "bc".parse().unwrap());
        let other = Signer::new(identity, "c".parse().unwrap());
        let signed = one.sign(Purpose::new("a"), &1u8);
        let read = other.open::<u8>(Purpose::new("ab"), &signed);
        assert_eq!(read, Err(Forged::Signature));
    }

    #[test]
    fn a_statement_takes_few_bytes_and_a_broken_one_is_refused() {
        let signed = signer("toy").sign(ROUND, &[7u8; 32]);
        let bytes = postcard::to_stdvec(&signed).unwrap();
        assert_eq!(bytes.len(), 32 + 32 + 64 + 1);
        for length in 0..bytes.len() {
            assert!(postcard::from_bytes::<Signed>(&bytes[..length]).is_err());
        }
    }
}
