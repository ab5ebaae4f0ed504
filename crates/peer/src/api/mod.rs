//! The local API: HTTP on loopback, for the dashboard, the command line and the tray app alike.
//!
//! Every answer is JSON, errors included (`{"error": "…"}`), except the dashboard's files,
//! `/metrics`, the feed and the event stream. [`access`] decides before any handler runs whether the caller may ask.

mod access;
mod client;
mod connections;
mod dashboard;
mod events;
mod feed;
mod guard;
mod hello;
pub(crate) mod history;
mod invites;
pub(crate) mod journal;
mod limits;
mod metrics;
pub(crate) mod places;
mod seeds;
mod token;
mod watches;

pub use access::Access;
pub use client::{ApiClient, AskError, FindError};
pub use connections::API_IDLE;
pub use invites::{InviteAnswer, InviteContents, InviteRequest, JoinRequest, OpenedInvite};
pub use limits::SnoozeRequest;
pub use seeds::{RefusedSeed, SeedAnswer, SeedRequest, StartSeedsRequest};
pub use watches::{WatchList, WatchRequest};

use guard::Guard;

use crate::{
    api::{
        history::{History, Hour},
        journal::{Journal, Note, Topic},
        places::{Places, Whereabouts},
    },
    handle::{Handle, Stopped},
    network::NetworkStatus,
    report::status::{DomainRow, PageEvent, Status},
};
use apoidea_model::{Domain, InvalidDomain, PeerId};
use axum::{
    Json, Router,
    extract::{DefaultBodyLimit, Query, State, rejection::JsonRejection},
    http::StatusCode,
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use std::{collections::BTreeSet, sync::Arc};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Largest request body that is read, in bytes: about 10,000 seeds.
const MAX_REQUEST_BYTES: usize = 1 << 20;
/// Most domains in one answer.
const MAX_DOMAINS: usize = 1000;
/// Most owners in one answer: as many as a successor list gives.
const MAX_OWNERS: usize = 16;

/// What the handlers share.
#[derive(Clone)]
struct Api {
    handle: Handle,
    access: Arc<Access>,
    guard: Arc<Guard>,
    history: History,
    journal: Journal,
    places: Arc<Places>,
    opened: invites::Opened,
    feed: Arc<feed::Feed>,
}

/// Serves the API until cancelled.
pub async fn serve(
    listener: TcpListener,
    handle: Handle,
    access: Arc<Access>,
    stop: CancellationToken,
) {
    let (history, journal) = (History::open(&handle.store), Journal::new());
    tokio::spawn(
        history
            .clone()
            .follow(handle.watch_status(), handle.store.clone()),
    );
    tokio::spawn(journal.clone().follow(handle.watch_status()));
    tokio::spawn(watches::note_changes(handle.clone(), journal.clone()));
    let feed = Arc::new(feed::Feed::open(handle.store.clone()));
    let (guard, places) = (Arc::new(Guard::new()), Arc::new(Places::default()));
    let router = router(Api {
        handle,
        access,
        guard,
        history,
        journal,
        places,
        opened: Default::default(),
        feed,
    });
    connections::serve(listener, router, stop).await;
}

fn router(api: Api) -> Router {
    let private = Router::new()
        .route("/api/status", get(status))
        .route(access::EVENTS_PATH, get(events::stream))
        .merge(seeds::routes())
        .merge(invites::routes())
        .merge(watches::routes())
        .route("/api/domains", get(domains))
        .route("/api/pages", get(pages))
        .route("/api/history", get(history))
        .route("/api/journal", get(journal))
        .route("/api/places", get(places))
        .route("/api/refusals", get(refusals).post(refuse).delete(allow))
        .route("/api/peers", get(peers))
        .route("/api/owners", get(owners))
        .merge(limits::routes())
        .route("/api/link", post(link))
        .route("/metrics", get(metrics::text))
        .route_layer(middleware::from_fn_with_state(
            api.access.clone(),
            access::require,
        ));
    let files = Router::new()
        .route("/", get(dashboard::page))
        .route("/assets/{name}", get(dashboard::asset))
        .route("/icon.svg", get(dashboard::icon))
        .route_layer(middleware::from_fn_with_state(
            api.access.clone(),
            access::require_for_files,
        ));
    Router::new()
        .merge(private)
        .merge(files)
        .route("/open", get(access::open))
        .route("/feed/{secret}", get(feed::show))
        .route("/api/hello", get(hello::hello))
        .fallback(|| async { Problem(StatusCode::NOT_FOUND, "there is nothing here".to_owned()) })
        .layer(middleware::from_fn(access::check_host))
        .layer(middleware::from_fn_with_state(api.clone(), guard::guard))
        .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
        .with_state(api)
}

/// An error, as every client sees it.
#[derive(Debug)]
struct Problem(StatusCode, String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.0, Json(serde_json::json!({ "error": self.1 }))).into_response()
    }
}

impl From<Stopped> for Problem {
    fn from(error: Stopped) -> Self {
        Problem(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        Problem(rejection.status(), rejection.body_text())
    }
}

async fn status(State(api): State<Api>) -> Json<Status> {
    Json(api.handle.status())
}

/// Which domains to list.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DomainQuery {
    /// Only names that begin so.
    pub prefix: String,
    /// Continue after this name.
    pub after: Option<String>,
    /// At most so many.
    pub limit: Option<usize>,
}

async fn domains(
    State(api): State<Api>,
    Query(query): Query<DomainQuery>,
) -> Result<Json<Vec<DomainRow>>, Problem> {
    let limit = query.limit.unwrap_or(100).min(MAX_DOMAINS);
    let rows = api
        .handle
        .domains(&query.prefix, query.after.as_deref(), limit)
        .await;
    rows.map(Json)
        .map_err(|error| Problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

async fn peers(State(api): State<Api>) -> Json<NetworkStatus> {
    Json(api.handle.network().await)
}

/// Whose owners to find.
#[derive(Debug, Serialize, Deserialize)]
pub struct OwnersQuery {
    /// The domain.
    pub domain: String,
    /// The owner and so many holders of copies, together.
    pub count: Option<usize>,
}

async fn owners(
    State(api): State<Api>,
    Query(query): Query<OwnersQuery>,
) -> Result<Json<Vec<PeerId>>, Problem> {
    let domain: Domain = query
        .domain
        .parse()
        .map_err(|error: InvalidDomain| Problem(StatusCode::BAD_REQUEST, error.to_string()))?;
    let count = query.count.unwrap_or(1).clamp(1, MAX_OWNERS);
    let owners = api.handle.owners(&domain, count).await;
    owners
        .map(Json)
        .map_err(|error| Problem(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))
}

async fn pages(State(api): State<Api>) -> Json<Vec<PageEvent>> {
    Json(api.handle.recent_pages())
}

async fn history(State(api): State<Api>) -> Json<Vec<Hour>> {
    Json(api.history.hours())
}

async fn journal(State(api): State<Api>) -> Json<Vec<Note>> {
    Json(api.journal.notes())
}

async fn places(State(api): State<Api>) -> Json<Whereabouts> {
    let network = api.handle.network().await;
    Json(api.places.map(&network, api.handle.own_address()))
}

/// A domain that this volunteer does not want to crawl, with everything below it.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields)]
pub struct RefusalRequest {
    /// The domain.
    pub domain: Domain,
}

async fn refusals(State(api): State<Api>) -> Result<Json<BTreeSet<Domain>>, Problem> {
    Ok(Json(api.handle.refusals().await?))
}

async fn refuse(
    State(api): State<Api>,
    request: Result<Json<RefusalRequest>, JsonRejection>,
) -> Result<Json<BTreeSet<Domain>>, Problem> {
    let Json(RefusalRequest { domain }) = request?;
    let refused = api.handle.refuse(domain.clone()).await?;
    let refused =
        refused.map_err(|why| Problem(StatusCode::INSUFFICIENT_STORAGE, why.to_string()))?;
    api.journal
        .note(Topic::Owner, format!("You refused {domain}"));
    Ok(Json(refused))
}

async fn allow(
    State(api): State<Api>,
    request: Result<Json<RefusalRequest>, JsonRejection>,
) -> Result<Json<BTreeSet<Domain>>, Problem> {
    let Json(RefusalRequest { domain }) = request?;
    let refused = api.handle.allow(domain.clone()).await?;
    let refused =
        refused.map_err(|why| Problem(StatusCode::INSUFFICIENT_STORAGE, why.to_string()))?;
    api.journal
        .note(Topic::Owner, format!("You allowed {domain} again"));
    Ok(Json(refused))
}

/// A path that opens the dashboard once, in a browser that has no token.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct OpenLink {
    /// Path and query below the API's own address.
    pub path: String,
}

async fn link(State(api): State<Api>) -> Json<OpenLink> {
    Json(OpenLink {
        path: api.access.one_time_path(),
    })
}
