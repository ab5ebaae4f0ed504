//! The helpers that keep pages of this peer's domains, and whether they do.
//!
//! A helper says of a page that it is in its archive. Only a peer that has the same body can see
//! whether that is so. So the check waits until this peer visits the page again and finds it
//! unchanged: it costs the site nothing. A page that is not there is kept here from then on.

use crate::{page::content::Shown, swarm::trust::book::TrustBook};
use apoidea_crawl::Matter;
use apoidea_model::{PageUrl, PeerId};
use apoidea_store::{ArchivePlace, Store};
use std::sync::Arc;

/// Checks helpers, as chance has it.
pub(crate) struct Keepers {
    pub store: Store,
    pub book: Arc<TrustBook>,
}

impl Keepers {
    /// The helper that says that it keeps this page, if it is to be checked now.
    pub(crate) fn to_check(&self, page: &PageUrl) -> Option<PeerId> {
        let record = self.store.page(&page.domain(), page.hash()).ok()??;
        match record.archived?.place {
            ArchivePlace::Peer(helper) if self.book.wants_check(helper) => Some(helper),
            _ => None,
        }
    }

    /// Takes in what a helper has shown. Silence is no lie.
    pub(crate) fn note(&self, helper: PeerId, shown: Shown) {
        let missing = match shown {
            Shown::Body => 0,
            Shown::Nothing => 1,
            Shown::Silence => return,
        };
        self.book.note(helper, Matter::Pages, 1, missing);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::testing::{TestPeer, peer};
    use apoidea_model::{ChangeHistory, ContentHash, ContentMark, Target, Time, Validators};
    use apoidea_store::{Archived, Commit, PageRecord, PageStanding};

    const HELPER: u8 = 0x60;

    fn page(number: u32) -> PageUrl {
        PageUrl::parse(&format!("http://a.test/{number}")).unwrap()
    }

    fn record(number: u32, place: ArchivePlace) -> PageRecord {
        let time = Time::from_millis(1);
        PageRecord {
            url: page(number),
            visited: time,
            due: None,
            validators: Validators::default(),
            content: ContentMark::of(&ContentHash::of_body(b"x")),
            history: ChangeHistory::FIRST,
            archived: Some(Archived { time, place }),
            standing: PageStanding::There,
            depth: 0,
            target: Target::Page,
        }
    }

    fn keepers() -> (TestPeer, Keepers) {
        let (me, _) = TestPeer::new([peer(0x20), peer(HELPER)]);
        let places = [ArchivePlace::Peer(peer(HELPER)), ArchivePlace::Elsewhere];
        let mut commit = Commit::new();
        for (number, place) in (0..).zip(places) {
            commit.put_page(&page(number).domain(), &record(number, place));
        }
        me.store.apply(&commit).unwrap();
        let keepers = me.keepers();
        (me, keepers)
    }

    #[test]
    fn only_helpers_of_this_peer_are_checked() {
        let (_me, keepers) = keepers();
        assert_eq!(keepers.to_check(&page(0)), Some(peer(HELPER)));
        assert_eq!(keepers.to_check(&page(1)), None, "another owner's helper");
        assert_eq!(keepers.to_check(&page(2)), None, "an unknown page");
    }

    #[test]
    fn a_helper_that_cannot_show_its_pages_is_distrusted_and_a_silent_one_is_not() {
        let (_me, keepers) = keepers();
        (0..9).for_each(|_| keepers.note(peer(HELPER), Shown::Silence));
        assert!(keepers.book.standings().is_empty());
        (0..2).for_each(|_| keepers.note(peer(HELPER), Shown::Nothing));
        assert!(!keepers.book.is_distrusted(peer(HELPER)));
        keepers.note(peer(HELPER), Shown::Nothing);
        assert!(keepers.book.is_distrusted(peer(HELPER)));
    }

    #[test]
    fn a_helper_that_shows_its_pages_is_checked_ever_more_rarely() {
        let (_me, keepers) = keepers();
        (0..1000).for_each(|_| keepers.note(peer(HELPER), Shown::Body));
        let checks = (0..1000).filter(|_| keepers.to_check(&page(0)).is_some());
        let checks = checks.count();
        assert!((1..100).contains(&checks), "{checks}");
    }
}
