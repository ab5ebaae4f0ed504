//! Whose certificates a fetch believes: the system's authorities and those of the settings.
//!
//! Where the system's cannot be asked (a Linux without ca-certificates, a Windows that is not quite
//! one) the authorities that Mozilla trusts stand in: the program carries them, so they are as old
//! as it is, and the log says so.

use rustls::{
    ClientConfig, RootCertStore,
    client::{WebPkiServerVerifier, danger::ServerCertVerifier},
    crypto::CryptoProvider,
    pki_types::{CertificateDer, pem::PemObject},
};
use rustls_platform_verifier::Verifier;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Why there is no secure connection with anybody.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// A file of trusted certificates cannot be used.
    #[error("cannot use the trusted certificates in {path}: {why}", path = .0.display(), why = .1)]
    Certificates(PathBuf, String),
    /// TLS cannot be set up.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// How to connect, also believing the certificates in these files; with the one cryptography
/// provider of the program.
pub fn client_config(trusted: &[PathBuf]) -> Result<ClientConfig, TrustError> {
    let mut extra = Vec::new();
    for path in trusted {
        extra
            .extend(certificates(path).map_err(|why| TrustError::Certificates(path.clone(), why))?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = verifier(extra, provider.clone())?;
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    Ok(builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth())
}

fn verifier(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
    match Verifier::new_with_extra_roots(extra.clone(), provider.clone()) {
        Ok(systems) => Ok(Arc::new(systems)),
        Err(error) => {
            tracing::warn!(%error, "cannot use the system's certificates; believing those that Mozilla trusts");
            bundled(extra, provider)
        }
    }
}

/// Mozilla's authorities and these.
fn bundled(
    extra: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    for certificate in extra {
        roots.add(certificate).map_err(unusable)?;
    }
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    Ok(builder.build().map_err(unusable)?)
}

fn unusable(error: impl ToString) -> TrustError {
    TrustError::Tls(error.to_string())
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(path)
        .map_err(|error| error.to_string())?
        .collect();
    let found = found.map_err(|error| error.to_string())?;
    if found.is_empty() {
        Err("there is no certificate in it".to_owned())
    } else {
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::pki_types::{ServerName, UnixTime};

    type Authority = CertifiedIssuer<'static, KeyPair>;

    fn authority() -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
    }

    fn certificate_by(authority: &Authority) -> CertificateDer<'static> {
        let params = CertificateParams::new(["site.test".to_owned()]).unwrap();
        params
            .signed_by(&KeyPair::generate().unwrap(), authority)
            .unwrap()
            .der()
            .clone()
    }

    fn is_believed(
        verifier: &dyn ServerCertVerifier,
        certificate: &CertificateDer<'_>,
        name: &'static str,
    ) -> bool {
        let name = ServerName::try_from(name).unwrap();
        verifier
            .verify_server_cert(certificate, &[], &name, &[], UnixTime::now())
            .is_ok()
    }

    #[test]
    fn without_the_system_the_authorities_of_the_settings_are_believed_and_no_stranger() {
        let (known, stranger) = (authority(), authority());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = bundled(vec![known.der().clone()], provider).unwrap();
        assert!(is_believed(
            &*verifier,
            &certificate_by(&known),
            "site.test"
        ));
        assert!(!is_believed(
            &*verifier,
            &certificate_by(&known),
            "other.test"
        ));
        assert!(!is_believed(
            &*verifier,
            &certificate_by(&stranger),
            "site.test"
        ));
    }

    #[test]
    fn a_file_without_certificates_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("empty.pem");
        std::fs::write(&path, "nothing").unwrap();
        let refused = client_config(std::slice::from_ref(&path)).unwrap_err();
        assert!(
            matches!(&refused, TrustError::Certificates(named, _) if *named == path),
            "{refused}"
        );
    }
}
