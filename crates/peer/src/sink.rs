//! The way out of a part: it reports its news without knowing who takes them.

use std::{fmt, sync::Arc};

/// Takes the news of a part; clones lead to the same place.
pub(crate) struct Sink<N>(Arc<dyn Fn(N) + Send + Sync>);

impl<N> Sink<N> {
    /// News go to this function.
    pub(crate) fn new(take: impl Fn(N) + Send + Sync + 'static) -> Self {
        Sink(Arc::new(take))
    }

    /// Reports. A peer that has stopped takes no more news.
    pub(crate) fn tell(&self, news: N) {
        (self.0)(news);
    }
}

impl<N> Clone for Sink<N> {
    fn clone(&self) -> Self {
        Sink(self.0.clone())
    }
}

impl<N> fmt::Debug for Sink<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}
