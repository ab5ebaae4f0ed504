//! Who may use the local API.
//!
//! Programs of this user present the bearer token from the data folder. A browser comes with a link
//! that works once. It leaves a cookie, which opens the dashboard's files, and a key, which the
//! dashboard presents as programs do theirs. The Host header must name loopback (against DNS
//! rebinding) and a foreign Origin is refused, so a page in the user's browser can neither read nor
//! change anything.

use super::{
    Api, Problem,
    hello::{Nonce, Proof},
    token::{self, TokenError},
};
use crate::lock::lock;
use axum::{
    extract::{Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use std::{
    path::Path,
    sync::{Arc, Mutex},
};
use subtle::ConstantTimeEq;

/// The one path that a browser asks for without headers of its own.
pub(super) const EVENTS_PATH: &str = "/api/events";
/// Links that were handed out and not used yet; the oldest goes first.
const MAX_OPEN_LINKS: usize = 16;

/// The secrets that open the API.
#[derive(Debug)]
pub struct Access {
    token: String,
    /// Where the API listens.
    port: u16,
    /// Opens the dashboard's files to a browser.
    cookie: String,
    /// Opens the API to the dashboard in that browser.
    key: String,
    links: Mutex<Vec<String>>,
}

impl Access {
    /// Name of the token's file in the data folder.
    pub const TOKEN_FILE: &str = "api-token";

    /// Takes the token from the data folder, or makes one there, for an API at this port.
    pub fn open(folder: &Path, port: u16) -> Result<Self, TokenError> {
        Ok(Access {
            token: token::open(&folder.join(Self::TOKEN_FILE))?,
            port,
            cookie: random_text(),
            key: random_text(),
            links: Mutex::default(),
        })
    }

    /// Shows that this is the peer that knows the token, without telling it.
    pub(super) fn proof(&self, nonce: Nonce) -> Proof {
        Proof::new(&self.token, self.port, nonce)
    }

    /// A path that lets one browser in, once.
    pub fn one_time_path(&self) -> String {
        let key = random_text();
        let mut links = lock(&self.links);
        if links.len() == MAX_OPEN_LINKS {
            links.remove(0);
        }
        links.push(key.clone());
        format!("/open?key={key}")
    }

    fn redeem(&self, key: &str) -> bool {
        let mut links = lock(&self.links);
        let before = links.len();
        links.retain(|link| !same(link, key));
        links.len() < before
    }

    /// Whether a request may learn and change things. The cookie is no reason: a browser sends it to
    /// every port of this machine, so any program that listens on one can have it.
    pub(super) fn admits(&self, request: &Request) -> bool {
        let bearer = text(request.headers(), header::AUTHORIZATION)
            .and_then(|value| value.strip_prefix("Bearer "));
        bearer.is_some_and(|right| same(right, &self.token) || same(right, &self.key))
            || self.admits_event_source(request)
    }

    /// A browser's event source can send no header; it names its key in the query.
    fn admits_event_source(&self, request: &Request) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let key = query.split('&').find_map(|pair| pair.strip_prefix("key="));
        request.uri().path() == EVENTS_PATH && key.is_some_and(|key| same(key, &self.key))
    }

    /// Whether a request may have the dashboard's files. They are the same for everybody.
    pub(super) fn admits_to_files(&self, request: &Request) -> bool {
        self.admits(request) || self.has_cookie(request.headers())
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = text(headers, header::COOKIE).unwrap_or_default();
        let mut cookies = cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        let name = self.cookie_name();
        cookies.any(|(of, value)| of == name && same(value, &self.cookie))
    }

    /// Peers at several ports of this machine share a browser's cookies; each has its own.
    fn cookie_name(&self) -> String {
        format!("apoidea-{}", self.port)
    }
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

pub(super) fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// 256 random bits as text.
pub(super) fn random_text() -> String {
    apoidea_model::Key::from_bytes(rand::random()).to_string()
}

/// Refuses requests that were not meant for this address, or come from another site's page.
pub(super) async fn check_host(request: Request, next: Next) -> Response {
    match misled(request.headers()) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    }
}

/// What is wrong with a request that somebody else's page may have sent.
pub(super) fn misled(headers: &HeaderMap) -> Option<Problem> {
    let host = text(headers, header::HOST).unwrap_or_default();
    let name = host
        .rsplit_once(':')
        .filter(|_| !host.ends_with(']'))
        .map_or(host, |(name, _)| name);
    if !matches!(name, "127.0.0.1" | "localhost" | "[::1]") {
        let why =
            format!("this is the local API of a peer; {host:?} is not its name, use 127.0.0.1");
        return Some(Problem(StatusCode::MISDIRECTED_REQUEST, why));
    }
    let own_origin = format!("http://{host}");
    let is_foreign = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes() != own_origin.as_bytes());
    // Browsers say so themselves, also of requests that carry no Origin. Another port of this
    // machine is another site.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_foreign = is_foreign || matches!(site, Some(b"cross-site" | b"same-site"));
    let why = "requests of other sites are refused";
    is_foreign.then(|| Problem(StatusCode::FORBIDDEN, why.to_owned()))
}

/// Lets only requests with the token or the dashboard's key through.
pub(super) async fn require(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if access.admits(&request) {
        return next.run(request).await;
    }
    closed(request.headers())
}

/// Lets browsers with the cookie through as well.
pub(super) async fn require_for_files(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if access.admits_to_files(&request) {
        return next.run(request).await;
    }
    closed(request.headers())
}

fn closed(headers: &HeaderMap) -> Response {
    if is_for_people(headers) {
        return (StatusCode::UNAUTHORIZED, Html(CLOSED_PAGE)).into_response();
    }
    let why = "not without the token: run `apoidea dashboard` and open the link it prints, \
               or send `Authorization: Bearer` with the text of the file api-token in the data folder";
    Problem(StatusCode::UNAUTHORIZED, why.to_owned()).into_response()
}

/// Is it a browser that wants to show a page?
fn is_for_people(headers: &HeaderMap) -> bool {
    let accepts = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    accepts.is_some_and(|accepts| accepts.contains("text/html"))
}

/// What a browser sees that comes without a cookie.
const CLOSED_PAGE: &str = include_str!("../../../../ui/closed.html");

#[derive(Debug, Deserialize)]
pub(super) struct OpenQuery {
    key: String,
    /// The page of the dashboard to begin with.
    page: Option<String>,
}

/// Turns a one-time link into a cookie for the files and a key for the API. The key is in the part
/// of the address that a browser sends nowhere; the dashboard keeps it where only pages of this
/// very port can read it. A browser that has the cookie already may follow a used link again, and
/// has the key as well.
pub(super) async fn open(
    State(api): State<Api>,
    Query(query): Query<OpenQuery>,
    headers: HeaderMap,
) -> Response {
    let page = query
        .page
        .filter(|page| page.bytes().all(|letter| letter.is_ascii_lowercase()))
        .unwrap_or_default();
    let access = &api.access;
    if access.redeem(&query.key) {
        let cookie = format!(
            "{}={}; HttpOnly; SameSite=Strict; Path=/",
            access.cookie_name(),
            access.cookie
        );
        let target = format!("/#/{page}?key={}", access.key);
        return ([(header::SET_COOKIE, cookie)], Redirect::to(&target)).into_response();
    }
    let is_for_people = is_for_people(&headers);
    if is_for_people && access.has_cookie(&headers) {
        return Redirect::to(&format!("/#/{page}")).into_response();
    }
    if is_for_people {
        return (StatusCode::FORBIDDEN, Html(CLOSED_PAGE)).into_response();
    }
    let why = "this link was used already or is not valid; `apoidea dashboard` prints a new one";
    Problem(StatusCode::FORBIDDEN, why.to_owned()).into_response()
}
