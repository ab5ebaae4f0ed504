//! Certificates for hosts over HTTPS, signed when a name is first asked for by an authority made at
//! start.
//!
//! One certificate per host, because clients refuse `*.test`: a wildcard needs two labels behind
//! it.

use crate::site::{Certificate, Site};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::PrivateKeyDer,
    server::{ClientHello, ResolvesServerCert},
    sign::{CertifiedKey, SigningKey},
};
use std::{
    collections::HashMap,
    fmt, io,
    sync::{Arc, Mutex, PoisonError},
};

/// Certificates kept ready; when there are more, all are forgotten and made anew when needed.
const MAX_READY: usize = 4096;

/// A certificate authority that exists for one web only.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    /// The key of every host: nothing here is secret.
    key: KeyPair,
    signing: Arc<dyn SigningKey>,
    sites: Arc<HashMap<String, Site>>,
    ready: Mutex<HashMap<String, Arc<CertifiedKey>>>,
}

impl Authority {
    pub(crate) fn new(sites: Arc<HashMap<String, Site>>) -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        params
            .distinguished_name
            .push(DnType::CommonName, "Toy web authority");
        let ca_key = KeyPair::generate().map_err(io::Error::other)?;
        let pem = params.self_signed(&ca_key).map_err(io::Error::other)?.pem();
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let der = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let signing = ring::sign::any_supported_type(&der).map_err(io::Error::other)?;
        Ok(Authority {
            issuer: Issuer::new(params, ca_key),
            pem,
            key,
            signing,
            sites,
            ready: Mutex::default(),
        })
    }

    /// The authority's own certificate, for clients to trust.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    /// TLS settings of a server that shows this authority's certificates.
    pub(crate) fn server_config(self: Arc<Self>) -> io::Result<ServerConfig> {
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let mut config = builder.with_no_client_auth().with_cert_resolver(self);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(config)
    }

    fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(certificate) = ready.get(name) {
            return Some(certificate.clone());
        }
        let certificate = Arc::new(self.sign(name)?);
        if ready.len() >= MAX_READY {
            ready.clear();
        }
        ready.insert(name.to_owned(), certificate.clone());
        Some(certificate)
    }

    fn sign(&self, name: &str) -> Option<CertifiedKey> {
        let kind = self
            .sites
            .get(name)
            .map_or(Certificate::Good, |site| site.certificate);
        let shown = if kind == Certificate::OtherName {
            "somebody-else.test"
        } else {
            name
        };
        let mut params = CertificateParams::new(vec![shown.to_owned()]).ok()?;
        if kind == Certificate::Expired {
            params.not_after = date_time_ymd(2001, 1, 1);
        }
        let certificate = match kind {
            Certificate::SelfSigned => params.self_signed(&self.key),
            _ => params.signed_by(&self.key, &self.issuer),
        };
        Some(CertifiedKey::new(
            vec![certificate.ok()?.der().clone()],
            self.signing.clone(),
        ))
    }
}

impl ResolvesServerCert for Authority {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.certificate(&hello.server_name()?.to_ascii_lowercase())
    }
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority")
    }
}
