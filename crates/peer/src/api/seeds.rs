//! The API of seeds: URLs for the crawl now, and the list where a crawl that knows nothing begins.

use super::{Api, Problem, journal::Topic};
use crate::{config::SeedListError, handle::SeedReceipt, volunteer::start_list::StartSeeds};
use apoidea_model::PageUrl;
use axum::{
    Json, Router,
    extract::{State, rejection::JsonRejection},
    http::StatusCode,
    routing::get,
};
use serde::{Deserialize, Serialize};

pub(super) fn routes() -> Router<Api> {
    Router::new().route(
        "/api/seeds",
        get(start_seeds).post(seed).put(change).delete(reset),
    )
}

/// URLs to begin from.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields)]
pub struct SeedRequest {
    /// As typed by a person; each is checked on its own.
    pub urls: Vec<String>,
}

/// What became of the seeds.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct SeedAnswer {
    /// Accepted and durable (seen ones count too: they are in the crawl already).
    pub accepted: u64,
    /// Refused, each with the reason.
    pub refused: Vec<RefusedSeed>,
}

/// A seed that cannot be crawled.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct RefusedSeed {
    /// As given.
    pub url: String,
    /// What is wrong with it.
    pub why: String,
}

async fn seed(
    State(api): State<Api>,
    request: Result<Json<SeedRequest>, JsonRejection>,
) -> Result<Json<SeedAnswer>, Problem> {
    let Json(request) = request?;
    let mut answer = SeedAnswer {
        accepted: 0,
        refused: Vec::new(),
    };
    let mut urls = Vec::new();
    for text in request.urls {
        match PageUrl::parse(&text) {
            Ok(url) => urls.push(url),
            Err(error) => answer.refused.push(RefusedSeed {
                url: text,
                why: error.to_string(),
            }),
        }
    }
    let seeded = api.handle.seed(urls).await?;
    let SeedReceipt { accepted, refused } =
        seeded.map_err(|why| Problem(StatusCode::INSUFFICIENT_STORAGE, why.to_string()))?;
    answer.accepted = accepted;
    api.journal.note(
        Topic::Owner,
        format!("You added {accepted} URLs to begin from"),
    );
    answer
        .refused
        .extend(refused.into_iter().map(|(url, why)| RefusedSeed {
            url: url.into(),
            why,
        }));
    Ok(Json(answer))
}

/// Another list where a crawl that knows nothing begins.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields)]
pub struct StartSeedsRequest {
    /// One URL a line; lines that begin with `#` are for people.
    pub text: String,
}

async fn start_seeds(State(api): State<Api>) -> Result<Json<StartSeeds>, Problem> {
    Ok(Json(api.handle.start_seeds()?))
}

async fn change(
    State(api): State<Api>,
    request: Result<Json<StartSeedsRequest>, JsonRejection>,
) -> Result<Json<StartSeeds>, Problem> {
    let Json(StartSeedsRequest { text }) = request?;
    let changed = api.handle.change_start_seeds(Some(&text))?;
    api.journal
        .note(Topic::Owner, "You changed where a crawl begins".to_owned());
    Ok(Json(changed))
}

async fn reset(State(api): State<Api>) -> Result<Json<StartSeeds>, Problem> {
    let given = api.handle.change_start_seeds(None)?;
    api.journal.note(
        Topic::Owner,
        "You took your list of where a crawl begins back".to_owned(),
    );
    Ok(Json(given))
}

impl From<SeedListError> for Problem {
    fn from(error: SeedListError) -> Self {
        let status = match &error {
            SeedListError::Line { .. } | SeedListError::TooMany { .. } => StatusCode::BAD_REQUEST,
            SeedListError::Unreadable { .. } | SeedListError::Unwritable { .. } => {
                StatusCode::INSUFFICIENT_STORAGE
            }
        };
        Problem(status, error.to_string())
    }
}
