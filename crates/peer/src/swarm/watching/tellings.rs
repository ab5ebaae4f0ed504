//! The changes that peers which watch have not heard of yet, on this owner's disk.

use super::message::{MAX_TELLINGS, Telling};
use apoidea_crawl::WatchSubject;
use apoidea_model::{Domain, PeerId, Time};
use apoidea_store::{Commit, ReadError, Store};
use serde::{Deserialize, Serialize};

/// Names of tellings begin so, the peer and the time follow.
const PREFIX: &str = "telling ";
/// Changes that wait for one peer; the oldest make room.
const MAX_FOR_ONE: usize = 64;
/// Changes that wait in all: some megabytes.
const MAX_IN_ALL: usize = 1024;

/// A change that waits, with the watch that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Waiting {
    domain: Domain,
    subject: WatchSubject,
    telling: Telling,
}

fn prefix(peer: PeerId) -> String {
    format!("{PREFIX}{peer} ")
}

fn name(peer: PeerId, time: Time) -> String {
    format!("{}{:016x}", prefix(peer), time.as_millis())
}

fn waiting_for(store: &Store, peer: PeerId) -> Result<Vec<(String, Waiting)>, ReadError> {
    let all = store.values(&prefix(peer), MAX_FOR_ONE + 1)?;
    let read = |(name, bytes): (String, Vec<u8>)| Some((name, postcard::from_bytes(&bytes).ok()?));
    Ok(all.into_iter().filter_map(read).collect())
}

/// Lets a change wait until a peer hears of it.
pub(crate) fn put(
    store: &Store,
    (peer, domain, subject): (PeerId, &Domain, WatchSubject),
    telling: Telling,
    commit: &mut Commit,
) -> Result<(), ReadError> {
    let known = waiting_for(store, peer)?;
    if known.len() >= MAX_FOR_ONE {
        commit.remove_value(&known[0].0);
    } else if store.values(PREFIX, MAX_IN_ALL)?.len() >= MAX_IN_ALL {
        return Ok(());
    }
    let time = telling.time;
    let waiting = Waiting {
        domain: domain.clone(),
        subject,
        telling,
    };
    let bytes = postcard::to_stdvec(&waiting).expect("names and texts always serialise");
    commit.set_value(&name(peer, time), &bytes);
    Ok(())
}

/// Forgets the changes of a watch up to this time.
pub(crate) fn forget(
    store: &Store,
    (peer, domain, subject): (PeerId, &Domain, WatchSubject),
    until: Time,
    commit: &mut Commit,
) -> Result<(), ReadError> {
    for (name, waiting) in waiting_for(store, peer)? {
        let is_of_it = waiting.domain == *domain && waiting.subject == subject;
        if is_of_it && waiting.telling.time <= until {
            commit.remove_value(&name);
        }
    }
    Ok(())
}

/// The oldest changes of a watch after this time, and whether there are more.
pub(crate) fn after(
    store: &Store,
    (peer, domain, subject): (PeerId, &Domain, WatchSubject),
    told: Time,
) -> Result<(Vec<Telling>, bool), ReadError> {
    let mut all: Vec<Telling> = waiting_for(store, peer)?
        .into_iter()
        .map(|(_, waiting)| waiting)
        .filter(|waiting| waiting.domain == *domain && waiting.subject == subject)
        .map(|waiting| waiting.telling)
        .filter(|telling| telling.time > told)
        .collect();
    let has_more = all.len() > MAX_TELLINGS;
    all.truncate(MAX_TELLINGS);
    Ok((all, has_more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swarm::{testing::peer, watching::message::News};
    use apoidea_model::PageUrl;

    fn telling(millis: u64) -> Telling {
        Telling {
            time: Time::from_millis(millis),
            url: PageUrl::parse("http://a.test/").unwrap(),
            news: News::Gone,
        }
    }

    #[test]
    fn changes_wait_in_order_for_their_own_watch_and_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path(), Default::default()).unwrap();
        let domain: Domain = "a.test".parse().unwrap();
        let watch = (peer(1), &domain, WatchSubject::Site);
        for millis in 0..100 {
            let mut commit = Commit::new();
            put(&store, watch, telling(1000 + millis), &mut commit).unwrap();
            store.apply(&commit).unwrap();
        }
        let (first, has_more) = after(&store, watch, Time::ZERO).unwrap();
        assert_eq!((first.len(), has_more), (MAX_TELLINGS, true));
        assert_eq!(first[0].time, Time::from_millis(1036), "the last 64");
        let other = (peer(2), &domain, WatchSubject::Site);
        assert_eq!(after(&store, other, Time::ZERO).unwrap().0, []);
        let mut commit = Commit::new();
        forget(&store, watch, Time::from_millis(1098), &mut commit).unwrap();
        store.apply(&commit).unwrap();
        let left = after(&store, watch, Time::ZERO).unwrap();
        assert_eq!(left, (vec![telling(1099)], false));
    }
}
