//! The way of one page, from the request to the records: what runs at the same time for many pages.
//!
//! The crawler is told twice: when the fetch is over, so that the host's clock can go on, and when
//! the page is processed. The page stays in its queue on disk until its records are durable.

pub(crate) mod aside;
pub(crate) mod changed_text;
pub(crate) mod content;
pub(crate) mod helper_robots;
pub(crate) mod helper_turns;
pub(crate) mod news;
pub(crate) mod process;
pub(crate) mod proof;
pub(crate) mod recent_contents;
pub(crate) mod recent_links;
pub(crate) mod visited;

use crate::{
    clock::{now, unblocked},
    page::{
        aside::Aside,
        changed_text::{Scrutiny, Version},
        content::{ContentQueue, Sighting, Standing, Verdict},
        helper_robots::{HelperRobots, Ruling},
        helper_turns::HelperTurns,
        news::{Borrow, BorrowedAnswer, PageNews, page_id},
        process::{FetchedPage, ProcessedPage, Processor},
        proof::Prover,
        visited::Kept,
    },
    sink::Sink,
};
use apoidea_crawl::{
    Access, Connection, Effort, Failure, FetchReport, Origin, Outcome, lending::FetchId,
};
use apoidea_fetch::{
    Body, FetchError, Fetcher, MAX_BODY_BYTES, ResolveError, Resolver, Response, RobotsAnswer,
    WebRequest, body, judge, robots,
};
use apoidea_model::{ContentHash, Domain, PageUrl, PeerId, Pending, Target, Visit};
use bytes::Bytes;
use reqwest::header::CONTENT_ENCODING;
use std::{net::IpAddr, pin::pin, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, time};

/// Bodies above this are processed on a thread of their own, so that they do not hold up the
/// network.
const LARGE_BODY_BYTES: usize = 256 << 10;
/// A verdict usually takes a fraction of this, also when the ring has to be asked.
const ASIDE_AFTER: Duration = Duration::from_secs(1);
/// A helper waits no longer than this between a site's rules and the page: the owner lends it again.
const LONGEST_PAUSE: Duration = Duration::from_secs(20);
/// The status of an answer without a body: the page is as it was.
const NOT_MODIFIED: u16 = 304;
/// The effort of a request that was not sent.
const NOTHING: Effort = Effort {
    took: Duration::ZERO,
    bytes: 0,
};

/// The means of all work on pages.
pub(crate) struct PageWork {
    /// Shows other peers that this one keeps what it fetched.
    pub prover: Arc<Prover>,
    pub fetcher: Fetcher,
    pub resolver: Resolver,
    pub processor: Processor,
    pub content: ContentQueue,
    /// The rules of sites that this peer fetches from for others.
    pub helper_robots: HelperRobots,
    /// Its turns at their hosts.
    pub helper_turns: HelperTurns,
    /// Where bodies wait that wait long.
    pub aside: Arc<Aside>,
    /// Turns at processing a large body: as many as there are cores, or they would all hold memory
    /// and none would end.
    pub large: Semaphore,
    /// Never has more than a few messages under way for each fetch that the frontier allows.
    pub news: Sink<PageNews>,
}

/// A page that was put aside could not be read again.
#[derive(Debug)]
struct Lost;

impl PageWork {
    /// Finds the address of a domain.
    pub(crate) async fn resolve(self: Arc<Self>, domain: Domain, failures: u8) {
        let address = self.address(&domain, failures).await;
        if let Err(error) = &address {
            tracing::debug!(%domain, %error, "no address");
        }
        self.news.tell(PageNews::Resolved { domain, address });
    }

    /// Fetches a robots.txt.
    pub(crate) async fn fetch_robots(
        self: Arc<Self>,
        domain: Domain,
        origin: Origin,
        url: PageUrl,
        address: IpAddr,
    ) {
        let news = match self.robots(&url, address, Connection::KeepAlive).await {
            Ok(answer) => PageNews::Robots {
                domain,
                origin,
                answer,
            },
            Err(robots::Paused) => PageNews::Unsent(FetchId::Robots(domain)),
        };
        self.news.tell(news);
    }

    /// Fetches one page, judges the answer, and processes the body.
    pub(crate) async fn fetch_page(
        self: Arc<Self>,
        pending: Pending,
        address: IpAddr,
        connection: Connection,
        scrutiny: Scrutiny,
    ) {
        let page = page_id(&pending);
        let Some((answer, outcome)) = self.fetch(&pending, address, connection).await else {
            return self.news.tell(PageNews::Unsent(FetchId::Page(page)));
        };
        let report = FetchReport {
            page: page.clone(),
            outcome: outcome.clone(),
            effort: effort(&answer),
        };
        self.news.tell(PageNews::Fetched {
            report,
            pending: pending.clone(),
        });
        if let Ok(response) = answer
            && outcome.tells_content(&pending.visit)
        {
            let news = match self.clone().process(pending, response, scrutiny).await {
                Ok(processed) => PageNews::Processed(page, Box::new(processed)),
                Err(Lost) => PageNews::Unsent(FetchId::Page(page)),
            };
            self.news.tell(news);
        }
    }

    /// Fetches something for another peer.
    pub(crate) async fn fetch_for(self: Arc<Self>, owner: PeerId, borrow: Borrow) {
        let fetch = borrow.id();
        let address = self.address(fetch.domain(), 0).await;
        match &address {
            Ok(address) => self
                .helper_turns
                .note(fetch.domain(), self.fetcher.gap(*address)),
            Err(_) => self.news.tell(PageNews::BorrowedAnswered),
        }
        let answer = match (borrow, address) {
            (Borrow::Page(pending), Ok(address)) => {
                self.clone().fetch_borrowed(pending, address).await
            }
            (Borrow::Page(_), Err(error)) => BorrowedAnswer::Page {
                outcome: Outcome::Failed(resolve_failure(&error)),
                effort: NOTHING,
                page: None,
            },
            (Borrow::Robots(url), Ok(address)) => {
                let answer = self.robots(&url, address, Connection::Close).await;
                self.news.tell(PageNews::BorrowedAnswered);
                answer.map_or(BorrowedAnswer::Unsent, BorrowedAnswer::Robots)
            }
            (Borrow::Robots(_), Err(_)) => BorrowedAnswer::Robots(RobotsAnswer {
                access: Access::of_failure(),
                retry_after: None,
                effort: NOTHING,
            }),
        };
        self.news.tell(PageNews::Borrowed {
            owner,
            fetch,
            answer,
        });
    }

    async fn fetch_borrowed(self: Arc<Self>, pending: Pending, address: IpAddr) -> BorrowedAnswer {
        if self.ruling(&pending.url, address).await != Ruling::Allowed {
            self.news.tell(PageNews::BorrowedAnswered);
            return BorrowedAnswer::Unsent;
        }
        let answered = self.fetch(&pending, address, Connection::Close).await;
        self.news.tell(PageNews::BorrowedAnswered);
        let Some((answer, outcome)) = answered else {
            return BorrowedAnswer::Unsent;
        };
        let effort = effort(&answer);
        let page = match answer {
            Ok(response) if outcome.tells_content(&pending.visit) => {
                match self.process(pending, response, Scrutiny::Usual).await {
                    Ok(page) => Some(Box::new(page)),
                    Err(Lost) => return BorrowedAnswer::Unsent,
                }
            }
            _ => None,
        };
        BorrowedAnswer::Page {
            outcome,
            effort,
            page,
        }
    }

    /// The site's own rules about a page that another peer wants. After the question for its rules
    /// the site has the pause that they ask for.
    async fn ruling(&self, url: &PageUrl, address: IpAddr) -> Ruling {
        let known = self.helper_robots.ruling(url);
        if known != Ruling::Unknown {
            return known;
        }
        let robots_url = Origin::of(url).robots_url(&url.domain());
        let Ok(answer) = self.robots(&robots_url, address, Connection::Close).await else {
            return Ruling::Unknown;
        };
        // The file and the page are two requests.
        self.helper_turns
            .note(&url.domain(), 2 * self.fetcher.gap(address));
        let pause = answer.access.crawl_delay().unwrap_or_default();
        self.helper_robots.note(url, answer.access);
        if pause > LONGEST_PAUSE {
            return Ruling::Unknown;
        }
        time::sleep(pause).await;
        self.helper_robots.ruling(url)
    }

    /// The answer of a server and its meaning; none if a pause came before the request was sent.
    async fn fetch(
        &self,
        pending: &Pending,
        address: IpAddr,
        connection: Connection,
    ) -> Option<(Result<Response, FetchError>, Outcome)> {
        let request = WebRequest::of_visit(pending, address, connection);
        let answer = self.fetcher.get(&request).await;
        if matches!(answer, Err(FetchError::Paused)) {
            return None;
        }
        let outcome = judge::judge(&pending.url, pending.target, &answer, now());
        Some((answer, outcome))
    }

    async fn robots(
        &self,
        url: &PageUrl,
        address: IpAddr,
        connection: Connection,
    ) -> Result<RobotsAnswer, robots::Paused> {
        let (fetcher, resolver) = (&self.fetcher, &self.resolver);
        robots::fetch(fetcher, resolver, url, address, connection, now()).await
    }

    async fn address(&self, domain: &Domain, failures: u8) -> Result<IpAddr, ResolveError> {
        let all = self.resolver.resolve(domain).await?;
        Ok(choose(all, failures))
    }

    async fn process(
        self: Arc<Self>,
        pending: Pending,
        mut response: Response,
        scrutiny: Scrutiny,
    ) -> Result<ProcessedPage, Lost> {
        if response.status == NOT_MODIFIED {
            return self.not_modified(pending, response);
        }
        let encoding = response
            .headers
            .get(CONTENT_ENCODING)
            .and_then(|value| value.to_str().ok());
        if encoding.is_some() {
            response.holding.wait_for_room().await;
        }
        let body = body::decode(
            response.raw_body.clone(),
            response.extent,
            encoding,
            MAX_BODY_BYTES,
        );
        if encoding.is_some() {
            response.holding.note(body.bytes.len() as u64);
        }
        let (content, digest) = ContentHash::with_digest(&body.bytes);
        let mut page = FetchedPage {
            pending,
            response,
            body,
            content,
            digest,
            time: now(),
        };
        if judge::is_feed(&page.response.headers) {
            // The link did not tell.
            page.pending.target = Target::Sitemap;
        }
        if page.pending.target == Target::Sitemap {
            return Ok(self.processor.read_sitemap(&page));
        }
        let sight = Sighting {
            content,
            page: page.pending.url.clone(),
            time: page.time,
            keeper: self.prover.me,
            standing: Standing::Open,
        };
        let verdict = match is_captured(&page.pending.visit, &content) {
            true if self.is_kept(&page).await => Verdict::Unchanged,
            true => {
                self.prover.note_kept(&content);
                Verdict::New
            }
            false => {
                let verdict = self.judged(&mut page, sight.clone()).await?;
                self.doubted(&page, sight, verdict).await
            }
        };
        let watched = match scrutiny {
            Scrutiny::Watched => Version::of(&page),
            Scrutiny::Usual => None,
        };
        let mut processed = match page.body.bytes.len() <= LARGE_BODY_BYTES {
            true => self.processor.process(&page, &verdict),
            false => {
                let _turn = self.large.acquire().await;
                let work = self.clone();
                unblocked(move || work.processor.process(&page, &verdict)).await
            }
        };
        if let Some(version) = watched.filter(|version| version.is_changed(&processed))
            && self.may_quote(&processed)
        {
            let work = self.clone();
            let compare = move || version.compare(work.prover.archive());
            processed.changed = Some(unblocked(compare).await);
        }
        Ok(processed)
    }

    /// A page that asks not to be archived is not quoted either.
    fn may_quote(&self, page: &ProcessedPage) -> bool {
        let kept = page.visited.as_ref().map(|visited| visited.kept);
        !self.processor.keeps() || kept != Some(Kept::Nothing)
    }

    /// Takes in a server's word that a page has not changed.
    fn not_modified(&self, pending: Pending, response: Response) -> Result<ProcessedPage, Lost> {
        pending.visit.previous().ok_or(Lost)?;
        let page = FetchedPage {
            pending,
            body: Body {
                bytes: Bytes::new(),
                extent: response.extent,
            },
            response,
            // Nothing came: the mark of the last visit stays.
            content: ContentHash::from_bytes([0; 32]),
            digest: None,
            time: now(),
        };
        self.processor.not_modified(&page).ok_or(Lost)
    }

    /// Known content must be with its keeper; otherwise this peer keeps it, and says so. A peer
    /// without an archive has nothing to lose by believing.
    async fn doubted(&self, page: &FetchedPage, sight: Sighting, verdict: Verdict) -> Verdict {
        let Verdict::Duplicate(fact) = &verdict else {
            self.prover.note_kept(&page.content);
            return verdict;
        };
        let is_own = fact.keeper == self.prover.me && self.prover.has_kept(&page.content);
        let body = &page.body.bytes;
        if !self.processor.keeps() || is_own || self.prover.was_shown(&page.content) {
            return verdict;
        }
        if self.content.is_proven(fact, page.content, body).await {
            self.prover.note_shown(&page.content);
            return verdict;
        }
        tracing::debug!(url = %page.pending.url, keeper = ?fact.keeper, "known content is not with its keeper");
        self.prover.note_kept(&page.content);
        let (content, standing) = (self.content.clone(), Standing::Unproven);
        tokio::spawn(async move { content.ask(Sighting { standing, ..sight }).await });
        Verdict::New
    }

    /// Is the last capture of a page that has not changed where it is said to be?
    async fn is_kept(&self, page: &FetchedPage) -> bool {
        let (url, body) = (&page.pending.url, &page.body.bytes);
        let time = page.pending.visit.since();
        let is_kept = self.content.is_kept(url, time, page.content, body);
        !self.processor.keeps() || is_kept.await
    }

    /// Waits for the verdict on a page. Should that take long, its body waits on the disk.
    async fn judged(&self, page: &mut FetchedPage, sight: Sighting) -> Result<Verdict, Lost> {
        let mut verdict = pin!(self.content.ask(sight));
        if let Ok(verdict) = time::timeout(ASIDE_AFTER, verdict.as_mut()).await {
            return Ok(verdict);
        }
        let (aside, body) = (self.aside.clone(), page.body.bytes.clone());
        let Some(on_disk) = unblocked(move || aside.put(&body)).await else {
            return Ok(verdict.await);
        };
        (page.body.bytes, page.response.raw_body) = (Bytes::new(), Bytes::new());
        page.response.holding.put_aside();
        self.news.tell(PageNews::PutAside(page_id(&page.pending)));
        let verdict = verdict.await;
        page.response.holding.bring_back().await;
        page.body.bytes = unblocked(move || on_disk.take()).await.map_err(|error| {
            tracing::warn!(%error, url = %page.pending.url, "a page is lost with the disk it waited on, and fetched again");
            Lost
        })?;
        Ok(verdict)
    }
}

/// Is the content of a page that of its last visit, and does the archive have it from there?
fn is_captured(visit: &Visit, content: &ContentHash) -> bool {
    let previous = visit.previous();
    previous.is_some_and(|last| last.content.is_of(content) && last.captured.is_some())
}

/// IPv4 first, since home networks often pretend to have IPv6; the next one after each failure.
fn choose(mut addresses: Vec<IpAddr>, failures: u8) -> IpAddr {
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses[usize::from(failures) % addresses.len()]
}

fn effort(answer: &Result<Response, FetchError>) -> Effort {
    match answer {
        Ok(response) => Effort {
            took: response.elapsed,
            bytes: response.raw_body.len() as u64,
        },
        Err(_) => NOTHING,
    }
}

/// Whether a name leads where this peer may not go, or nowhere.
pub(crate) fn resolve_failure(error: &ResolveError) -> Failure {
    match error {
        ResolveError::Refused(_) => Failure::PrivateAddress,
        ResolveError::Unresolved(_) | ResolveError::Silent => Failure::Dns,
    }
}
