//! The number of hosts that one site may have: names below a site cost nothing, so a page can link
//! to any number of them.
//!
//! A host that was never asked, or never answered, counts against its site. Each one that did
//! answer makes room for one more. So a large site grows as fast as it is crawled, and made-up
//! names come to an end.

use crate::DomainState;

/// The hosts of one site that a peer knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SiteHosts {
    /// Hosts that never answered.
    pub silent: u64,
    /// Hosts that did.
    pub answered: u64,
}

impl SiteHosts {
    /// Hosts that a site may have before one has answered: more than nearly every organisation
    /// names, and less than an hour of one address at its pace.
    pub const SILENT_MAX: u64 = 1000;
    /// Hosts that a site has at most. The largest sites let their members have names of their own;
    /// most of those are public suffixes, where each member is a site. It bounds the time that
    /// counting takes, to a tenth of a second.
    pub const MAX: u64 = 20_000;

    /// Counts a host.
    pub fn count(&mut self, state: &DomainState) {
        match state.counters.fetched {
            0 => self.silent += 1,
            _ => self.answered += 1,
        }
    }

    /// May another host be added?
    pub fn has_room(&self) -> bool {
        self.silent < Self::SILENT_MAX + self.answered && !self.is_at_its_end()
    }

    /// Will there never be room again, whatever answers?
    pub fn is_at_its_end(&self) -> bool {
        self.silent + self.answered >= Self::MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_has_room_for_some_silent_hosts_and_one_more_for_each_that_answers() {
        let hosts = |silent, answered| SiteHosts { silent, answered };
        let most = SiteHosts::SILENT_MAX;
        assert!(hosts(0, 0).has_room() && hosts(most - 1, 0).has_room());
        assert!(!hosts(most, 0).has_room());
        assert!(hosts(most, 1).has_room() && !hosts(most + 1, 1).has_room());
        assert!(hosts(0, SiteHosts::MAX - 1).has_room());
        assert!(!hosts(0, SiteHosts::MAX).has_room());
        assert!(hosts(0, SiteHosts::MAX).is_at_its_end());
    }

    #[test]
    fn a_host_counts_as_answered_once_it_has() {
        let (mut hosts, mut state) = (SiteHosts::default(), DomainState::default());
        hosts.count(&state);
        state.counters.failed = 3;
        hosts.count(&state);
        state.counters.fetched = 1;
        hosts.count(&state);
        assert_eq!((hosts.silent, hosts.answered), (2, 1));
    }
}
