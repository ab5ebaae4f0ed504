//! A running toy web: its sockets, its tasks, and what one may ask of it.

use crate::{
    access_log::AccessLog,
    atlas::{Atlas, Ports, Scheme},
    authority::Authority,
    builder::Builder,
    connection::Server,
    control::Control,
    description::Description,
    dns::NameServer,
    honeypot::Honeypot,
    listen::{self, Sockets},
    log::Log,
    pages::Pages,
    quirk::Ground,
    service::Service,
    site::Site,
    slowness::Slowness,
    truth::Truth,
    world::World,
};
use apoidea_model::PageUrl;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};
use tokio_rustls::TlsAcceptor;

/// Home pages given as seeds, at most.
const SEEDS: u32 = 5;

/// A web that is being served. Dropping it closes its sockets; [`ToyWeb::stop`] also waits until
/// that is done.
pub struct ToyWeb {
    description: Description,
    truth: Arc<Truth>,
    log: Arc<Log>,
    honeypot: Arc<Honeypot>,
    names: NameServer,
    service: Service,
}

impl ToyWeb {
    /// A web to be described further and then started. The same seed and shape give the same web.
    pub fn builder(seed: u64) -> Builder {
        Builder::new(seed)
    }

    pub(crate) async fn start(plan: Builder) -> io::Result<Self> {
        let log = Arc::new(Log::new(plan.log_file.as_deref())?);
        let service = Service::default();
        let sockets = Sockets::open(&plan).await?;
        let ports = sockets.ports()?;
        let honeypot = Arc::new(Honeypot::start(sockets.honeypots, &service)?);
        let ground = Ground {
            ports,
            here: sockets.addresses[0],
            honeypots: honeypot.addresses().to_vec(),
        };
        let names_at = SocketAddr::new(listen::names_at(&plan), plan.dns_port);
        let world = Arc::new(world(&plan, &ground, sockets.addresses));
        let names = NameServer::start(names_at, world.clone(), log.clone()).await?;

        let authority = Arc::new(Authority::new(world.sites.clone())?);
        let ca_pem = authority.pem().to_owned();
        let tls = TlsAcceptor::from(Arc::new(authority.server_config()?));
        let server = |scheme| Server {
            answer: world.clone(),
            log: log.clone(),
            scheme,
            slowness: plan.slowness,
        };
        let (plain, secure) = (server(Scheme::Http), server(Scheme::Https));
        service.serve(sockets.http, plain, None);
        service.serve(sockets.https, secure, Some(tls));

        let atlas = world.pages.atlas.clone();
        let truth = Arc::new(Truth::new(atlas.clone(), world.sites.clone()));
        let mut description = describe(&atlas, &truth, &names, &world.addresses, ca_pem);
        if let Some(port) = plan.control_port {
            let listener = listen::local(port).await?;
            description.control_address = Some(listener.local_addr()?);
            let (truth, log, honeypot) = (truth.clone(), log.clone(), honeypot.clone());
            let control = Control {
                description: description.clone(),
                truth,
                log,
                honeypot,
            };
            // What is asked here is no part of the web's own log.
            let server = Server {
                answer: Arc::new(control),
                log: Arc::new(Log::new(None)?),
                scheme: Scheme::Http,
                slowness: Slowness::default(),
            };
            service.serve(vec![listener], server, None);
        }
        Ok(ToyWeb {
            description,
            truth,
            log,
            honeypot,
            names,
            service,
        })
    }

    /// Where everything is, as one value.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Where the name server listens, UDP and TCP.
    pub fn dns_address(&self) -> SocketAddr {
        self.description.dns_address
    }

    /// The port of every `http` URL.
    pub fn http_port(&self) -> u16 {
        self.description.http_port
    }

    /// The port of every `https` URL.
    pub fn https_port(&self) -> u16 {
        self.description.https_port
    }

    /// The certificate authority that signs for hosts over HTTPS, as PEM.
    pub fn ca_pem(&self) -> &str {
        &self.description.ca_pem
    }

    /// Where questions are answered for other processes, if [`Builder::control`] asked for it.
    pub fn control_address(&self) -> Option<SocketAddr> {
        self.description.control_address
    }

    /// The addresses that hosts live at; a crawler that refuses private networks must be allowed to
    /// visit these, and only these.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.description.addresses
    }

    /// Home pages from which everything can be reached.
    pub fn seeds(&self) -> Vec<PageUrl> {
        self.description.seeds.clone()
    }

    /// What a perfect crawler does.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// What happened so far.
    pub fn log(&self) -> AccessLog {
        self.log.snapshot()
    }

    /// The sockets that nobody may connect to.
    pub fn honeypot(&self) -> &Honeypot {
        &self.honeypot
    }

    /// Closes everything and waits until it is closed.
    pub async fn stop(self) -> io::Result<()> {
        self.names.stop().await;
        self.service.stop().await;
        self.log.flush()
    }
}

fn world(plan: &Builder, ground: &Ground, addresses: Vec<IpAddr>) -> World {
    let sites: Vec<Site> = plan
        .quirks
        .iter()
        .flat_map(|quirk| quirk.sites(ground))
        .collect();
    let origins = sites.iter().map(|site| site.origin().to_owned()).collect();
    let sites: HashMap<String, Site> = sites
        .into_iter()
        .map(|site| (site.name().to_owned(), site))
        .collect();
    let atlas = Arc::new(Atlas::new(plan.seed, plan.shape.clone(), ground.ports));
    World {
        pages: Pages::new(atlas, origins),
        sites: Arc::new(sites),
        addresses,
    }
}

fn describe(
    atlas: &Atlas,
    truth: &Truth,
    names: &NameServer,
    addresses: &[IpAddr],
    ca_pem: String,
) -> Description {
    let Ports { http, https } = atlas.ports;
    Description {
        dns_address: names.address,
        http_port: http,
        https_port: https,
        control_address: None,
        addresses: addresses.to_vec(),
        seeds: (0..SEEDS.min(atlas.hosts()))
            .map(|host| atlas.url(host, 0))
            .collect(),
        expected_total: truth.expected_total(),
        ca_pem,
    }
}
