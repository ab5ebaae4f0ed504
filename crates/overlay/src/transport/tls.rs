//! TLS as peers use it: version 1.3 only, and both sides show a bare Ed25519 key (RFC 7250). The
//! hash of that key is the peer's id. There are no certificates, no names and no authorities.
//!
//! The id that the dialler expects travels in the place of the server's name, inside this process
//! only: it is never sent. Sessions are not resumed and there is no early data, so nothing can be
//! replayed. The cryptography is named explicitly and never taken from a process-wide default.

use crate::{Identity, signed::SPKI_PREFIX};
use apoidea_model::{Key, PeerId};
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
    client::{
        AlwaysResolvesClientRawPublicKeys, Resumption,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key},
    pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime},
    server::{
        AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    version::TLS13,
};
use std::sync::Arc;

/// The protocol and its version, agreed on during the handshake.
pub(crate) const ALPN: &[u8] = b"apoidea/1";

/// The peer that the dialler expects to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// This peer and no other.
    Peer(PeerId),
    /// Any peer; only for the first contact with a bootstrap address.
    Anyone,
}

impl Expected {
    /// The name that carries the id to the verifier: its digits in two labels, since one may have
    /// 63 at most.
    pub fn server_name(self) -> String {
        match self {
            Expected::Peer(id) => {
                let digits = id.to_string();
                format!("{}.{}", &digits[..32], &digits[32..])
            }
            Expected::Anyone => "anyone".into(),
        }
    }

    fn from_server_name(name: &ServerName<'_>) -> Option<Self> {
        let ServerName::DnsName(name) = name else {
            return None;
        };
        if name.as_ref() == "anyone" {
            return Some(Expected::Anyone);
        }
        let key: Key = name.as_ref().replace('.', "").parse().ok()?;
        Some(Expected::Peer(PeerId::at(key)))
    }
}

/// The dialling side's configuration.
pub(crate) fn client(identity: &Identity) -> Result<QuicClientConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ByKey::new(&provider)))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
            identity.certified_key(),
        )));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = false;
    config.enable_early_data = false;
    config.resumption = Resumption::disabled();
    Ok(QuicClientConfig::try_from(config)?)
}

/// The accepting side's configuration.
pub(crate) fn server(identity: &Identity) -> Result<QuicServerConfig, TlsError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(ByKey::new(&provider)))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
            identity.certified_key(),
        )));
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    Ok(QuicServerConfig::try_from(config)?)
}

/// The cryptography does not offer what QUIC needs.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// TLS refused its configuration.
    #[error(transparent)]
    Config(#[from] Error),
    /// No cipher for a connection's first packets.
    #[error(transparent)]
    Cipher(#[from] NoInitialCipherSuite),
}

/// The peer that a finished handshake has proven.
pub(crate) fn proven_peer(connection: &quinn::Connection) -> Option<PeerId> {
    let keys = connection
        .peer_identity()?
        .downcast::<Vec<CertificateDer<'static>>>()
        .ok()?;
    keys.first().map(|key| PeerId::of_public_key(key))
}

/// Verifies peers by their keys alone.
#[derive(Debug)]
struct ByKey {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ByKey {
    fn new(provider: &CryptoProvider) -> Self {
        ByKey {
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

/// The id of a key, if it is an Ed25519 key in its one encoding.
fn id_of(key: &CertificateDer<'_>) -> Result<PeerId, Error> {
    let is_ed25519 = key.len() == SPKI_PREFIX.len() + 32 && key.starts_with(&SPKI_PREFIX);
    if is_ed25519 {
        Ok(PeerId::of_public_key(key))
    } else {
        Err(CertificateError::BadEncoding.into())
    }
}

/// The check that the dialling and the accepting side share, in two traits of the same shape: a
/// signature by a bare Ed25519 key.
macro_rules! signed_by_a_bare_key {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(PeerIncompatible::Tls13RequiredForQuic.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            let key = SubjectPublicKeyInfoDer::from(key.as_ref());
            verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}

impl ServerCertVerifier for ByKey {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let id = id_of(key)?;
        match Expected::from_server_name(name) {
            Some(Expected::Anyone) => Ok(ServerCertVerified::assertion()),
            Some(Expected::Peer(expected)) if expected == id => Ok(ServerCertVerified::assertion()),
            _ => Err(CertificateError::ApplicationVerificationFailure.into()),
        }
    }

    signed_by_a_bare_key!();
}

impl ClientCertVerifier for ByKey {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        id_of(key).map(|_| ClientCertVerified::assertion())
    }

    signed_by_a_bare_key!();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_id_survives_its_way_through_the_server_name() {
        let id = PeerId::at(Key::hash("a"));
        for expected in [Expected::Peer(id), Expected::Anyone] {
            let name = ServerName::try_from(expected.server_name()).unwrap();
            assert_eq!(Expected::from_server_name(&name), Some(expected));
        }
        let other = ServerName::try_from("example.com").unwrap();
        assert_eq!(Expected::from_server_name(&other), None);
    }

    #[test]
    fn a_key_has_one_encoding() {
        let identity = Identity::ephemeral().unwrap();
        let key = identity.certified_key().cert[0].clone();
        assert_eq!(id_of(&key), Ok(identity.id()));
        let longer = CertificateDer::from([key.as_ref(), &[0]].concat());
        assert!(id_of(&longer).is_err());
        assert!(id_of(&CertificateDer::from(vec![0; 44])).is_err());
        assert!(id_of(&CertificateDer::from(vec![])).is_err());
    }
}
