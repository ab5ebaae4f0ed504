//! The event stream: the status every second, and pages as they come (server-sent events).

use super::Api;
use axum::{
    extract::State,
    response::sse::{Event, KeepAlive, Sse},
};
use futures::Stream;
use std::convert::Infallible;
use tokio::sync::broadcast::error::RecvError;

/// Sends `status` and `page` events until the client goes away. A client too slow for the pages misses some of them; the
/// status always carries the totals.
pub(super) async fn stream(State(api): State<Api>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (statuses, pages) = (api.handle.watch_status(), api.handle.watch_pages());
    let events =
        futures::stream::unfold((statuses, pages, true), |(mut statuses, mut pages, first)| async move {
            loop {
                if first {
                    let event = json_event("status", &*statuses.borrow_and_update());
                    return Some((Ok(event), (statuses, pages, false)));
                }
                tokio::select! {
                    changed = statuses.changed() => {
                        changed.ok()?;
                        let event = json_event("status", &*statuses.borrow_and_update());
                        return Some((Ok(event), (statuses, pages, false)));
                    }
                    page = pages.recv() => match page {
                        Ok(page) => return Some((Ok(json_event("page", &page)), (statuses, pages, false))),
                        Err(RecvError::Lagged(_)) => continue,
                        Err(RecvError::Closed) => return None,
                    },
                }
            }
        });
    Sse::new(events).keep_alive(KeepAlive::default())
}

fn json_event(name: &str, value: &impl serde::Serialize) -> Event {
    let event = Event::default().event(name);
    event.json_data(value).unwrap_or_else(|_| Event::default().comment("not representable"))
}
