//! What the volunteer wants, asked and set: preferences, pause, snooze, the end.

use super::{Api, Problem};
use crate::{
    report::status::Status,
    volunteer::{preferences_file::PreferencesError, steward::ChangeError},
};
use apoidea_governor::{Preferences, Range, SnoozeFor};
use axum::{
    Json, Router,
    extract::{State, rejection::JsonRejection},
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/preferences", get(preferences).put(change))
        .route("/api/preferences/ranges", get(ranges))
        .route("/api/pause", post(pause))
        .route("/api/resume", post(resume))
        .route("/api/snooze", post(snooze))
        .route("/api/quit", post(quit))
}

impl From<PreferencesError> for Problem {
    fn from(error: PreferencesError) -> Self {
        Problem(StatusCode::INSUFFICIENT_STORAGE, error.to_string())
    }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(refused) => {
                Problem(StatusCode::UNPROCESSABLE_ENTITY, refused.to_string())
            }
            ChangeError::Unsaved(error) => error.into(),
        }
    }
}

async fn preferences(State(api): State<Api>) -> Json<Preferences> {
    Json(api.handle.preferences())
}

async fn ranges() -> Json<&'static [Range]> {
    Json(apoidea_governor::ranges())
}

/// Fields that are not named stay as they are; a preset replaces all of them first.
async fn change(
    State(api): State<Api>,
    changes: Result<Json<Map<String, Value>>, JsonRejection>,
) -> Result<Json<Preferences>, Problem> {
    let Json(changes) = changes?;
    Ok(Json(api.handle.change_preferences(&changes).await?))
}

/// The answer is on its way before the program that runs the peer stops it.
async fn quit(State(api): State<Api>) -> Json<Status> {
    api.handle.ask_to_quit();
    Json(api.handle.status())
}

async fn pause(State(api): State<Api>) -> Result<Json<Status>, Problem> {
    api.handle.pause().await?;
    Ok(Json(api.handle.status()))
}

async fn resume(State(api): State<Api>) -> Result<Json<Status>, Problem> {
    api.handle.resume().await?;
    Ok(Json(api.handle.status()))
}

/// How long to pause.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnoozeRequest {
    /// "15m", "1h", "until tomorrow", "until resumed".
    #[serde(rename = "for")]
    pub length: SnoozeFor,
}

async fn snooze(
    State(api): State<Api>,
    request: Result<Json<SnoozeRequest>, JsonRejection>,
) -> Result<Json<Status>, Problem> {
    let Json(request) = request?;
    api.handle.snooze(request.length).await?;
    Ok(Json(api.handle.status()))
}
