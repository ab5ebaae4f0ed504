//! The API of invites: making one, looking into one, following one.

use super::{Api, Problem, journal::Topic};
use crate::{
    handle::{JoinError, Joined},
    lock::lock,
    qr::Qr,
};
use apoidea_overlay::{AddressPolicy, InvalidInvite, Invite};
use axum::{
    Json, Router,
    extract::{State, rejection::JsonRejection},
    http::StatusCode,
    routing::{get, post},
};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex};

pub(super) fn routes() -> Router<Api> {
    Router::new()
        .route("/api/invite", get(make).post(read).put(open).delete(take))
        .route("/api/join", post(join))
}

/// An invite to this peer's network.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct InviteAnswer {
    /// The link.
    pub link: String,
    /// The same as a QR code, an SVG picture.
    pub svg: String,
    /// The same for a terminal.
    pub text: String,
    /// The network, and the peers that it names.
    pub contents: InviteContents,
}

/// A look into an invite.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct InviteContents {
    /// The network's name.
    pub network: String,
    /// Is it a private network?
    pub is_private: bool,
    /// Is it the network that this peer is in?
    pub is_own: bool,
    /// Addresses of its peers, some for each.
    #[ts(type = "string[][]")]
    pub peers: Vec<Vec<std::net::SocketAddr>>,
}

/// An invite to look into.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields)]
pub struct InviteRequest {
    /// The link, as it was pasted.
    pub link: String,
}

/// An invite that was opened outside the dashboard, as by a click in a mail.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
pub struct OpenedInvite {
    /// The link, if one waits.
    pub link: Option<String>,
}

/// The invite that waits until the volunteer looks at it; a later one takes its place.
pub(super) type Opened = Arc<Mutex<Option<String>>>;

/// An invite to follow.
#[derive(Debug, Serialize, Deserialize, ts_rs::TS)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    /// The link, as it was pasted.
    pub link: String,
    /// Has the volunteer agreed to go to another network?
    #[serde(default)]
    pub agreed: bool,
}

fn contents(api: &Api, invite: &Invite) -> InviteContents {
    InviteContents {
        network: invite.network.to_string(),
        is_private: invite.addresses == AddressPolicy::Private,
        is_own: api.handle.is_of_own_network(invite),
        peers: invite
            .peers
            .iter()
            .map(|peer| peer.addresses.clone())
            .collect(),
    }
}

async fn make(State(api): State<Api>) -> Result<Json<InviteAnswer>, Problem> {
    let invite = api.handle.invite().await;
    if invite.peers.is_empty() {
        return Err(Problem(
            StatusCode::CONFLICT,
            "no address is known at which others could reach this computer or a neighbour of it; \
             name one with network.advertise, or found a private network with `apoidea join \
             --found NAME`"
                .to_owned(),
        ));
    }
    let qr = Qr::new(&invite.to_qr_text())
        .map_err(|error| Problem(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    Ok(Json(InviteAnswer {
        link: invite.to_string(),
        svg: qr.to_svg(),
        text: qr.to_text(),
        contents: contents(&api, &invite),
    }))
}

async fn read(
    State(api): State<Api>,
    request: Result<Json<InviteRequest>, JsonRejection>,
) -> Result<Json<InviteContents>, Problem> {
    let Json(InviteRequest { link }) = request?;
    Ok(Json(contents(&api, &link.parse()?)))
}

async fn open(
    State(api): State<Api>,
    request: Result<Json<InviteRequest>, JsonRejection>,
) -> Result<Json<InviteContents>, Problem> {
    let Json(InviteRequest { link }) = request?;
    let invite: Invite = link.parse()?;
    *lock(&api.opened) = Some(link);
    Ok(Json(contents(&api, &invite)))
}

async fn take(State(api): State<Api>) -> Json<OpenedInvite> {
    let link = lock(&api.opened).take();
    Json(OpenedInvite { link })
}

async fn join(
    State(api): State<Api>,
    request: Result<Json<JoinRequest>, JsonRejection>,
) -> Result<Json<Joined>, Problem> {
    let Json(JoinRequest { link, agreed }) = request?;
    let joined = api.handle.join(&link.parse()?, agreed).await?;
    api.journal
        .note(Topic::Owner, "You followed an invite".to_owned());
    Ok(Json(joined))
}

impl From<InvalidInvite> for Problem {
    fn from(error: InvalidInvite) -> Self {
        Problem(StatusCode::BAD_REQUEST, error.to_string())
    }
}

impl From<JoinError> for Problem {
    fn from(error: JoinError) -> Self {
        let status = match &error {
            JoinError::Invalid(_) | JoinError::Own => StatusCode::BAD_REQUEST,
            JoinError::NotAgreed { .. } => StatusCode::CONFLICT,
            JoinError::Membership(_) => StatusCode::INSUFFICIENT_STORAGE,
        };
        Problem(status, error.to_string())
    }
}
