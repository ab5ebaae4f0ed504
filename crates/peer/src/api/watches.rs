//! The API of watched pages: the volunteer's watches, and what has changed.

use super::{
    Api, Problem,
    journal::{Journal, Topic},
};
use crate::{
    clock::now,
    handle::{Handle, WatchRefusal},
    report::words,
    swarm::watching::watchlist::{OwnWatch, USUAL_WATCH, WatchError, WatchTarget, WatchedChange},
};
use apoidea_model::Time;
use axum::{
    Json, Router,
    extract::{State, rejection::JsonRejection},
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast::error::RecvError;

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/watches", get(list).post(begin).delete(end))
        .route("/api/changes", get(changes))
        .route("/api/feed", post(renew_feed))
}

/// Something to watch.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields)]
pub struct WatchRequest {
    /// The URL of a page, or the name of a site.
    #[ts(type = "string")]
    pub target: WatchTarget,
    /// The end; in 90 days if none is named.
    #[serde(default)]
    pub until: Option<Time>,
}

/// Everything that is watched.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct WatchList {
    /// The watches.
    pub watches: Vec<OwnWatch>,
    /// The path of the feed of changes, below the API's own address. Whoever knows it can read the
    /// feed, and nothing else.
    pub feed: String,
}

async fn list(State(api): State<Api>) -> Json<WatchList> {
    listed(&api)
}

fn listed(api: &Api) -> Json<WatchList> {
    Json(WatchList {
        watches: api.handle.watches(),
        feed: api.feed.path(),
    })
}

async fn begin(
    State(api): State<Api>,
    request: Result<Json<WatchRequest>, JsonRejection>,
) -> Result<Json<WatchList>, Problem> {
    let Json(WatchRequest { target, until }) = request?;
    let until = until.unwrap_or_else(|| now() + USUAL_WATCH);
    api.handle.watch(target.clone(), until).await?;
    api.journal
        .note(Topic::Owner, format!("You watch {target} from now on"));
    Ok(listed(&api))
}

async fn end(
    State(api): State<Api>,
    request: Result<Json<WatchRequest>, JsonRejection>,
) -> Result<Json<WatchList>, Problem> {
    let Json(WatchRequest { target, .. }) = request?;
    if !api.handle.end_watch(target.clone()).await? {
        let why = format!("{target} is not watched");
        return Err(Problem(StatusCode::NOT_FOUND, why));
    }
    api.journal
        .note(Topic::Owner, format!("You watch {target} no more"));
    Ok(listed(&api))
}

async fn changes(State(api): State<Api>) -> Result<Json<Vec<WatchedChange>>, Problem> {
    let changes = api.handle.watched_changes();
    changes
        .map(Json)
        .map_err(|error| Problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}

/// Gives the feed another address; the old one shows nothing any more.
async fn renew_feed(State(api): State<Api>) -> Result<Json<WatchList>, Problem> {
    let renewed = api.feed.renew();
    renewed.map_err(|error| Problem(StatusCode::INSUFFICIENT_STORAGE, error.to_string()))?;
    Ok(listed(&api))
}

/// Notes in the activity log what changes, until the peer ends.
pub(super) async fn note_changes(handle: Handle, journal: Journal) {
    let mut changes = handle.follow_changes();
    loop {
        match changes.recv().await {
            Ok(change) => journal.note(Topic::Watch, words::change(&change)),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return,
        }
    }
}

impl From<WatchRefusal> for Problem {
    fn from(refusal: WatchRefusal) -> Self {
        let status = match &refusal {
            WatchRefusal::List(WatchError::Store(_) | WatchError::Read(_))
            | WatchRefusal::Command(_) => StatusCode::INSUFFICIENT_STORAGE,
            WatchRefusal::Stopped(_) => StatusCode::SERVICE_UNAVAILABLE,
            WatchRefusal::List(_) | WatchRefusal::Crawl(_) => StatusCode::BAD_REQUEST,
        };
        Problem(status, refusal.to_string())
    }
}
