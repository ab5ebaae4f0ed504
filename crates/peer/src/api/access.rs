//! Who may use the local API.
//!
//! Programs of this user present the bearer token from the data folder. A browser comes with a link
//! that works once and leaves a cookie that other sites cannot send. The Host header must name
//! loopback (against DNS rebinding) and a foreign Origin is refused, so a page in the user's
//! browser can neither read nor change anything.

use super::{Api, Problem};
use axum::{
    extract::{Query, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    middleware::Next,
    response::{Html, IntoResponse, Redirect, Response},
};
use serde::Deserialize;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};
use subtle::ConstantTimeEq;

const COOKIE: &str = "apoidea";
/// Links that were handed out and not used yet; the oldest goes first.
const MAX_OPEN_LINKS: usize = 16;

/// The secrets that open the API.
#[derive(Debug)]
pub struct Access {
    token: String,
    cookie: String,
    links: Mutex<Vec<String>>,
}

/// The token file cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot keep the API token in {path}: {source}", path = .path.display())]
pub struct TokenError {
    path: PathBuf,
    source: io::Error,
}

impl Access {
    /// Name of the token's file in the data folder.
    pub const TOKEN_FILE: &str = "api-token";

    /// Takes the token from the data folder, or makes one there that only its owner can read.
    pub fn open(folder: &Path) -> Result<Self, TokenError> {
        let path = folder.join(Self::TOKEN_FILE);
        let failed = |source| TokenError {
            path: path.clone(),
            source,
        };
        let token = match fs::read_to_string(&path) {
            Ok(token) if token.trim().len() >= 32 => token.trim().to_owned(),
            Ok(_) => make_token(&path).map_err(failed)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                make_token(&path).map_err(failed)?
            }
            Err(error) => return Err(failed(error)),
        };
        Ok(Access {
            token,
            cookie: random_text(),
            links: Mutex::default(),
        })
    }

    /// A path that lets one browser in, once.
    pub fn one_time_path(&self) -> String {
        let key = random_text();
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.len() == MAX_OPEN_LINKS {
            links.remove(0);
        }
        links.push(key.clone());
        format!("/open?key={key}")
    }

    fn redeem(&self, key: &str) -> bool {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        let before = links.len();
        links.retain(|link| !same(link, key));
        links.len() < before
    }

    pub(super) fn admits(&self, headers: &HeaderMap) -> bool {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &HeaderValue| value.to_str().ok())
        };
        let bearer = text(header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        let cookies = text(header::COOKIE).unwrap_or_default();
        let cookie = cookies
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='));
        let cookie = cookie
            .filter(|(name, _)| *name == COOKIE)
            .map(|(_, value)| value)
            .next();
        bearer.is_some_and(|token| same(token, &self.token))
            || cookie.is_some_and(|value| same(value, &self.cookie))
    }
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

/// 256 random bits as text.
fn random_text() -> String {
    apoidea_model::Key::from_bytes(rand::random()).to_string()
}

fn make_token(path: &Path) -> io::Result<String> {
    let token = random_text();
    let temporary = path.with_extension("tmp");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    io::Write::write_all(&mut file, token.as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    Ok(token)
}

/// Refuses requests that were not meant for this address, or come from another site's page.
pub(super) async fn check_host(
    State(_): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let name = host
        .rsplit_once(':')
        .filter(|_| !host.ends_with(']'))
        .map_or(host, |(name, _)| name);
    if !matches!(name, "127.0.0.1" | "localhost" | "[::1]") {
        let why =
            format!("this is the local API of a peer; {host:?} is not its name, use 127.0.0.1");
        return Problem(StatusCode::MISDIRECTED_REQUEST, why).into_response();
    }
    let own_origin = format!("http://{host}");
    let is_foreign = headers
        .get(header::ORIGIN)
        .is_some_and(|origin| origin.as_bytes() != own_origin.as_bytes());
    // Browsers say so themselves, also of requests that carry no Origin. Another port of this
    // machine is another site.
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let is_foreign = is_foreign || matches!(site, Some(b"cross-site" | b"same-site"));
    if is_foreign {
        return Problem(
            StatusCode::FORBIDDEN,
            "requests of other sites are refused".to_owned(),
        )
        .into_response();
    }
    next.run(request).await
}

/// Lets only requests with the token or the cookie through.
pub(super) async fn require(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    if access.admits(request.headers()) {
        return next.run(request).await;
    }
    if is_for_people(request.headers()) {
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

/// Turns a one-time link into a cookie. A browser that has the cookie already may follow a used
/// link again.
pub(super) async fn open(
    State(api): State<Api>,
    Query(query): Query<OpenQuery>,
    headers: HeaderMap,
) -> Response {
    let is_for_people = is_for_people(&headers);
    let is_known = is_for_people && api.access.admits(&headers);
    if !api.access.redeem(&query.key) && !is_known {
        if is_for_people {
            return (StatusCode::FORBIDDEN, Html(CLOSED_PAGE)).into_response();
        }
        let why =
            "this link was used already or is not valid; `apoidea dashboard` prints a new one";
        return Problem(StatusCode::FORBIDDEN, why.to_owned()).into_response();
    }
    let cookie = format!(
        "{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/",
        api.access.cookie
    );
    let page = query
        .page
        .filter(|page| page.bytes().all(|letter| letter.is_ascii_lowercase()));
    let target = page.map_or("/".to_owned(), |page| format!("/#/{page}"));
    ([(header::SET_COOKIE, cookie)], Redirect::to(&target)).into_response()
}
