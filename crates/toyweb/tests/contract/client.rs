//! A plain client: names through the toy web's name server, no redirects, no retries, all addresses
//! allowed.

use apoidea_toyweb::ToyWeb;
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts},
    net::runtime::TokioRuntimeProvider,
};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::{net::SocketAddr, sync::Arc, time::Duration};

/// Looks names up at one server only.
#[derive(Clone)]
pub struct Names(Arc<TokioResolver>);

impl Names {
    pub fn of(web: &ToyWeb) -> Self {
        let address = web.dns_address();
        let (mut udp, mut tcp) = (ConnectionConfig::udp(), ConnectionConfig::tcp());
        (udp.port, tcp.port) = (address.port(), address.port());
        let server = NameServerConfig::new(address.ip(), true, vec![udp, tcp]);
        let config = ResolverConfig::from_parts(None, vec![], vec![server]);
        let mut options = ResolverOpts::default();
        (options.timeout, options.attempts) = (Duration::from_millis(1500), 1);
        let resolver = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .with_options(options)
            .build()
            .expect("the configuration names one server");
        Names(Arc::new(resolver))
    }

    pub async fn look_up(&self, name: &str) -> Result<Vec<std::net::IpAddr>, String> {
        let found = self
            .0
            .lookup_ip(format!("{name}."))
            .await
            .map_err(|error| error.to_string())?;
        Ok(found.iter().collect())
    }
}

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        Box::pin(async move {
            let found = names.look_up(name.as_str()).await?;
            let addresses: Vec<_> = found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

/// A client for one web, which trusts its certificate authority and no other.
pub fn client(web: &ToyWeb) -> reqwest::Client {
    // Another test may have been first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let authority = reqwest::Certificate::from_pem(web.ca_pem().as_bytes())
        .expect("the web exports a certificate");
    reqwest::Client::builder()
        .tls_certs_only([authority])
        .user_agent("naive/1.0")
        .dns_resolver(Arc::new(Names::of(web)))
        .redirect(reqwest::redirect::Policy::none())
        .timeout(Duration::from_secs(20))
        .no_proxy()
        .build()
        .expect("the settings are valid")
}
