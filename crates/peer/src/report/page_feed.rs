//! Pages as they come, for those who watch.

use crate::lock::lock;
use crate::report::status::PageEvent;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};
use tokio::sync::broadcast;

/// Recent pages kept for those who come later.
const RECENT_PAGES: usize = 100;
/// Pages that a slow listener may lag behind before it misses some.
const PAGE_BACKLOG: usize = 256;

/// Pages as they come, and the last ones; clones are the same feed.
#[derive(Clone)]
pub(crate) struct PageFeed {
    live: broadcast::Sender<PageEvent>,
    recent: Arc<Mutex<VecDeque<PageEvent>>>,
}

impl PageFeed {
    pub(crate) fn new() -> Self {
        PageFeed {
            live: broadcast::Sender::new(PAGE_BACKLOG),
            recent: Arc::default(),
        }
    }

    /// Shows a page to all who watch.
    pub(crate) fn publish(&self, page: PageEvent) {
        let mut recent = lock(&self.recent);
        if recent.len() == RECENT_PAGES {
            recent.pop_front();
        }
        recent.push_back(page.clone());
        // Nobody listening is the usual case.
        let _ = self.live.send(page);
    }

    /// Follows the pages.
    pub(crate) fn watch(&self) -> broadcast::Receiver<PageEvent> {
        self.live.subscribe()
    }

    /// The last pages, oldest first.
    pub(crate) fn recent(&self) -> Vec<PageEvent> {
        let recent = lock(&self.recent);
        recent.iter().cloned().collect()
    }
}
