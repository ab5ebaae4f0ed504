//! Starting and stopping a peer.

use crate::{
    api::{self, Access, ApiClient},
    clock::now,
    config::{Config, Consent, FreshnessConfig, SeedListError},
    crawler::{
        Crawler, Inbox, Limits, Parts, RevisitSettings, SwarmParts, UsualSizes,
        admitter::{AdmitError, Admitter},
        finding::Finding,
        writer::Writer,
    },
    handle::Handle,
    network::{Network, NetworkError, REMEMBER_EVERY},
    page::{
        PageWork,
        aside::Aside,
        content::{ContentIndex, ContentQueue, LocalIndex},
        news::PageNews,
        process::Processor,
        proof::Prover,
    },
    report::{
        page_feed::PageFeed,
        reporter::Reporter,
        status::{State, Status},
    },
    sink::Sink,
    sowing::sow_when_empty,
    swarm::{
        addresses::clocks::AddressClocks,
        content::ring_index::{self, RingIndex},
        lending::borrowed::BorrowedDomains,
        links::{courier::Courier, sent_log::SentLog, takers::Takers},
        orders::Orders,
        replicas::{provenance::Provenance, puller::Puller, sweep::Sweeper, takeover::Takeover},
        rights::Rights,
        service::{Answering, PeerService},
        tenancy::Tenancy,
        trust::{
            book::{Openness, TrustBook},
            checker::{Checker, Checks, MAX_WISHES, Wish},
            held_links::HeldLinks,
            keepers::Keepers,
            trusted_ring::TrustedRing,
        },
        watching::{asking::WatchAsker, watchlist::Watchlist},
    },
    volunteer::{
        absence::Absence,
        home_watch::HomeWatch,
        line::Line,
        measure,
        membership::{Membership, MembershipError},
        preferences_file::{PreferencesError, PreferencesFile},
        start_list::{SeedOrigin, StartList},
        steward::Steward,
    },
};
use apoidea_crawl::{
    Bounds, Clock, Frontier, FrontierConfig, Home, PrivatePace, Refusals, politeness,
};
use apoidea_fetch::{Fetcher, Gaps, ResolveError, Resolver, SetupError, Throttle};
use apoidea_governor::{
    Preferences,
    sensors::{self, Senses},
};
use apoidea_model::{PageUrl, PeerId};
use apoidea_overlay::{ArcChange, Overlay, SettingOut, Signer};
use apoidea_store::{
    OpenError, Store,
    archive::{self, Archive, ArchiveError, Reader},
};
use futures::future::OptionFuture;
use std::{
    fs, io,
    net::{Ipv4Addr, SocketAddr},
    num::NonZero,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering::Relaxed},
    thread,
    time::Duration,
};
use tokio::{
    net::TcpListener,
    sync::{Notify, Semaphore, broadcast::Receiver, mpsc, watch},
    task::JoinHandle,
    time,
};
use tokio_util::sync::CancellationToken;

/// The file in the data folder that says where the API listens.
pub const API_ADDRESS_FILE: &str = ApiClient::ADDRESS_FILE;
/// The file in the data folder with the API's token.
pub const API_TOKEN_FILE: &str = Access::TOKEN_FILE;
/// The folder of the archive in the data folder.
pub const ARCHIVE_FOLDER: &str = "archive";
/// Orders to the crawler that may wait.
const MAX_COMMANDS: usize = 64;
/// A peer that stops finishes what is under way within this; what is not finished stays in its
/// queue.
const REST_WITHIN: Duration = Duration::from_millis(2000);
/// It answers others for so long at most, until they have taken over.
const TAKEN_OVER_WITHIN: Duration = Duration::from_millis(1500);

/// A running peer.
pub struct Peer {
    handle: Handle,
    address: SocketAddr,
    access: Arc<Access>,
    exit_when_done: bool,
    stop: CancellationToken,
    crawler: JoinHandle<Status>,
    api: JoinHandle<()>,
    memory: JoinHandle<()>,
    service: Arc<PeerService>,
    swarm: Vec<AbortOnDrop>,
    sowing: Option<JoinHandle<()>>,
    governing: [JoinHandle<()>; 4],
    writer: thread::JoinHandle<()>,
    announcement: Announcement,
}

/// Why a peer does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The archive cannot be used.
    #[error("the archive cannot be used: {0}")]
    Archive(#[from] ArchiveError),
    /// What is remembered cannot be read or written.
    #[error("cannot take up the crawl: {0}")]
    Recover(String),
    /// A list of refused domains cannot be used.
    #[error("{0}")]
    Refusals(String),
    /// The fetcher cannot be set up.
    #[error(transparent)]
    Fetch(#[from] SetupError),
    /// There is no way to resolve names.
    #[error("cannot resolve names: {0}; name a server with crawl.dns=[\"9.9.9.9:53\"]")]
    Dns(#[from] ResolveError),
    /// The API cannot listen.
    #[error(
        "cannot listen on 127.0.0.1:{port}: {source}; choose another port with api.port, or 0 for any"
    )]
    Listen {
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The peer cannot take its place in the network.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The volunteer's preferences cannot be used.
    #[error(transparent)]
    Preferences(#[from] PreferencesError),
    /// The network that the volunteer chose cannot be used.
    #[error(transparent)]
    Membership(#[from] MembershipError),
    /// The list of seeds cannot be used.
    #[error(transparent)]
    Seeds(#[from] SeedListError),
    /// A file of the data folder cannot be used.
    #[error("{0}")]
    Files(String),
}

impl From<AdmitError> for StartError {
    fn from(error: AdmitError) -> Self {
        StartError::Recover(error.to_string())
    }
}

impl Peer {
    /// Starts a peer with its memory in `folder`, recovering from however the last run ended.
    pub async fn start(mut config: Config, folder: &Path) -> Result<Self, StartError> {
        let store = Store::open(folder, Default::default())?;
        if let Some(membership) = Membership::load(folder)? {
            membership.apply(&mut config.network);
        }
        let start_list = StartList::new(config.crawl.seeds.clone(), folder);
        let seeds = start_list.read()?;
        let archive = open_archive(&config, &store, folder)?;
        let listener = listen(config.api.port).await?;
        let address = listener.local_addr().map_err(|source| StartError::Listen {
            port: config.api.port,
            source,
        })?;
        let access = Access::open(folder, address.port());
        let access = Arc::new(access.map_err(|error| StartError::Files(error.to_string()))?);
        let throttle = Arc::new(Throttle::new());
        let steward = Arc::new(steward(&config, folder, throttle.clone())?);
        if config.consent == Consent::Awaited {
            steward.await_consent().await?;
        }
        let service = Arc::new(PeerService::default());
        let network = Arc::new(Network::start(
            &config.network,
            folder,
            store.clone(),
            service.clone(),
            setting_out(&config),
            steward.preferences().rendezvous,
        )?);
        let openness = match network.is_open() {
            true => Openness::Open,
            false => Openness::Listed,
        };
        let book = TrustBook::open(store.clone(), openness).map_err(AdmitError::from)?;
        let book = Arc::new(book);
        let ring_changes = network.overlay().arc_changes();
        let trusted_ring = Arc::new(TrustedRing::new(network.overlay(), book.clone()));
        let overlay: Arc<dyn Overlay> = trusted_ring.clone();
        let changes = overlay.arc_changes();
        let tenancy = Arc::new(Tenancy::new(overlay.clone()));
        let (news, facts) = mpsc::channel(ring_index::MAX_NEWS);
        let index = Arc::new(LocalIndex::new(store.clone(), news));
        let reader = archive.as_ref().map(|(folder, _)| Reader::new(folder));
        let prover = Arc::new(Prover::new(overlay.me(), reader));
        let ring_index = RingIndex {
            overlay: overlay.clone(),
            tenancy: tenancy.clone(),
            local: index.clone(),
            prover: prover.clone(),
            keepers: Keepers {
                store: store.clone(),
                book: book.clone(),
            },
        };
        let (findings, inbox) = mpsc::unbounded_channel();
        let home = Home::default();
        let work = Arc::new(page_work(
            &config,
            &home,
            folder,
            prover.clone(),
            Arc::new(ring_index),
            throttle.clone(),
            sink(&findings, |news| Finding::Page(Box::new(news))),
        )?);
        let line = Arc::new(Line::new(work.resolver.clone()));
        let watch = HomeWatch {
            home: home.clone(),
            resolver: work.resolver.clone(),
            network: network.clone(),
            line: line.clone(),
        };
        watch.look().await;
        let admitter = admitter(&config, &home, &store, overlay.me())?;
        let span = archive.as_ref().map(|(_, archive)| archive.span());
        let (feed, archive_feed) = watch::channel(span.unwrap_or_default());
        let (writer, writer_thread) = Writer::start(
            store.clone(),
            archive,
            sink(&findings, Finding::Writer),
            steward.watch(),
            feed,
        )
        .map_err(|error| StartError::Files(format!("cannot start a thread: {error}")))?;
        let (reporter, status) = Reporter::new(now(), network.clone(), steward.clone(), line);
        let (commands, command_inbox) = mpsc::channel(MAX_COMMANDS);
        let (orders, order_inbox) = mpsc::channel(MAX_COMMANDS);
        let orders = Orders(orders);
        let pages = PageFeed::new();
        let borrowed = BorrowedDomains::open(&store).map_err(AdmitError::from)?;
        let watchlist = Watchlist::open(store.clone()).map_err(AdmitError::from)?;
        let watchlist = Arc::new(watchlist);
        let swarm = SwarmParts {
            me: overlay.me(),
            overlay: overlay.clone(),
            tenancy: tenancy.clone(),
            puller: Puller::default(),
            provenance: Arc::new(Provenance::new(network.signer().clone())),
            courier: Arc::new(Notify::new()),
            sweep: Arc::new(Notify::new()),
            clocks: Arc::new(AddressClocks::new(private_pace(&config))),
            watchlist: watchlist.clone(),
            findings: findings.clone(),
        };
        let (wishes, checks) = mpsc::channel(MAX_WISHES);
        let checking = Checking {
            checks: Checks(wishes),
            held: Arc::new(HeldLinks::new(
                overlay.clone(),
                store.clone(),
                orders.clone(),
                book.clone(),
            )),
            book: book.clone(),
            signer: network.signer().clone(),
        };
        service.open(Answering {
            overlay: overlay.clone(),
            store: store.clone(),
            orders: orders.clone(),
            rights: Rights::new(overlay.clone()),
            budgets: Default::default(),
            tenancy: tenancy.clone(),
            index,
            puller: swarm.puller.clone(),
            provenance: swarm.provenance.clone(),
            prover,
            large: Default::default(),
            leaving: Default::default(),
            clocks: swarm.clocks.clone(),
            signer: network.signer().clone(),
            held: checking.held.clone(),
            checks: checking.checks.clone(),
            watchlist: watchlist.clone(),
        });
        let asker = Arc::new(WatchAsker {
            overlay: overlay.clone(),
            tenancy: tenancy.clone(),
            orders: orders.clone(),
            watchlist,
        });
        let mut swarm_tasks = start_swarm(&swarm, &store, &orders, &checking, changes)?;
        swarm_tasks.push(tokio::spawn(trusted_ring.run(ring_changes)));
        swarm_tasks.push(tokio::spawn(asker.clone().run()));
        swarm_tasks.push(checking.start(&swarm, &store, &orders, checks));
        swarm_tasks.push(tokio::spawn(ring_index::spread_news(overlay, facts)));
        let crawler = Crawler::recover(Parts {
            frontier: Frontier::new(frontier_config(&config)),
            admitter,
            store: store.clone(),
            writer,
            work,
            feed: pages.clone(),
            inbox: Inbox {
                findings: inbox,
                commands: command_inbox,
                orders: order_inbox,
            },
            reporter,
            limits: Limits {
                fetches: config.crawl.fetches.as_usize(),
                allowance: steward.watch(),
                throttle: throttle.clone(),
                steward: steward.clone(),
                usual: usual_sizes(&config),
            },
            revisits: revisit_settings(&config),
            borrowed: borrowed.clone(),
            swarm,
        })?;
        let stop = CancellationToken::new();
        let handle = Handle {
            commands,
            status,
            pages,
            archive: archive_feed,
            store,
            borrowed,
            tenancy,
            network: network.clone(),
            book,
            steward: steward.clone(),
            start_list,
            asker,
            folder: folder.to_owned(),
            goodbye: CancellationToken::new(),
        };
        let absence = Absence {
            steward: steward.clone(),
            network: network.clone(),
            orders,
            consent: config.consent,
        };
        let governing = [
            tokio::spawn(absence.run(stop.child_token())),
            tokio::spawn(steward.run(stop.child_token())),
            tokio::spawn(measure::measure(
                throttle,
                network.clone(),
                stop.child_token(),
            )),
            tokio::spawn(watch.run(stop.child_token())),
        ];
        let announcement = Announcement::write(folder, address)?;
        // Seeds that somebody named are sown at every start. The others are for the open web only.
        let is_named = seeds.origin == SeedOrigin::Settings;
        let may_sow = !is_named && config.crawl.only.is_empty();
        let sowing =
            may_sow.then(|| tokio::spawn(sow_when_empty(handle.clone(), stop.child_token())));
        let peer = Peer {
            api: tokio::spawn(api::serve(
                listener,
                handle.clone(),
                access.clone(),
                stop.child_token(),
            )),
            crawler: tokio::spawn(crawler.run(stop.child_token())),
            memory: tokio::spawn(remember_peers(network, stop.child_token())),
            service,
            swarm: stop_with(swarm_tasks),
            sowing,
            governing,
            handle,
            address,
            access,
            exit_when_done: config.crawl.exit_when_done,
            stop,
            writer: writer_thread,
            announcement,
        };
        if is_named {
            peer.seed(seeds.urls).await;
        }
        Ok(peer)
    }

    /// Talks to the peer.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Where the API listens.
    pub fn api_address(&self) -> SocketAddr {
        self.address
    }

    /// A link that opens the dashboard in a browser, once.
    pub fn dashboard_link(&self) -> String {
        format!("http://{}{}", self.address, self.access.one_time_path())
    }

    /// Waits until everything is crawled; for ever, unless the settings say that this is an end.
    pub async fn done(&self) {
        let mut status = self.handle.watch_status();
        let is_done = |status: &Status| status.state == State::Idle && status.totals.admitted > 0;
        if !self.exit_when_done || status.wait_for(is_done).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Stops: finishes what is under way, makes everything durable, frees the folder. Gives the
    /// last status.
    ///
    /// In a swarm it leaves gracefully: it sends the links it found to their owners, and answers
    /// until its successors have taken over.
    pub async fn stop(self) -> Status {
        let answering = self.service.answering();
        let is_in_swarm = answering.is_some_and(|answering| !answering.tenancy.is_alone());
        // What is under way cannot be finished on a disk that cannot be written.
        let can_write = self.handle.status().attention.is_none();
        let resting = answering
            .filter(|_| can_write)
            .map(|answering| answering.orders.quiesce());
        let mut stillness = OptionFuture::from(resting).await;
        if let Some(stillness) = &mut stillness {
            let _ = time::timeout(REST_WITHIN, stillness.reached()).await;
        }
        self.stop.cancel();
        let last = self
            .crawler
            .await
            .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        drop(stillness);
        let _ = self.memory.await;
        if let Some(sowing) = self.sowing {
            let _ = sowing.await;
        }
        for task in self.governing {
            let _ = task.await;
        }
        drop(self.swarm);
        if is_in_swarm && let Some(answering) = answering {
            answering.leaving.is_leaving.store(true, Relaxed);
            self.handle.network.leave().await;
            let _ = time::timeout(TAKEN_OVER_WITHIN, answering.taken_over()).await;
        }
        self.handle.network.shut_down().await;
        self.api.abort();
        let writer = self.writer;
        let _ = tokio::task::spawn_blocking(move || writer.join()).await;
        drop(self.announcement);
        last
    }

    async fn seed(&self, urls: Vec<PageUrl>) {
        if urls.is_empty() {
            return;
        }
        match self.handle.seed(urls).await {
            Ok(Ok(seeded)) => {
                for (url, why) in seeded.refused {
                    tracing::warn!(%url, why, "the seed is refused");
                }
            }
            Ok(Err(why)) => tracing::error!(%why, "the seeds could not be written"),
            Err(stopped) => tracing::warn!(%stopped, "the seeds were not taken"),
        }
    }
}

/// The note where the API is, for the command line; gone with the peer, however it ends.
struct Announcement(PathBuf);

impl Announcement {
    fn write(folder: &Path, address: SocketAddr) -> Result<Self, StartError> {
        let path = folder.join(API_ADDRESS_FILE);
        let temporary = path.with_extension("tmp");
        fs::write(&temporary, format!("http://{address}\n"))
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(|error| {
                StartError::Files(format!("cannot write {}: {error}", path.display()))
            })?;
        Ok(Announcement(path))
    }
}

impl Drop for Announcement {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Takes the news of a part into the crawler's inbox.
fn sink<N: 'static>(findings: &mpsc::UnboundedSender<Finding>, wrap: fn(N) -> Finding) -> Sink<N> {
    let findings = findings.clone();
    Sink::new(move |news| {
        // A peer that has stopped takes no more news.
        let _ = findings.send(wrap(news));
    })
}

/// Starts the tasks that cross to other peers. They work on while the peer leaves, and end with it.
fn start_swarm(
    swarm: &SwarmParts,
    store: &Store,
    orders: &Orders,
    checking: &Checking,
    changes: Receiver<ArcChange>,
) -> Result<Vec<JoinHandle<()>>, StartError> {
    let sweeper = Sweeper {
        overlay: swarm.overlay.clone(),
        store: store.clone(),
        tenancy: swarm.tenancy.clone(),
        orders: orders.clone(),
        puller: swarm.puller.clone(),
        bell: swarm.sweep.clone(),
    };
    let takeover = Takeover {
        overlay: swarm.overlay.clone(),
        store: store.clone(),
        tenancy: swarm.tenancy.clone(),
        orders: orders.clone(),
        sweeper: sweeper.clone(),
        provenance: swarm.provenance.clone(),
    };
    let takers: Arc<Takers> = Arc::default();
    let courier = Courier {
        overlay: swarm.overlay.clone(),
        store: store.clone(),
        orders: orders.clone(),
        tenancy: swarm.tenancy.clone(),
        delivered: sink(&swarm.findings, Finding::Delivered),
        bell: swarm.courier.clone(),
        sent: SentLog::open(store).map_err(AdmitError::from)?,
        checks: checking.checks.clone(),
        signer: checking.signer.clone(),
        absences: Default::default(),
        takers: takers.clone(),
    };
    let puller = swarm.puller.clone();
    let (overlay, orders) = (swarm.overlay.clone(), orders.clone());
    Ok(vec![
        tokio::spawn(puller.run(overlay.clone(), orders.clone())),
        tokio::spawn(sweeper.run()),
        tokio::spawn(takeover.run(changes)),
        tokio::spawn(courier.run()),
        tokio::spawn(takers.watch(overlay, store.clone(), orders)),
    ])
}

/// The parts that check the work of others.
struct Checking {
    checks: Checks,
    held: Arc<HeldLinks>,
    book: Arc<TrustBook>,
    signer: Signer,
}

impl Checking {
    fn start(
        self,
        swarm: &SwarmParts,
        store: &Store,
        orders: &Orders,
        wishes: mpsc::Receiver<Wish>,
    ) -> JoinHandle<()> {
        let checker = Checker {
            overlay: swarm.overlay.clone(),
            store: store.clone(),
            orders: orders.clone(),
            book: self.book,
            held: self.held,
        };
        tokio::spawn(checker.run(wishes))
    }
}

/// A task that ends with the peer.
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn stop_with(tasks: Vec<JoinHandle<()>>) -> Vec<AbortOnDrop> {
    tasks.into_iter().map(AbortOnDrop).collect()
}

/// Writes the peers met so far down now and then.
async fn remember_peers(network: Arc<Network>, stop: CancellationToken) {
    while stop
        .run_until_cancelled(tokio::time::sleep(REMEMBER_EVERY))
        .await
        .is_some()
    {
        network.remember();
    }
}

fn setting_out(config: &Config) -> SettingOut {
    match config.consent {
        Consent::Given => SettingOut::AtOnce,
        Consent::Awaited => SettingOut::WhenTold,
    }
}

async fn listen(port: u16) -> Result<TcpListener, StartError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .await
        .map_err(|source| StartError::Listen { port, source })
}

fn open_archive(
    config: &Config,
    store: &Store,
    folder: &Path,
) -> Result<Option<(PathBuf, Archive)>, StartError> {
    if !config.archive.keep {
        return Ok(None);
    }
    let mark = store
        .archive_mark()
        .map_err(|error| StartError::Recover(error.to_string()))?;
    let options = archive::ArchiveOptions {
        software: format!("Apoidea/{}", env!("CARGO_PKG_VERSION")),
        file_bytes: config.archive.file_mib.mib_as_bytes(),
        quota_bytes: config.archive.quota_mib.mib_as_bytes(),
        min_free_bytes: config.archive.keep_free_mib.mib_as_bytes(),
    };
    let folder = folder.join(ARCHIVE_FOLDER);
    let archive = Archive::open(&folder, mark, options, rand::random())?;
    Ok(Some((folder, archive)))
}

pub(crate) fn page_work(
    config: &Config,
    home: &Home,
    folder: &Path,
    prover: Arc<Prover>,
    index: Arc<dyn ContentIndex>,
    throttle: Arc<Throttle>,
    news: Sink<PageNews>,
) -> Result<PageWork, StartError> {
    let fetching = config.crawl.for_fetching(home);
    let contactable = fetching.contactable();
    let aside = Arc::new(Aside::new(folder.to_owned()));
    let floors = Gaps {
        host: politeness::HOST_DELAY,
        address: politeness::ADDRESS_DELAY,
    };
    Ok(PageWork {
        prover,
        fetcher: Fetcher::new(&fetching, contactable.clone(), floors, throttle)?,
        resolver: Resolver::new(&fetching, contactable)?,
        processor: Processor::new(config.archive.keep),
        content: ContentQueue::open(index),
        helper_robots: Default::default(),
        helper_turns: Default::default(),
        aside,
        large: Semaphore::new(thread::available_parallelism().map_or(1, NonZero::get)),
        news,
    })
}

/// Looks after the volunteer's computer, by the preferences that were set last.
fn steward(config: &Config, folder: &Path, throttle: Arc<Throttle>) -> Result<Steward, StartError> {
    let file = PreferencesFile::new(folder);
    let preferences = file.load(Preferences::dedicated(), &config.preferences)?;
    let senses = Senses::start(sensors::of_this_system(), &preferences);
    Ok(Steward::new(
        preferences,
        file,
        senses,
        throttle,
        folder.to_owned(),
    ))
}

pub(crate) fn admitter(
    config: &Config,
    home: &Home,
    store: &Store,
    me: PeerId,
) -> Result<Admitter, StartError> {
    let mut refusals = Refusals::default();
    let own: String = config
        .crawl
        .refuse
        .iter()
        .map(|domain| format!("*.{domain}\n"))
        .collect();
    let wrong = |error: apoidea_crawl::InvalidList| StartError::Refusals(error.to_string());
    refusals.add("the settings", &own).map_err(wrong)?;
    for path in &config.crawl.refuse_lists {
        let text = fs::read_to_string(path).map_err(|error| {
            StartError::Refusals(format!("cannot read {}: {error}", path.display()))
        })?;
        refusals
            .add(&path.display().to_string(), &text)
            .map_err(wrong)?;
    }
    Ok(Admitter::new(
        store.clone(),
        &config.crawl,
        config.crawl.for_fetching(home).contactable(),
        refusals,
        me,
        now(),
    )?)
}

/// Only a peer with private networks may come back sooner, and only there.
pub(crate) fn revisit_settings(config: &Config) -> RevisitSettings {
    let FreshnessConfig {
        revisit_share,
        private_least_ms,
        private_most_ms,
    } = &config.freshness;
    let bounds = match config.crawl.private_networks.is_empty() {
        true => Bounds::GLOBAL,
        false => Bounds {
            least: private_least_ms.as_millis(),
            most: private_most_ms
                .as_millis()
                .max(private_least_ms.as_millis()),
        },
    };
    RevisitSettings {
        share: revisit_share.value() as f64,
        bounds,
    }
}

pub(crate) fn usual_sizes(config: &Config) -> UsualSizes {
    let seen_bytes = config.crawl.seen_memory_mib.mib_as_bytes();
    UsualSizes {
        resident: config.crawl.resident_domains.as_usize(),
        seen_bytes: usize::try_from(seen_bytes).unwrap_or(usize::MAX),
    }
}

pub(crate) fn frontier_config(config: &Config) -> FrontierConfig {
    let crawl = &config.crawl;
    FrontierConfig {
        fetches: crawl.fetches.as_usize(),
        resident: crawl.resident_domains.as_usize(),
        private: private_pace(config),
        private_clock: match crawl.share_private_addresses {
            true => Clock::Ring,
            false => Clock::Own,
        },
        ..FrontierConfig::default()
    }
}

fn private_pace(config: &Config) -> PrivatePace {
    let crawl = &config.crawl;
    PrivatePace {
        networks: crawl.private_networks.clone(),
        delay: crawl.private_delay_ms.as_millis(),
        per_address: crawl.private_address_delay_ms.as_millis(),
        back_off: crawl.private_backoff_ms.as_millis(),
    }
}
