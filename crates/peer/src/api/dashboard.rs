//! The dashboard's files, embedded in the program so that every peer has one.

use super::PAGE_HEADERS;
use axum::{
    http::header,
    response::{Html, IntoResponse},
};

const PAGE: &str = include_str!("../../../../ui/index.html");
const STYLE: &str = include_str!("../../../../ui/style.css");
const SCRIPT: &str = include_str!("../../../../ui/app.js");
const ICON: &str = include_str!("../../../../assets/icon.svg");

pub(super) async fn page() -> impl IntoResponse {
    (PAGE_HEADERS, Html(PAGE))
}

pub(super) async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css; charset=utf-8")], STYLE)
}

pub(super) async fn script() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/javascript; charset=utf-8")], SCRIPT)
}

pub(super) async fn icon() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "image/svg+xml")], ICON)
}
