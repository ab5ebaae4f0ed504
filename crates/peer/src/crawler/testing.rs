//! A crawler for unit tests: its store is real, its ring is in memory, and no news of the network
//! or the disk come but those that a test feeds.
//!
//! Fetches that it starts find nothing, and their news are dropped: a test tells the news itself.

use super::{
    Crawler, Inbox, Limits, Parts, SwarmParts,
    finding::Finding,
    writer::{WriterByHand, WriterNews},
};
use crate::{
    clock::now,
    config::Config,
    network::Network,
    page::{
        content::{ContentIndex, Question, Verdict},
        news::{PageNews, page_id},
        process::{PageKind, ProcessedPage},
        proof::{Evidence, Nonce, Prover},
        visited::{Kept, Told, Visited},
    },
    peer,
    report::{
        page_feed::PageFeed,
        reporter::Reporter,
        status::{Attention, Status},
    },
    sink::Sink,
    state_codec::decode_state,
    swarm::{
        lending::borrowed::BorrowedDomains,
        links::message::LinksAnswer,
        orders::{Quiescing, SwarmOrder},
        replicas::{
            message::{DELTAS, Delta, DeltaAnswer},
            puller::Puller,
            replica::Replica,
            rounds,
        },
        service::PeerService,
        tenancy::{Tenancy, whole_ring},
        testing::{TestRing, answer_deltas, peer, provenance},
        watching::watchlist::Watchlist,
        wire,
    },
    volunteer::{line::Line, preferences_file::PreferencesFile, steward::Steward},
};
use apoidea_crawl::{
    Access, DomainState, Effort, FetchReport, Frontier, Home, Origin, Outcome, Stage, Step, Tenure,
    Versions, lending::FetchId,
};
use apoidea_fetch::{ResolveError, RobotsAnswer, Throttle};
use apoidea_governor::{Preferences, Switch, sensors::Senses};
use apoidea_model::{
    ContentHash, ContentMark, CrawlId, Domain, Link, LinkBatch, PageId, PageUrl, PeerId, Pending,
    Slot, Target, Time, Validators,
};
use apoidea_overlay::{Arc as RingArc, Overlay, RequestError, SettingOut};
use apoidea_store::{Errand, Fact, OutboxRecord, Store};
use bytes::Bytes;
use std::{
    future::{Future, ready},
    net::{IpAddr, Ipv4Addr},
    ops::{Deref, DerefMut},
    pin::Pin,
    sync::Arc,
    time::Duration,
};
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::yield_now,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// The address of every host.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The effort of every fetch.
pub(super) const EFFORT: Effort = Effort {
    took: Duration::ZERO,
    bytes: 10,
};
/// Turns that the tasks of the crawler get: each needs a few.
const TURNS: usize = 60;

/// A crawler whose surroundings a test controls.
pub(super) struct TestCrawler {
    crawler: Crawler,
    pub ring: Arc<TestRing>,
    writer: WriterByHand,
    surroundings: Surroundings,
}

/// The stage of a page, without its content.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum At {
    Fetching,
    Processing,
    Processed,
    Writing,
    Done,
    Errand(u64),
}

/// The things that outlive a crash.
struct Surroundings {
    folder: tempfile::TempDir,
    store: Store,
    config: Config,
    network: Arc<Network>,
}

/// An index that has seen nothing.
struct NothingKnown;

impl ContentIndex for NothingKnown {
    fn judge(&self, questions: Vec<Question>) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        questions
            .into_iter()
            .for_each(|question| question.answer(Verdict::New));
        Box::pin(ready(()))
    }

    fn proof(
        &self,
        _: &Fact,
        _: ContentHash,
        _: Nonce,
    ) -> Pin<Box<dyn Future<Output = Option<Evidence>> + Send + '_>> {
        Box::pin(ready(None))
    }
}

impl Deref for TestCrawler {
    type Target = Crawler;

    fn deref(&self) -> &Crawler {
        &self.crawler
    }
}

impl DerefMut for TestCrawler {
    fn deref_mut(&mut self) -> &mut Crawler {
        &mut self.crawler
    }
}

impl TestCrawler {
    /// A crawler without other peers.
    pub(super) fn alone() -> Self {
        Self::with(TestRing::new([me()]), &[])
    }

    /// A crawler with these settings and without other peers.
    pub(super) fn alone_with(settings: &[&str]) -> Self {
        Self::with(TestRing::new([me()]), settings)
    }

    /// A crawler with one other peer, which owns about half of the domains and agrees to every
    /// change that it is told.
    pub(super) fn in_swarm() -> Self {
        Self::in_swarm_with(&[])
    }

    /// The same with other settings.
    pub(super) fn in_swarm_with(settings: &[&str]) -> Self {
        let ring = TestRing::new([me(), other()]);
        ring.answer_with(|_, kind, body| match kind {
            DELTAS => Ok(applied(&body)),
            _ => Err(RequestError::Busy),
        });
        Self::with(ring, settings)
    }

    fn with(ring: Arc<TestRing>, settings: &[&str]) -> Self {
        let usual = [
            "crawl.private_networks=[\"127.0.0.0/8\"]",
            "crawl.private_delay_ms=0",
            "crawl.private_address_delay_ms=0",
            "crawl.private_backoff_ms=0",
            "crawl.dns=[\"127.0.0.1:9\"]",
            "archive.keep=false",
            "network.port=0",
            "network.listen=[\"127.0.0.1\"]",
            "network.local_network=\"off\"",
        ];
        let settings = usual.iter().chain(settings);
        let config = settings.fold(Config::default(), |config, setting| {
            config.with(setting).unwrap()
        });
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let network = Network::start(
            &config.network,
            folder.path(),
            store.clone(),
            Arc::new(PeerService::default()),
            SettingOut::WhenTold,
            Switch::Off,
        );
        let surroundings = Surroundings {
            folder,
            store,
            config,
            network: Arc::new(network.unwrap()),
        };
        Self::start(ring, surroundings)
    }

    fn start(ring: Arc<TestRing>, surroundings: Surroundings) -> Self {
        let Surroundings {
            folder,
            store,
            config,
            network,
        } = &surroundings;
        let (findings, inbox) = mpsc::unbounded_channel();
        let throttle = Arc::new(Throttle::new());
        let preferences = Preferences::dedicated();
        let steward = Arc::new(Steward::new(
            preferences.clone(),
            PreferencesFile::new(folder.path()),
            Senses::start(Vec::new(), &preferences),
            throttle.clone(),
            folder.path().to_owned(),
        ));
        let work = peer::page_work(
            config,
            &Home::default(),
            folder.path(),
            Arc::new(Prover::new(me(), None)),
            Arc::new(NothingKnown),
            throttle.clone(),
            Sink::new(|_| {}),
        );
        let work = Arc::new(work.unwrap());
        let line = Arc::new(Line::new(work.resolver.clone()));
        let written = findings.clone();
        let news = Sink::new(move |news| drop(written.send(Finding::Writer(news))));
        let (writer, by_hand) = WriterByHand::new(store.clone(), None, news, steward.watch());
        let crawler = Crawler::recover(Parts {
            frontier: Frontier::new(peer::frontier_config(config)),
            admitter: peer::admitter(config, &Home::default(), store, ring.me()).unwrap(),
            store: store.clone(),
            writer,
            work,
            feed: PageFeed::new(),
            inbox: Inbox {
                findings: inbox,
                commands: mpsc::channel(1).1,
                orders: mpsc::channel(1).1,
            },
            reporter: Reporter::new(now(), network.clone(), steward.clone(), line).0,
            limits: Limits {
                fetches: config.crawl.fetches.as_usize(),
                allowance: steward.watch(),
                throttle,
                steward,
                usual: peer::usual_sizes(config),
            },
            revisits: peer::revisit_settings(config),
            borrowed: BorrowedDomains::open(store).unwrap(),
            swarm: swarm_parts(&ring, store, findings),
        });
        TestCrawler {
            crawler: crawler.unwrap(),
            ring,
            writer: by_hand,
            surroundings,
        }
    }

    /// The process is killed and starts again. Orders that were not written are lost.
    pub(super) fn crash(self) -> Self {
        let TestCrawler {
            crawler,
            ring,
            writer,
            surroundings,
        } = self;
        drop((crawler, writer));
        Self::start(ring, surroundings)
    }

    pub(super) fn store(&self) -> Store {
        self.surroundings.store.clone()
    }

    /// A domain that is this peer's.
    pub(super) fn own(&self, number: usize) -> Domain {
        self.domain(number, |key| self.ring.owns(key))
    }

    /// A domain of another peer.
    pub(super) fn foreign(&self, number: usize) -> Domain {
        self.domain(number, |key| !self.ring.owns(key))
    }

    fn domain(&self, number: usize, is_wanted: impl Fn(apoidea_model::Key) -> bool) -> Domain {
        let all = (0..).map(|i| format!("h{i}.test").parse::<Domain>().unwrap());
        let mut wanted = all.filter(|domain| is_wanted(domain.key()));
        wanted.nth(number).unwrap()
    }

    /// Takes in a finding.
    pub(super) async fn tell(&mut self, finding: Finding) {
        self.crawler.take_all(finding).await;
    }

    /// Takes in news of a page.
    pub(super) async fn tell_page(&mut self, news: PageNews) {
        self.tell(Finding::Page(Box::new(news))).await;
    }

    /// Lets the tasks of the crawler go on, and takes in their findings.
    pub(super) async fn take_turns(&mut self) {
        for _ in 0..TURNS {
            yield_now().await;
            while let Ok(finding) = self.crawler.parts.inbox.findings.try_recv() {
                self.crawler.take_all(finding).await;
            }
        }
    }

    /// The time to save has come, if anything is to be saved; the orders wait for the disk.
    pub(super) async fn hand_in(&mut self) {
        if self.crawler.timers.save_at.is_some() {
            self.crawler.timers.save_at = Some(Instant::now());
            self.crawler.save_if_due().await;
        }
        self.take_turns().await;
    }

    /// Writes everything that was handed in.
    pub(super) async fn write(&mut self) {
        self.writer.write();
        self.take_turns().await;
    }

    /// The writing thread ends.
    pub(super) fn stop_writer(&mut self) {
        self.writer.stop();
    }

    /// Stops the crawler, while its writer writes. Gives what the next run finds.
    pub(super) async fn shut_down(self) -> (Status, Self) {
        let TestCrawler {
            crawler,
            ring,
            mut writer,
            surroundings,
        } = self;
        let write = async {
            loop {
                writer.write();
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let status = tokio::select! {
            status = crawler.shut_down() => status,
            () = write => unreachable!("it writes without end"),
        };
        (status, Self::start(ring, surroundings))
    }

    /// Saves and writes until nothing is left to be saved.
    pub(super) async fn save(&mut self) {
        for _ in 0..20 {
            self.hand_in().await;
            self.write().await;
            if self.crawler.timers.save_at.is_none() {
                return;
            }
        }
    }

    /// Admits URLs to the queues of this peer or to the outbox.
    pub(super) fn admit(&mut self, urls: &[PageUrl]) {
        let links = urls.iter().map(link).collect();
        self.crawler
            .deliver(CrawlId::OPEN, links, None, now())
            .unwrap();
    }

    /// Admits pages of a domain and starts the fetch of the first one. Gives its place.
    pub(super) async fn fetching(&mut self, domain: &Domain, pages: usize) -> Pending {
        let urls: Vec<PageUrl> = (0..pages).map(|page| url(domain, page)).collect();
        self.admit(&urls);
        self.begin(domain).await;
        self.first_under_way(domain)
    }

    /// Brings a domain into memory and starts the fetch of its first page.
    pub(super) async fn begin(&mut self, domain: &Domain) {
        self.open(domain).await;
        self.crawler.pump();
    }

    /// Brings a domain into memory; its robots.txt allows everything.
    pub(super) async fn open(&mut self, domain: &Domain) {
        self.resolve(domain).await;
        self.tell_page(robots(domain, Access::Open)).await;
    }

    /// Brings a domain into memory and finds its address; its robots.txt is asked for.
    pub(super) async fn resolve(&mut self, domain: &Domain) {
        self.crawler.pump();
        assert!(self.crawler.parts.frontier.is_resident(domain), "it wakes");
        self.tell_page(PageNews::Resolved {
            domain: domain.clone(),
            address: Ok::<_, ResolveError>(ADDRESS),
        })
        .await;
        self.crawler.pump();
    }

    /// The first page of a domain that is in processing.
    pub(super) fn first_under_way(&self, domain: &Domain) -> Pending {
        let under_way = self.crawler.pages.of(domain);
        let queue = self.queue(domain);
        let mut found = queue
            .into_iter()
            .filter(|pending| under_way.contains(&pending.slot));
        found.next().expect("a page is being fetched")
    }

    /// The fetch of a page is over.
    pub(super) async fn fetched(&mut self, pending: &Pending, outcome: Outcome) {
        let report = FetchReport {
            page: page_id(pending),
            outcome,
            effort: EFFORT,
        };
        let pending = pending.clone();
        self.tell_page(PageNews::Fetched { report, pending }).await;
    }

    /// A page came back, with these links.
    pub(super) async fn processed(&mut self, pending: &Pending, links: &[PageUrl]) {
        self.fetched(pending, Outcome::Page).await;
        let page = processed(pending, links);
        self.tell_page(PageNews::Processed(page_id(pending), Box::new(page)))
            .await;
    }

    /// Carries out an order of the swarm.
    pub(super) async fn order_swarm(&mut self, order: SwarmOrder) {
        self.crawler.obey_swarm(order).await;
    }

    /// Another peer sends links; the answer comes later.
    pub(super) async fn links_of_others(
        &mut self,
        crawl: CrawlId,
        urls: &[PageUrl],
    ) -> oneshot::Receiver<LinksAnswer> {
        let (reply, answer) = oneshot::channel();
        let links = urls.iter().map(link).collect();
        let batch = LinkBatch { crawl, links };
        self.order_swarm(SwarmOrder::Admit(other(), batch, reply))
            .await;
        answer
    }

    /// Another peer tells of a change.
    pub(super) async fn delta(&mut self, delta: Delta) -> DeltaAnswer {
        let (reply, answers) = oneshot::channel();
        self.order_swarm(SwarmOrder::Deltas(vec![delta], reply))
            .await;
        answers.await.unwrap()[0]
    }

    /// Another peer sends its replica of a domain.
    pub(super) async fn adopt_replica(
        &mut self,
        domain: &Domain,
        replica: Replica,
    ) -> oneshot::Receiver<()> {
        let (reply, adopted) = oneshot::channel();
        let order = SwarmOrder::Adopt(other(), domain.clone(), Box::new(replica), reply);
        self.order_swarm(order).await;
        adopted
    }

    /// Somebody wishes for rest.
    pub(super) async fn wish_for_rest(&mut self) -> (oneshot::Receiver<()>, CancellationToken) {
        let (reached, rest) = oneshot::channel();
        let over = CancellationToken::new();
        let quiescing = Quiescing {
            reached: Some(reached),
            over: over.clone(),
        };
        self.order_swarm(SwarmOrder::Quiesce(quiescing)).await;
        (rest, over)
    }

    /// The disk cannot be written.
    pub(super) async fn break_disk(&mut self) {
        let trouble = WriterNews::Trouble(Attention::Archive {
            error: "the disk is full".to_owned(),
        });
        self.tell(Finding::Writer(trouble)).await;
    }

    /// The disk can be written again.
    pub(super) async fn mend_disk(&mut self) {
        let durable = WriterNews::Durable {
            pages: Vec::new(),
            archive_bytes: 0,
        };
        self.tell(Finding::Writer(durable)).await;
    }

    /// The URLs that wait at a domain on the disk.
    pub(super) fn queue(&self, domain: &Domain) -> Vec<Pending> {
        self.surroundings
            .store
            .pending(domain, None, 10_000)
            .unwrap()
    }

    /// The paths of the URLs that wait at a domain on the disk.
    pub(super) fn waiting(&self, domain: &Domain) -> Vec<String> {
        let queue = self.queue(domain);
        let paths = queue.iter().map(|pending| path(&pending.url));
        paths.collect()
    }

    /// The state of a domain, in memory or on the disk.
    pub(super) fn state_of(&self, domain: &Domain) -> DomainState {
        let resident = self.crawler.parts.frontier.state(domain).cloned();
        resident.unwrap_or_else(|| {
            let stored = self.surroundings.store.domain(domain).unwrap();
            decode_state(domain, &stored.expect("the domain is known"))
        })
    }

    pub(super) fn outbox(&self) -> Vec<OutboxRecord> {
        self.surroundings.store.outbox(None, 10_000).unwrap()
    }

    /// The URLs in the outbox.
    pub(super) fn outgoing(&self) -> Vec<String> {
        let links = self.outbox().into_iter().flat_map(|record| record.links);
        links.map(|link| link.url.to_string()).collect()
    }

    pub(super) fn errands(&self) -> Vec<Errand> {
        self.surroundings.store.errands(None, 10_000).unwrap()
    }

    /// The courier has brought a record to the owners of its links.
    pub(super) async fn delivered(&mut self, record: u64) {
        let mut commit = apoidea_store::Commit::new();
        commit.remove_outbox(record);
        self.surroundings.store.apply(&commit).unwrap();
        self.tell(Finding::Delivered(vec![record])).await;
    }

    /// The stage of a page that is under way.
    pub(super) fn stage(&self, pending: &Pending) -> Option<At> {
        let stage = self.crawler.pages.stage(&page_id(pending))?;
        Some(match stage {
            Stage::Fetching => At::Fetching,
            Stage::Processing { .. } => At::Processing,
            Stage::Processed { .. } => At::Processed,
            Stage::Writing { .. } => At::Writing,
            Stage::Done { .. } => At::Done,
            Stage::Errand { record } => At::Errand(*record),
        })
    }

    /// The changes that other peers were told, in order; forgotten afterwards.
    pub(super) fn told(&self) -> Vec<Delta> {
        let mut requests = self.ring.requests.lock().unwrap();
        let deltas = requests
            .extract_if(.., |(_, kind, _)| *kind == DELTAS)
            .flat_map(|(_, _, body)| rounds::read(&wire::decode(&body).unwrap()).unwrap());
        deltas.collect()
    }

    /// Lends the fetch of a page, as if this peer had enough to do. Gives the page.
    pub(super) async fn lent(&mut self, domain: &Domain) -> Pending {
        self.admit(&[url(domain, 0)]);
        self.open(domain).await;
        self.crawler.lending.note_shortage(now());
        self.crawler.pump();
        let pending = self.first_under_way(domain);
        assert_eq!(self.crawler.lending.lent_count(), 1, "it is lent");
        pending
    }

    /// The parts of the ring that belong to nobody in particular: all of it.
    pub(super) fn everything() -> RingArc {
        whole_ring()
    }

    /// From now on the other peer owns everything.
    pub(super) fn lose_everything(&self) {
        self.ring.set_members([other()]);
    }

    /// The other peer was the last owner of all that is this peer's now.
    pub(super) fn gained_from_other(&self) {
        let tenancy = &self.crawler.parts.swarm.tenancy;
        tenancy.begin_taking_over(Self::everything(), Some(other()));
        tenancy.end_taking_over(Self::everything());
    }

    /// From now on this peer owns everything, though it still has its neighbour.
    pub(super) fn gain_everything(&self) {
        self.ring.set_members([me()]);
    }
}

fn swarm_parts(
    ring: &Arc<TestRing>,
    store: &Store,
    findings: mpsc::UnboundedSender<Finding>,
) -> SwarmParts {
    let overlay: Arc<dyn Overlay> = ring.clone();
    let tenancy = Tenancy::new(overlay.clone());
    tenancy.end_taking_over(whole_ring());
    let others = ring.members().into_iter().filter(|peer| *peer != ring.me());
    tenancy.note_neighbours(others);
    SwarmParts {
        me: ring.me(),
        overlay,
        tenancy: Arc::new(tenancy),
        puller: Puller::default(),
        provenance: provenance(),
        courier: Arc::new(Notify::new()),
        sweep: Arc::new(Notify::new()),
        clocks: Default::default(),
        watchlist: Arc::new(Watchlist::open(store.clone()).unwrap()),
        findings,
    }
}

/// This peer.
pub(super) fn me() -> PeerId {
    peer(0x40)
}

/// The other peer of a swarm.
pub(super) fn other() -> PeerId {
    peer(0xc0)
}

/// The answer of a replica that takes in every change.
pub(super) fn applied(body: &[u8]) -> Bytes {
    answer_deltas(body, DeltaAnswer::Applied)
}

/// A page of a domain.
pub(super) fn url(domain: &Domain, page: usize) -> PageUrl {
    PageUrl::parse(&format!("http://{domain}/{page}")).unwrap()
}

pub(super) fn link(url: &PageUrl) -> Link {
    Link {
        url: url.clone(),
        depth: 0,
        target: Target::Page,
    }
}

/// A URL that waits at a place of its queue.
pub(super) fn pending(domain: &Domain, page: usize, sequence: u64) -> Pending {
    let slot = Slot { rank: 0, sequence };
    Pending::admitted(link(&url(domain, page)), slot, CrawlId::OPEN)
}

fn path(url: &PageUrl) -> String {
    let text = url.to_string();
    let (_, path) = text.split_once(url.host()).unwrap();
    path.to_owned()
}

/// The answer to the question for a robots.txt.
pub(super) fn robots(domain: &Domain, access: Access) -> PageNews {
    PageNews::Robots {
        domain: domain.clone(),
        origin: Origin::of(&url(domain, 0)),
        answer: RobotsAnswer {
            access,
            retry_after: None,
            effort: EFFORT,
        },
    }
}

/// A page with these links.
pub(super) fn processed(pending: &Pending, links: &[PageUrl]) -> ProcessedPage {
    let found = |url: &PageUrl| Link {
        depth: pending.depth + 1,
        ..link(url)
    };
    ProcessedPage {
        links: links.iter().map(found).collect(),
        link_count: links.len() as u64,
        records: None,
        url: pending.url.clone(),
        depth: pending.depth,
        target: pending.target,
        crawl: pending.crawl,
        visit: pending.visit.clone(),
        visited: Some(Visited {
            time: now(),
            content: ContentMark::of(&ContentHash::of_body(pending.url.to_string().as_bytes())),
            validators: Validators::default(),
            kept: Kept::Nothing,
            told: Told::ByContent,
        }),
        hints: Vec::new(),
        changed: None,
        helper: None,
        bytes: 10,
        millis: 1,
        kind: PageKind::New,
    }
}

/// The name of the fetch of a page.
pub(super) fn fetch_of(pending: &Pending) -> FetchId {
    FetchId::Page(page_id(pending))
}

pub(super) fn page(pending: &Pending) -> PageId {
    page_id(pending)
}

/// A tenure of another peer, so many minutes ago.
pub(super) fn tenure(minutes_ago: u64) -> Tenure {
    let began = Time::from_millis(now().as_millis() - 60_000 * minutes_ago);
    Tenure::begin(other(), began, Tenure::default())
}

/// Versions with so many changes of one tenure.
pub(super) fn versions(tenure: Tenure, count: u32) -> Versions {
    let mut versions = Versions::default();
    (0..count).for_each(|_| _ = versions.advance(tenure));
    versions
}

/// A change by another owner from one version to another, which puts these pages.
pub(super) fn delta(
    domain: &Domain,
    tenure: Tenure,
    base: u32,
    version: u32,
    puts: &[usize],
) -> Delta {
    Delta {
        step: Step {
            tenure,
            base,
            version,
        },
        puts: puts
            .iter()
            .map(|&number| pending(domain, number, number as u64))
            .collect(),
        ..Delta::announcement(domain.clone(), versions(tenure, version))
    }
}
