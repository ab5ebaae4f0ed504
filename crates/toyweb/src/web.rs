//! A running toy web: its sockets, its tasks, and what one may ask of it.

use crate::{
    access_log::AccessLog,
    atlas::{Atlas, Ports, Scheme},
    builder::Builder,
    connection::Server,
    dns::NameServer,
    honeypot::Honeypot,
    listen,
    log::Log,
    pages::Pages,
    quirk::Ground,
    site::Site,
    truth::Truth,
    world::World,
};
use apoidea_model::PageUrl;
use std::{
    collections::HashMap,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Home pages given as seeds, at most.
const SEEDS: u32 = 5;
/// How long to wait when the system refuses another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A web that is being served. Dropping it closes its sockets; [`ToyWeb::stop`] also waits until that is done.
pub struct ToyWeb {
    atlas: Arc<Atlas>,
    truth: Truth,
    log: Arc<Log>,
    addresses: Vec<IpAddr>,
    honeypot: Honeypot,
    names: Option<NameServer>,
    dns_address: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ToyWeb {
    /// A web to be described further and then started. The same seed and shape give the same web.
    pub fn builder(seed: u64) -> Builder {
        Builder::new(seed)
    }

    pub(crate) async fn start(plan: Builder) -> io::Result<Self> {
        let log = Arc::new(Log::new(plan.log_file.as_deref())?);
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let addresses = listen::addresses(plan.addresses).await;
        let traps = listen::honeypots(&addresses).await;
        let (http, mut traps_http) = listen::split(&addresses, &traps, plan.http_port).await?;
        let (_https, traps_https) = listen::split(&addresses, &traps, plan.https_port).await?;
        traps_http.extend(traps_https);
        traps_http.extend(listen::everywhere(&addresses[..1], 0).await?);
        let honeypot = Honeypot::start(traps_http, &tasks, &stop)?;

        let ports = Ports { http: port(&http)?, https: port(&_https)? };
        let ground = Ground { ports, here: addresses[0], honeypots: honeypot.addresses().to_vec() };
        let sites: Vec<Site> = plan.quirks.iter().flat_map(|quirk| quirk.sites(&ground)).collect();
        let origins = sites.iter().map(|site| site.origin().to_owned()).collect();
        let sites =
            Arc::new(sites.into_iter().map(|site| (site.name().to_owned(), site)).collect::<HashMap<_, _>>());
        let atlas = Arc::new(Atlas::new(plan.seed, plan.shape, ports));
        let world = Arc::new(World {
            pages: Pages::new(atlas.clone(), origins),
            sites: sites.clone(),
            addresses: addresses.clone(),
        });
        let names = NameServer::start(plan.dns_port, world.clone(), log.clone()).await?;
        for listener in http {
            let server = Arc::new(Server { answer: world.clone(), log: log.clone(), scheme: Scheme::Http });
            tasks.spawn(stop.clone().run_until_cancelled_owned(accept(
                listener,
                server,
                tasks.clone(),
                stop.clone(),
            )));
        }
        let dns_address = names.address;
        let truth = Truth::new(atlas.clone(), sites);
        Ok(ToyWeb { atlas, truth, log, addresses, honeypot, names: Some(names), dns_address, tasks, stop })
    }

    /// Where the name server listens, UDP and TCP.
    pub fn dns_address(&self) -> SocketAddr {
        self.dns_address
    }

    /// The port of every `http` URL.
    pub fn http_port(&self) -> u16 {
        self.atlas.ports.http
    }

    /// The port of every `https` URL.
    pub fn https_port(&self) -> u16 {
        self.atlas.ports.https
    }

    /// The addresses that hosts live at; a crawler that refuses private networks must be allowed to visit these, and
    /// only these.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Home pages from which everything can be reached.
    pub fn seeds(&self) -> Vec<PageUrl> {
        (0..SEEDS.min(self.atlas.hosts())).map(|host| self.atlas.url(host, 0)).collect()
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
    pub async fn stop(mut self) -> io::Result<()> {
        self.stop.cancel();
        self.tasks.close();
        if let Some(names) = self.names.take() {
            names.stop().await;
        }
        self.tasks.wait().await;
        self.log.flush()
    }
}

impl Drop for ToyWeb {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn port(listeners: &[TcpListener]) -> io::Result<u16> {
    listeners.first().map_or(Ok(0), |listener| Ok(listener.local_addr()?.port()))
}

async fn accept(listener: TcpListener, server: Arc<Server>, tasks: TaskTracker, stop: CancellationToken) {
    loop {
        match listener.accept().await {
            Ok((socket, client)) => {
                let serve = serve(server.clone(), socket, client);
                tasks.spawn(stop.clone().run_until_cancelled_owned(serve));
            }
            Err(error) => {
                tracing::debug!(%error, "a connection was not accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(server: Arc<Server>, socket: TcpStream, client: SocketAddr) {
    let Ok(local) = socket.local_addr() else { return };
    let _ = socket.set_nodelay(true);
    let connection = server.log.connected(local, client);
    if let Err(error) = server.serve(socket, connection).await {
        tracing::debug!(%error, %client, "a connection ended early");
    }
    server.log.disconnected(connection);
}
