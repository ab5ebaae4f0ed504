//! The connections held: at most one per peer in use, boundedly many in all, the least useful
//! evicted first.
//!
//! When both sides dial at once there are two connections, and both sides must keep the same one.
//! The other one is retired, not closed: requests on it may finish.

use super::{
    Limits,
    link::{Dialler, Link},
    origin::Origin,
};
use apoidea_model::PeerId;
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

/// Two connections made within this time count as made at once; longer than a dial may take.
const AT_ONCE: Duration = Duration::from_secs(10);

/// All connections of one transport.
#[derive(Debug)]
pub(crate) struct Table {
    me: PeerId,
    max: usize,
    max_per_origin: usize,
    links: HashMap<PeerId, Arc<Link>>,
    useful: HashSet<PeerId>,
}

/// The fate of a new connection.
#[derive(Debug)]
pub(crate) enum Placed {
    /// It is the one in use; these made way for it.
    Kept {
        replaced: Option<Arc<Link>>,
        evicted: Option<Arc<Link>>,
    },
    /// This older one stays in use.
    Retired { in_use: Arc<Link> },
    /// There is no room.
    Full,
}

impl Table {
    pub fn new(me: PeerId, limits: &Limits) -> Self {
        Table {
            me,
            max: limits.max_connections.max(1),
            max_per_origin: limits.max_connections_per_origin.max(1),
            links: HashMap::new(),
            useful: HashSet::new(),
        }
    }

    /// The connection in use to a peer, if it is still open.
    pub fn link(&self, peer: PeerId) -> Option<Arc<Link>> {
        self.links
            .get(&peer)
            .filter(|link| link.is_alive())
            .cloned()
    }

    /// All connections in use.
    pub fn links(&self) -> impl Iterator<Item = &Arc<Link>> {
        self.links.values()
    }

    /// Names the peers whose connections are kept alive, in place of those named before.
    pub fn mark_useful(&mut self, peers: impl IntoIterator<Item = PeerId>) {
        self.useful = peers.into_iter().take(Limits::USEFUL).collect();
    }

    /// Whether this peer's connection is to be kept alive.
    pub fn is_useful(&self, peer: PeerId) -> bool {
        self.useful.contains(&peer)
    }

    /// Finds a place for a new connection.
    pub fn place(&mut self, link: Arc<Link>) -> Placed {
        if let Some(old) = self.links.get(&link.peer).filter(|old| old.is_alive()) {
            if self.keeps_older(old, &link) {
                return Placed::Retired {
                    in_use: old.clone(),
                };
            }
            let replaced = self.links.insert(link.peer, link);
            return Placed::Kept {
                replaced,
                evicted: None,
            };
        }
        if link.dialler == Dialler::Them && self.count_from(link.origin()) >= self.max_per_origin {
            return Placed::Full;
        }
        match self.make_room() {
            Ok(evicted) => {
                self.links.insert(link.peer, link);
                Placed::Kept {
                    replaced: None,
                    evicted,
                }
            }
            Err(NoRoom) => Placed::Full,
        }
    }

    /// Forgets a connection that has ended, unless another one has taken its place.
    pub fn remove(&mut self, link: &Arc<Link>) {
        if self
            .links
            .get(&link.peer)
            .is_some_and(|current| Arc::ptr_eq(current, link))
        {
            self.links.remove(&link.peer);
        }
    }

    fn keeps_older(&self, old: &Link, new: &Link) -> bool {
        let rank = |link: &Link| LinkRank {
            dialler: link.dialler,
            incarnation: link.hello.incarnation,
            opened: link.opened,
        };
        let preferred = if self.me < new.peer {
            Dialler::Me
        } else {
            Dialler::Them
        };
        rank(old).outranks(&rank(new), preferred)
    }

    fn count_from(&self, origin: Origin) -> usize {
        let links = self.links.values();
        links.filter(|link| link.origin() == origin).count()
    }

    fn make_room(&mut self) -> Result<Option<Arc<Link>>, NoRoom> {
        if self.links.len() < self.max {
            return Ok(None);
        }
        let candidates = self
            .links
            .values()
            .filter(|link| !self.useful.contains(&link.peer));
        let least = candidates.min_by_key(|link| {
            (
                link.asking_count() > 0,
                std::cmp::Reverse(link.unused_for()),
            )
        });
        let least = least.map(|link| link.peer).ok_or(NoRoom)?;
        Ok(self.links.remove(&least))
    }
}

struct NoRoom;

/// The rank of a connection, if there are two to the same peer.
struct LinkRank {
    dialler: Dialler,
    incarnation: u64,
    opened: Instant,
}

impl LinkRank {
    /// Whether this, the older connection, stays in use. It does only if both sides dialled at once
    /// and it was dialled by the smaller id, which both sides know without asking. Otherwise the
    /// newer one exists because the other side has lost, or never had, the older one.
    fn outranks(&self, newer: &LinkRank, preferred: Dialler) -> bool {
        let restarted = self.incarnation != newer.incarnation;
        let at_once = newer.opened.saturating_duration_since(self.opened) < AT_ONCE;
        at_once && !restarted && self.dialler != newer.dialler && self.dialler == preferred
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(dialler: Dialler, incarnation: u64, opened: Instant) -> LinkRank {
        LinkRank {
            dialler,
            incarnation,
            opened,
        }
    }

    #[test]
    fn when_both_dial_at_once_both_keep_the_same_connection() {
        let now = Instant::now();
        let (mine, theirs) = (rank(Dialler::Me, 1, now), rank(Dialler::Them, 1, now));
        for preferred in [Dialler::Me, Dialler::Them] {
            let kept_if_mine_came_first = if mine.outranks(&theirs, preferred) {
                Dialler::Me
            } else {
                Dialler::Them
            };
            let kept_if_theirs_came_first = if theirs.outranks(&mine, preferred) {
                Dialler::Them
            } else {
                Dialler::Me
            };
            assert_eq!(
                (kept_if_mine_came_first, kept_if_theirs_came_first),
                (preferred, preferred)
            );
        }
    }

    #[test]
    fn a_peer_that_restarted_or_lost_its_connection_gets_a_new_one() {
        let now = Instant::now();
        let old = rank(Dialler::Me, 1, now);
        let restarted = rank(Dialler::Them, 2, now);
        let much_later = rank(Dialler::Them, 1, now + AT_ONCE);
        let dialled_again = rank(Dialler::Me, 1, now);
        for newer in [restarted, much_later, dialled_again] {
            assert!(!old.outranks(&newer, Dialler::Me));
        }
    }
}
