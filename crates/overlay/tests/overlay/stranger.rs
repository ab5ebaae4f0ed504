//! A stranger: a bare QUIC client that can do everything that a well-behaved peer never does.

use crate::gullible::{self, new_key, public_half};
use apoidea_model::Route;
use quinn::{ClientConfig, Connection, Endpoint, VarInt, crypto::rustls::QuicClientConfig};
use rustls::{
    client::AlwaysResolvesClientRawPublicKeys, pki_types::CertificateDer, sign::CertifiedKey,
};
use std::{net::SocketAddr, sync::Arc};

/// The key that the stranger shows.
pub enum Papers {
    /// A key of its own.
    Own,
    /// A public key whose private half it does not have.
    Stolen(Vec<u8>),
    /// None at all.
    None,
}

/// A fresh Ed25519 public key in its SubjectPublicKeyInfo.
pub fn public_key() -> Vec<u8> {
    public_half(&*new_key())
}

/// A client's configuration with these papers and this protocol.
pub fn config(papers: Papers, alpn: &[u8]) -> ClientConfig {
    let (builder, key) = (gullible::client(), new_key());
    let shown = match papers {
        Papers::Own => Some(public_half(&*key)),
        Papers::Stolen(key) => Some(key),
        Papers::None => None,
    };
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(shown) => {
            let key = CertifiedKey::new(vec![CertificateDer::from(shown)], key);
            builder.with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                Arc::new(key),
            )))
        }
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    ClientConfig::new(Arc::new(QuicClientConfig::try_from(config).unwrap()))
}

/// The same with hardly any room for answers.
pub fn narrow(mut config: ClientConfig) -> ClientConfig {
    let mut transport = quinn::TransportConfig::default();
    transport
        .stream_receive_window(VarInt::from_u32(1000))
        .receive_window(VarInt::from_u32(2000));
    config.transport_config(Arc::new(transport));
    config
}

/// An endpoint of the stranger's own.
pub fn endpoint() -> Endpoint {
    Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap()
}

/// A connection that has not said hello.
pub async fn connect(endpoint: &Endpoint, to: SocketAddr) -> Connection {
    endpoint
        .connect_with(config(Papers::Own, b"apoidea/1"), to, "x")
        .unwrap()
        .await
        .unwrap()
}

/// A frame's bytes.
pub fn frame(tag: u8, body: &[u8]) -> Vec<u8> {
    [
        &[tag],
        &u32::try_from(body.len()).unwrap().to_be_bytes()[..],
        body,
    ]
    .concat()
}

/// A hello for this network, as a well-behaved peer would say it.
pub fn hello(network: &str) -> Vec<u8> {
    let observed: Route = "127.0.0.1:1".parse().unwrap();
    frame(
        0,
        &postcard::to_stdvec(&(network, 1u64, observed, 0u32, 0u64, "stranger/1")).unwrap(),
    )
}

/// Writes these bytes on a stream of their own and returns what comes back until its end.
pub async fn say(connection: &Connection, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let (mut send, mut receive) = connection.open_bi().await.map_err(|e| e.to_string())?;
    let _ = send.write_all(bytes).await;
    let _ = send.finish();
    receive
        .read_to_end(1 << 20)
        .await
        .map_err(|e| e.to_string())
}

/// A connection that has been let in.
pub async fn enter(endpoint: &Endpoint, to: SocketAddr) -> Connection {
    let connection = connect(endpoint, to).await;
    say(&connection, &hello("test")).await.unwrap();
    connection
}
