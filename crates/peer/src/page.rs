//! The way of one page, from the request to the records: what runs at the same time for many pages.
//!
//! The crawler is told twice: when the fetch is over, so that the host's clock can go on, and when
//! the page is processed. The page stays in its queue on disk until its processing is durable.

use crate::{
    aside::Aside,
    body,
    content::{ContentDesk, Sight, Verdict},
    crawler::Finding,
    fetch::{Connection, FetchError, Fetcher, MAX_BODY_BYTES, Response, Wanted},
    judge,
    process::{FetchedPage, ProcessedPage, Processor},
    resolver::{ResolveError, Resolver},
    robots_fetch::{self, RobotsAnswer},
    swarm::lease::{LeaseAnswer, LeaseAsk, LeaseResult, LeasedPage},
};
use apoidea_crawl::{Access, Effort, Failure, Origin, Outcome, Report};
use apoidea_model::{ContentHash, Domain, PageUrl, PeerId, Pending, Slot, Target, Time};
use bytes::Bytes;
use reqwest::header::CONTENT_ENCODING;
use serde::{Deserialize, Serialize};
use std::{
    net::IpAddr,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::{
    sync::{Semaphore, mpsc},
    time,
};

/// Bodies above this are processed on a thread of their own, so that they do not hold up the
/// network.
const LARGE_BODY_BYTES: usize = 256 << 10;

/// Usually a verdict takes a fraction of this, also when the ring has to be asked.
const ASIDE_AFTER: Duration = Duration::from_secs(1);

/// What the work on pages needs; shared by all of it.
pub(crate) struct PageWork {
    pub fetcher: Fetcher,
    pub resolver: Resolver,
    pub processor: Processor,
    pub content: ContentDesk,
    /// Where bodies wait that wait long.
    pub aside: Arc<Aside>,
    /// Turns at processing a large body: as many as there are cores, or they would all hold memory
    /// and none would end.
    pub large: Semaphore,
    /// Unbounded, but never longer than a few messages for each fetch that the frontier allows.
    pub findings: mpsc::UnboundedSender<Finding>,
}

impl PageWork {
    /// Finds the address of a domain.
    pub(crate) async fn resolve(self: Arc<Self>, domain: Domain, failures: u8) {
        let address = self
            .resolver
            .resolve(&domain)
            .await
            .map(|all| choose(all, failures));
        if let Err(error) = &address {
            tracing::debug!(%domain, %error, "no address");
        }
        self.tell(Finding::Resolved { domain, address });
    }

    /// Fetches a robots.txt.
    pub(crate) async fn fetch_robots(
        self: Arc<Self>,
        domain: Domain,
        origin: Origin,
        url: PageUrl,
        address: IpAddr,
    ) {
        let (fetcher, resolver) = (&self.fetcher, &self.resolver);
        match robots_fetch::fetch(fetcher, resolver, &url, address, Connection::Keep, now()).await {
            Ok(answer) => self.tell(Finding::Robots {
                domain,
                origin,
                answer,
            }),
            Err(robots_fetch::Held) => self.tell(Finding::Held { domain, slot: None }),
        }
    }

    /// Fetches a page and makes of it what there is to be made.
    pub(crate) async fn fetch_page(
        self: Arc<Self>,
        domain: Domain,
        pending: Pending,
        address: IpAddr,
        connection: Connection,
    ) {
        let answer = self
            .fetcher
            .get(&pending.url, address, wanted(pending.target), connection)
            .await;
        if matches!(answer, Err(FetchError::Held)) {
            return self.tell(Finding::Held {
                domain,
                slot: Some(pending.slot),
            });
        }
        let outcome = judge::judge(&pending.url, pending.target, &answer, now());
        let effort = effort(&answer);
        let report = Report {
            domain: domain.clone(),
            slot: pending.slot,
            outcome: outcome.clone(),
            effort,
        };
        self.tell(Finding::Fetched {
            report,
            pending: pending.clone(),
        });
        if let (Outcome::Page, Ok(response)) = (outcome, answer) {
            let slot = pending.slot;
            match self.clone().process(pending, response).await {
                Ok((page, sight)) => self.tell(Finding::Processed {
                    domain,
                    slot,
                    page,
                    sight,
                }),
                Err(Lost) => self.tell(Finding::Held {
                    domain,
                    slot: Some(slot),
                }),
            }
        }
    }

    /// Fetches something for a neighbour. The token is dropped when the server has answered.
    pub(crate) async fn fetch_for_another(
        self: Arc<Self>,
        from: PeerId,
        ask: LeaseAsk,
        request: Arc<()>,
    ) {
        let (domain, what) = (ask.url.domain(), ask.what);
        let address = self
            .resolver
            .resolve(&domain)
            .await
            .map(|all| choose(all, 0));
        let (answer, page) = match (what.pending(ask.url.clone()), address) {
            (Some(pending), Ok(address)) => {
                self.clone().fetch_leased(pending, address, request).await
            }
            (Some(_), Err(error)) => {
                let outcome = Outcome::Failed(resolve_failure(&error));
                (
                    LeaseAnswer::Page {
                        outcome,
                        cost: NOTHING.into(),
                        page: None,
                    },
                    None,
                )
            }
            (None, Ok(address)) => {
                let (fetcher, resolver) = (&self.fetcher, &self.resolver);
                let answer = robots_fetch::fetch(
                    fetcher,
                    resolver,
                    &ask.url,
                    address,
                    Connection::Close,
                    now(),
                )
                .await;
                (
                    answer.map_or(LeaseAnswer::Held, LeaseAnswer::of_robots),
                    None,
                )
            }
            (None, Err(_)) => {
                let access = Access::of_failure();
                (
                    LeaseAnswer::of_robots(RobotsAnswer {
                        access,
                        retry_after: None,
                        effort: NOTHING,
                    }),
                    None,
                )
            }
        };
        self.tell(Finding::ForAnother {
            from,
            result: LeaseResult {
                domain,
                what,
                answer,
            },
            page,
        });
    }

    async fn fetch_leased(
        self: Arc<Self>,
        pending: Pending,
        address: IpAddr,
        request: Arc<()>,
    ) -> (LeaseAnswer, Option<(ProcessedPage, PageSight)>) {
        let answer = self
            .fetcher
            .get(
                &pending.url,
                address,
                wanted(pending.target),
                Connection::Close,
            )
            .await;
        drop(request);
        if matches!(answer, Err(FetchError::Held)) {
            return (LeaseAnswer::Held, None);
        }
        let outcome = judge::judge(&pending.url, pending.target, &answer, now());
        let cost = effort(&answer).into();
        let page = match answer {
            Ok(response) if outcome == Outcome::Page => match self.process(pending, response).await
            {
                Ok(page) => Some(page),
                Err(Lost) => return (LeaseAnswer::Held, None),
            },
            _ => None,
        };
        (
            LeaseAnswer::Page {
                outcome,
                cost,
                page: None,
            },
            page,
        )
    }

    /// What came of a fetch that was left to a neighbour.
    pub(crate) fn tell_leased(&self, report: Report, pending: Pending, page: Option<LeasedPage>) {
        let (domain, slot, url) = (report.domain.clone(), report.slot, pending.url.clone());
        let is_page = report.outcome == Outcome::Page;
        self.tell(Finding::Fetched { report, pending });
        if let Some(page) = page.filter(|_| is_page) {
            let (page, sight) = page.into_processed(url);
            self.tell(Finding::Processed {
                domain,
                slot,
                page,
                sight,
            });
        }
    }

    /// A neighbour did not fetch what was left to it.
    pub(crate) fn tell_held(&self, domain: Domain, slot: Option<Slot>) {
        self.tell(Finding::Held { domain, slot });
    }

    pub(crate) fn tell_robots(&self, domain: Domain, origin: Origin, answer: RobotsAnswer) {
        self.tell(Finding::Robots {
            domain,
            origin,
            answer,
        });
    }

    async fn process(
        self: Arc<Self>,
        pending: Pending,
        mut response: Response,
    ) -> Result<(ProcessedPage, PageSight), Lost> {
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
            digest,
            time: now(),
        };
        if page.pending.target == Target::Sitemap {
            return Ok((self.processor.read_sitemap(&page), PageSight::Sitemap));
        }
        let sight = Sight {
            content,
            page: page.pending.url.clone(),
            time: page.time,
        };
        let verdict = self.judged(&mut page, sight).await?;
        let sight = match verdict {
            Verdict::New => PageSight::New,
            Verdict::Known(_) => PageSight::Duplicate,
        };
        if page.body.bytes.len() <= LARGE_BODY_BYTES {
            return Ok((self.processor.process(&page, &verdict), sight));
        }
        let _turn = self.large.acquire().await;
        let work = self.clone();
        let work = tokio::task::spawn_blocking(move || work.processor.process(&page, &verdict));
        Ok((
            work.await
                .unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic())),
            sight,
        ))
    }

    /// Waits for the verdict on a page. Should that take long, its body waits on the disk.
    async fn judged(&self, page: &mut FetchedPage, sight: Sight) -> Result<Verdict, Lost> {
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
        let Pending { url, slot, .. } = &page.pending;
        self.tell(Finding::PutAside {
            domain: url.domain(),
            slot: *slot,
        });
        let verdict = verdict.await;
        page.response.holding.bring_back().await;
        page.body.bytes = unblocked(move || on_disk.take()).await.map_err(|error| {
            tracing::warn!(%error, url = %page.pending.url, "a page is lost with the disk it waited on, and fetched again");
            Lost
        })?;
        Ok(verdict)
    }

    fn tell(&self, finding: Finding) {
        // Nobody listens any more when the peer has stopped.
        let _ = self.findings.send(finding);
    }
}

/// A page that was put aside could not be read again.
#[derive(Debug)]
struct Lost;

/// Runs what may wait for the disk where it holds nobody up.
pub(crate) async fn unblocked<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
}

/// What a processed page was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum PageSight {
    /// A page whose content nobody had shown before.
    New,
    /// A page whose content is known.
    Duplicate,
    /// No page, but a list of pages.
    Sitemap,
}

/// Of a request that was not sent.
const NOTHING: Effort = Effort {
    took: Duration::ZERO,
    bytes: 0,
};

fn wanted(target: Target) -> Wanted {
    match target {
        Target::Page => Wanted::Page,
        Target::Sitemap => Wanted::Anything,
    }
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
        ResolveError::Unresolved(_) => Failure::Dns,
    }
}

/// The wall clock, read in one place.
pub(crate) fn now() -> Time {
    Time::from(SystemTime::now())
}
