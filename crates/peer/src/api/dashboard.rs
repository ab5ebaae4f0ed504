//! The dashboard's files, embedded in the program so that every peer has one.

use super::Problem;
use axum::{
    body::Body,
    extract::Path,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use rust_embed::Embed;

/// What `ui` builds; see `build.rs`.
#[derive(Embed)]
#[folder = "$OUT_DIR/site"]
struct Site;

const ICON: &str = include_str!("../../../../assets/icon.svg");

pub(super) async fn page() -> Response {
    serve("index.html", "no-cache")
}

/// Their names carry a hash of their content: what was loaded once stays right.
pub(super) async fn asset(Path(name): Path<String>) -> Response {
    serve(
        &format!("assets/{name}"),
        "private, max-age=31536000, immutable",
    )
}

pub(super) async fn icon() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], ICON)
}

fn serve(path: &str, keep: &'static str) -> Response {
    let Some(file) = Site::get(path) else {
        return Problem(StatusCode::NOT_FOUND, "there is nothing here".to_owned()).into_response();
    };
    let headers = [
        (header::CONTENT_TYPE, content_type(path)),
        (header::CACHE_CONTROL, keep),
    ];
    (headers, Body::from(file.data)).into_response()
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        _ => "application/octet-stream",
    }
}
