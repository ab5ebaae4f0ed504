//! The watches on a domain: the peers that want to be told when a page of it changes.
//!
//! They are part of the domain's state. So they move with it, and the next owner goes on telling. A
//! watch is a wish, and costs its domain a visit of a page each day at most: the contract's pace
//! holds, whatever is watched.

use apoidea_model::{PageUrl, PeerId, Time, UrlHash};
use serde::{Deserialize, Serialize};
use std::{cmp::Reverse, time::Duration};

/// Watches on one domain: a visit in a day for each is little for any host.
pub const MAX_WATCHES: usize = 64;
/// Of these, the watches of one peer: a few peers cannot shut out the others.
pub const MAX_WATCHES_OF_ONE: usize = 8;
/// Every watch ends; its peer may begin another.
pub const LONGEST_WATCH: Duration = Duration::from_secs(366 * 24 * 3600);

/// All watches on one domain.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Watches(Vec<Watch>);

/// The wish of one peer to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// The peer that is told.
    pub subscriber: PeerId,
    /// The pages that it wants to hear about.
    pub subject: WatchSubject,
    /// The end.
    pub until: Time,
    /// The peer has heard of all changes up to then.
    pub told: Time,
}

/// The pages that a watch is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WatchSubject {
    /// One page.
    Page(UrlHash),
    /// All pages of the domain. Where the domain is a whole site, those of its other hosts as well.
    Site,
}

/// Why a watch is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WatchRefused {
    /// The domain has as many as it may.
    #[error("the domain has {MAX_WATCHES} watches already")]
    Full,
    /// So has the peer.
    #[error("the peer has {MAX_WATCHES_OF_ONE} watches on the domain already")]
    FullOfOne,
}

impl Watch {
    fn key(&self) -> (PeerId, WatchSubject) {
        (self.subscriber, self.subject)
    }
}

impl Watches {
    /// Begins a watch, or renews one. Returns it as it stands.
    pub fn put(&mut self, watch: Watch, now: Time) -> Result<Watch, WatchRefused> {
        self.0.retain(|known| known.until > now);
        let until = watch.until.min(now + LONGEST_WATCH);
        if let Some(known) = self.0.iter_mut().find(|known| known.key() == watch.key()) {
            known.until = until;
            known.told = known.told.max(watch.told.min(now));
            return Ok(*known);
        }
        if self.0.len() >= MAX_WATCHES {
            return Err(WatchRefused::Full);
        }
        let is_own = |known: &&Watch| known.subscriber == watch.subscriber;
        if self.0.iter().filter(is_own).count() >= MAX_WATCHES_OF_ONE {
            return Err(WatchRefused::FullOfOne);
        }
        // Older changes are no news to it.
        let told = match watch.told {
            Time::ZERO => now,
            told => told.min(now),
        };
        let watch = Watch {
            until,
            told,
            ..watch
        };
        self.0.push(watch);
        Ok(watch)
    }

    /// Ends a watch.
    pub fn end(&mut self, subscriber: PeerId, subject: WatchSubject) {
        self.0.retain(|known| known.key() != (subscriber, subject));
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, also those that have ended.
    pub fn iter(&self) -> impl Iterator<Item = &Watch> {
        self.0.iter()
    }

    /// The watches that a change of this page concerns.
    pub fn on(&self, page: UrlHash, now: Time) -> impl Iterator<Item = &Watch> {
        let concerns = move |watch: &&Watch| match watch.subject {
            WatchSubject::Page(hash) => hash == page,
            WatchSubject::Site => true,
        };
        self.0
            .iter()
            .filter(move |watch| watch.until > now)
            .filter(concerns)
    }

    /// Is a page visited as often as the contract allows? A page that is watched itself is, and of
    /// a site that is watched the first page: all pages of a large site would take the visits of
    /// all others.
    pub fn hurry(&self, page: &PageUrl, now: Time) -> bool {
        let is_first = page.path_and_query() == "/";
        self.on(page.hash(), now)
            .any(|watch| is_first || watch.subject != WatchSubject::Site)
    }

    /// Joins the watches of two replicas. One that had ended in one of them comes back; its peer
    /// ends it again when it is told.
    pub fn join(&mut self, other: &Watches) {
        for watch in &other.0 {
            match self.0.iter_mut().find(|known| known.key() == watch.key()) {
                Some(known) => {
                    known.until = known.until.max(watch.until);
                    known.told = known.told.max(watch.told);
                }
                None => self.0.push(*watch),
            }
        }
        self.keep_most();
    }

    /// Brings the watches of a stranger into bounds.
    pub fn bound(&mut self, now: Time) {
        for watch in &mut self.0 {
            watch.until = watch.until.min(now + LONGEST_WATCH);
            watch.told = watch.told.min(now);
        }
        self.keep_most();
    }

    /// The ones that last longest stay, in an order that does not depend on how they came.
    fn keep_most(&mut self) {
        self.0
            .sort_by_key(|watch| (watch.key(), Reverse(watch.until)));
        self.0.dedup_by_key(|watch| watch.key());
        self.0
            .sort_by_key(|watch| (Reverse(watch.until), watch.key()));
        self.0.truncate(MAX_WATCHES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    const NOW: Time = Time::from_millis(1_700_000_000_000);
    const DAY: Duration = Duration::from_secs(86_400);

    fn peer(number: u8) -> PeerId {
        PeerId::at(Key::hash([number]))
    }

    fn page(text: &str) -> PageUrl {
        PageUrl::parse(&format!("http://a.test/{text}")).unwrap()
    }

    fn watch(number: u8, subject: WatchSubject, days: u32) -> Watch {
        Watch {
            subscriber: peer(number),
            subject,
            until: NOW + days * DAY,
            told: Time::ZERO,
        }
    }

    fn on(text: &str) -> WatchSubject {
        WatchSubject::Page(page(text).hash())
    }

    #[test]
    fn a_watch_concerns_its_page_until_it_ends() {
        let mut watches = Watches::default();
        let taken = watches.put(watch(1, on("x"), 2), NOW).unwrap();
        assert_eq!(taken.told, NOW, "older changes are no news");
        let count = |text: &str, at| watches.on(page(text).hash(), at).count();
        assert_eq!((count("x", NOW), count("y", NOW)), (1, 0));
        assert_eq!(count("x", NOW + 2 * DAY), 0);
        assert!(watches.hurry(&page("x"), NOW) && !watches.hurry(&page("y"), NOW));
        watches.end(peer(2), on("x"));
        assert!(!watches.is_empty(), "of another peer");
        watches.end(peer(1), on("x"));
        assert!(watches.is_empty());
    }

    #[test]
    fn a_site_is_watched_as_a_whole_and_hurries_its_first_page() {
        let mut watches = Watches::default();
        watches.put(watch(1, WatchSubject::Site, 2), NOW).unwrap();
        assert_eq!(watches.on(page("x").hash(), NOW).count(), 1);
        assert!(watches.hurry(&page(""), NOW) && !watches.hurry(&page("x"), NOW));
    }

    #[test]
    fn neither_one_peer_nor_many_can_fill_a_domain_and_places_become_free() {
        let mut watches = Watches::default();
        for number in 0..MAX_WATCHES_OF_ONE {
            let subject = on(&number.to_string());
            watches.put(watch(1, subject, 1), NOW).unwrap();
        }
        let more = watches.put(watch(1, on("more"), 1), NOW);
        assert_eq!(more, Err(WatchRefused::FullOfOne));
        for number in 0..u8::try_from(MAX_WATCHES - MAX_WATCHES_OF_ONE).unwrap() {
            watches.put(watch(2 + number, on("x"), 1), NOW).unwrap();
        }
        let more = watches.put(watch(99, on("x"), 1), NOW);
        assert_eq!(more, Err(WatchRefused::Full));
        assert!(watches.put(watch(2, on("x"), 3), NOW).is_ok(), "a renewal");
        assert!(watches.put(watch(99, on("x"), 9), NOW + DAY).is_ok());
        assert_eq!(watches.iter().count(), 2, "the others have ended");
    }

    #[test]
    fn no_watch_lasts_for_ever_whatever_a_stranger_says() {
        let mut watches = Watches::default();
        let mut endless = watch(1, WatchSubject::Site, 1);
        endless.until = Time::NEVER;
        assert_eq!(
            watches.put(endless, NOW).unwrap().until,
            NOW + LONGEST_WATCH
        );
        let (until, told) = (Time::NEVER, Time::NEVER);
        let many = (0..200).map(|number| Watch {
            until,
            told,
            ..watch(number, WatchSubject::Site, 1)
        });
        let mut strange = Watches(many.collect());
        strange.bound(NOW);
        assert_eq!(strange.iter().count(), MAX_WATCHES);
        let is_bounded = |watch: &Watch| watch.until == NOW + LONGEST_WATCH && watch.told == NOW;
        assert!(strange.iter().all(is_bounded));
    }

    #[test]
    fn replicas_join_to_the_same_watches_in_any_order() {
        let of = |numbers: std::ops::Range<u8>, days| {
            Watches(numbers.map(|n| watch(n, on("x"), days)).collect())
        };
        let (a, b) = (of(0..50, 3), of(40..90, 5));
        let (mut one, mut two) = (a.clone(), b.clone());
        one.join(&b);
        two.join(&a);
        assert_eq!(one, two);
        assert_eq!(one.iter().count(), MAX_WATCHES);
        let later = |number| one.iter().find(|watch| watch.subscriber == peer(number));
        assert_eq!(later(45).unwrap().until, NOW + 5 * DAY);
    }

    #[test]
    fn a_domain_without_watches_pays_one_byte() {
        assert_eq!(postcard::to_stdvec(&Watches::default()).unwrap(), [0]);
        let mut watches = Watches::default();
        watches.put(watch(1, on("x"), 2), NOW).unwrap();
        let bytes = postcard::to_stdvec(&watches).unwrap().len();
        assert!(bytes <= 60, "{bytes}");
    }
}
