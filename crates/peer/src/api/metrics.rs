//! The status as Prometheus text.

use super::Api;
use crate::report::status::Status;
use axum::{extract::State, http::header, response::IntoResponse};
use serde::Serialize;
use std::{collections::BTreeMap, fmt::Write};

pub(super) async fn text(State(api): State<Api>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, "text/plain; version=0.0.4")],
        render(&api.handle.status()),
    )
}

fn render(status: &Status) -> String {
    let mut out = String::new();
    let totals = &status.totals;
    for (name, kind, help, value) in [
        (
            "pages_total",
            "counter",
            "Pages fetched with their body.",
            totals.pages,
        ),
        (
            "duplicate_pages_total",
            "counter",
            "Pages whose content was known already.",
            totals.duplicates,
        ),
        (
            "received_bytes_total",
            "counter",
            "Bytes received as bodies.",
            totals.bytes,
        ),
        (
            "put_aside_pages_total",
            "counter",
            "Pages that waited for a verdict on the disk.",
            totals.put_aside,
        ),
        (
            "revisits_total",
            "counter",
            "Pages that were visited again.",
            totals.revisits,
        ),
        (
            "not_modified_total",
            "counter",
            "Pages that their servers called unchanged, without sending them.",
            totals.not_modified,
        ),
        (
            "changed_pages_total",
            "counter",
            "Pages that read differently when they were visited again.",
            totals.changed,
        ),
        (
            "saved_bytes_total",
            "counter",
            "Bytes that were not sent, since their pages had not changed.",
            totals.saved_bytes,
        ),
        (
            "lying_sites_total",
            "counter",
            "Sites that called changed pages unchanged.",
            totals.liars,
        ),
        (
            "known_pages",
            "gauge",
            "Pages that are visited again.",
            status.usage.known_pages,
        ),
        (
            "links_total",
            "counter",
            "Links found on pages.",
            totals.links,
        ),
        (
            "admitted_urls_total",
            "counter",
            "URLs admitted to queues.",
            totals.admitted,
        ),
        (
            "disallowed_urls_total",
            "counter",
            "URLs that robots.txt forbids.",
            totals.disallowed,
        ),
        ("queued_urls", "gauge", "URLs waiting.", status.queued),
        (
            "outbox_links",
            "gauge",
            "Links not yet accepted by their owner.",
            status.outbox,
        ),
        ("domains", "gauge", "Domains known.", status.domains),
        (
            "resident_domains",
            "gauge",
            "Domains held in memory.",
            status.usage.resident_domains,
        ),
        ("fetches", "gauge", "Fetches under way.", status.fetching),
        (
            "processing_pages",
            "gauge",
            "Pages under way, from the start of their fetch until they are durable.",
            status.processing,
        ),
        (
            "archive_bytes",
            "gauge",
            "Bytes in the archive.",
            status.usage.archive_bytes,
        ),
        (
            "resident_memory_bytes",
            "gauge",
            "Memory in use by the process.",
            status.usage.memory_bytes,
        ),
    ] {
        let _ = writeln!(
            out,
            "# HELP apoidea_{name} {help}\n# TYPE apoidea_{name} {kind}\napoidea_{name} {value}"
        );
    }
    if let Some(percent) = status.usage.current_percent {
        let _ = writeln!(
            out,
            "# HELP apoidea_current_pages_percent Known pages that have probably not changed since \
             their last visit.\n# TYPE apoidea_current_pages_percent gauge\n\
             apoidea_current_pages_percent {percent:.2}"
        );
    }
    by_reason(
        &mut out,
        "failures_total",
        "Fetches without a page.",
        &totals.failures,
    );
    by_reason(
        &mut out,
        "dropped_urls_total",
        "URLs not admitted.",
        &totals.dropped,
    );
    out
}

fn by_reason(out: &mut String, name: &str, help: &str, counts: &BTreeMap<impl Serialize, u64>) {
    let _ = writeln!(
        out,
        "# HELP apoidea_{name} {help}\n# TYPE apoidea_{name} counter"
    );
    for (reason, count) in counts {
        // A code in quotes, as a label wants it.
        let code = serde_json::to_string(reason).unwrap_or_default();
        let _ = writeln!(out, "apoidea_{name}{{reason={code}}} {count}");
    }
}
