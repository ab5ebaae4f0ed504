//! The yardstick: an echo in as few lines of quinn as it takes, with quinn's own defaults.

#[path = "../../tests/overlay/gullible.rs"]
mod gullible;

use gullible::{new_key, public_half};
use quinn::{
    ClientConfig, Connection, Endpoint, ServerConfig,
    crypto::rustls::{QuicClientConfig, QuicServerConfig},
};
use rustls::{
    crypto::ring::default_provider, pki_types::CertificateDer,
    server::AlwaysResolvesServerRawPublicKeys, sign::CertifiedKey, version::TLS13,
};
use std::{net::SocketAddr, sync::Arc};

/// Longest body.
const MAX: usize = 64 * 1024;

/// A listening endpoint.
pub fn server() -> Endpoint {
    let key = new_key();
    let shown = vec![CertificateDer::from(public_half(&*key))];
    let key = Arc::new(CertifiedKey::new(shown, key));
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3")
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key)));
    let config = QuicServerConfig::try_from(config).expect("the provider has QUIC's cipher");
    Endpoint::server(
        ServerConfig::with_crypto(Arc::new(config)),
        (std::net::Ipv4Addr::LOCALHOST, 0).into(),
    )
    .expect("loopback can be listened on")
}

/// Answers every stream with what it carried.
pub async fn echo(endpoint: Endpoint) {
    while let Some(incoming) = endpoint.accept().await {
        let Ok(connection) = incoming.await else {
            continue;
        };
        tokio::spawn(async move {
            while let Ok((mut send, mut receive)) = connection.accept_bi().await {
                tokio::spawn(async move {
                    if let Ok(body) = receive.read_to_end(MAX).await {
                        let _ = send.write_all(&body).await;
                        let _ = send.finish();
                    }
                });
            }
        });
    }
}

/// A connection to the server.
pub async fn connect(to: SocketAddr) -> Connection {
    let config = gullible::client().with_no_client_auth();
    let config = QuicClientConfig::try_from(config).expect("the provider has QUIC's cipher");
    let endpoint =
        Endpoint::client((std::net::Ipv4Addr::LOCALHOST, 0).into()).expect("loopback can be bound");
    let connecting = endpoint.connect_with(ClientConfig::new(Arc::new(config)), to, "echo");
    connecting
        .expect("the address can be dialled")
        .await
        .expect("it answers")
}

/// One echo.
pub async fn ask(connection: &Connection, body: &[u8]) -> usize {
    let (mut send, mut receive) = connection.open_bi().await.expect("a stream");
    send.write_all(body).await.expect("it is read");
    send.finish().expect("it is open");
    receive.read_to_end(MAX).await.expect("an answer").len()
}
