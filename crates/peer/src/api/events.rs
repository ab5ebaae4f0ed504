//! The event stream: the status every second; pages, notes and changes as they come (server-sent
//! events).

use super::{Api, Problem};
use crate::{
    api::journal::Note,
    report::status::{PageEvent, Status},
    swarm::watching::watchlist::WatchedChange,
};
use axum::{
    extract::State,
    http::StatusCode,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::Stream;
use std::convert::Infallible;
use tokio::sync::{
    OwnedSemaphorePermit,
    broadcast::{self, error::RecvError},
    watch,
};

/// What one client follows.
struct Following {
    statuses: watch::Receiver<Status>,
    pages: broadcast::Receiver<PageEvent>,
    notes: broadcast::Receiver<Note>,
    changes: broadcast::Receiver<WatchedChange>,
    is_new: bool,
    _place: OwnedSemaphorePermit,
}

/// Sends `status`, `page`, `note` and `change` events until the client goes away. A client too slow for the
/// pages misses some of them; the status always carries the totals.
pub(super) async fn stream(
    State(api): State<Api>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Problem> {
    let place = api.guard.streams.clone().try_acquire_owned().map_err(|_| {
        Problem(
            StatusCode::TOO_MANY_REQUESTS,
            "too many programs follow the events already".to_owned(),
        )
    })?;
    let following = Following {
        statuses: api.handle.watch_status(),
        pages: api.handle.watch_pages(),
        notes: api.journal.watch(),
        changes: api.handle.follow_changes(),
        is_new: true,
        _place: place,
    };
    let events = futures::stream::unfold(following, async |mut following| {
        let event = following.next().await?;
        Some((Ok(event), following))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

impl Following {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.is_new) {
            return Some(json_event("status", &*self.statuses.borrow_and_update()));
        }
        loop {
            let event = tokio::select! {
                changed = self.statuses.changed() => {
                    changed.ok()?;
                    return Some(json_event("status", &*self.statuses.borrow_and_update()));
                }
                page = self.pages.recv() => page.map(|page| json_event("page", &page)),
                note = self.notes.recv() => note.map(|note| json_event("note", &note)),
                change = self.changes.recv() => change.map(|change| json_event("change", &change)),
            };
            match event {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

fn json_event(name: &str, value: &impl serde::Serialize) -> Event {
    let event = Event::default().event(name);
    event
        .json_data(value)
        .unwrap_or_else(|_| Event::default().comment("not representable"))
}
