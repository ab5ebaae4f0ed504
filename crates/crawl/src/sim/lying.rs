//! Peers that lie in every way at once. As owners they acknowledge links and drop them. As helpers
//! they tell results of fetches that they did not do. As replicas they say that they hold what they
//! were told, and have nothing to hand over. Of content they say that it is known.

use super::{draw, loans::Job, telling::Tell, world::News, world::World};
use apoidea_model::{Key, PageId};

impl World {
    /// Chooses the liars. The peer that the crawl begins at is none of them.
    pub(super) fn choose_liars(&mut self, share: f64, first: usize) {
        let peers = self.agents.len();
        let mut drawn: Vec<usize> = (0..peers).filter(|peer| *peer != first).collect();
        drawn.sort_by_key(|peer| draw(self.seed ^ 17, *peer as u64));
        let count = (share * peers as f64).round() as usize;
        for peer in drawn.into_iter().take(count) {
            self.agents[peer].is_liar = true;
            self.usage.liars += 1;
        }
    }

    /// A liar that was sent links says that they are safe.
    pub(super) fn drop_links(&mut self, from: usize, batch: u64) {
        self.soon(self.way(), News::Acknowledged(from, batch));
    }

    /// A liar that was told changes says that it holds them.
    pub(super) fn hold_nothing(&mut self, tell: &Tell) {
        self.soon(self.way(), News::Held(tell.owner, tell.number));
    }

    /// A liar takes a loan, and tells a result without a request.
    pub(super) fn pretend(&mut self, job: Job) {
        self.soon(self.way(), News::Taken(job.clone()));
        let later = self.way() + self.way();
        self.soon(later, News::Result(job));
    }

    /// A page's content is asked about. A liar calls it known; the keeper that it names cannot show
    /// it, so it is kept all the same, for one question more.
    pub(super) fn ask_about_content(&mut self, page: &PageId) {
        let key = Key::hash(format!("{} {:?}", page.domain, page.slot));
        let owner = self.owner_of(key);
        self.usage.called_known += u64::from(self.agents[owner].is_liar);
    }
}
