//! The frontier's limits.

use super::Clock;
use crate::PrivatePace;

/// The frontier's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrontierConfig {
    /// Fetches at the same time, each of another host.
    pub fetches: usize,
    /// Domains in memory; all others wait on disk.
    pub resident: usize,
    /// URLs of a resident domain in memory; all others wait on disk.
    pub window: usize,
    /// The pace in the operator's own networks.
    pub private: PrivatePace,
    /// The keeper of the clocks of addresses in those networks. Global addresses have the ring's
    /// whenever there are other peers.
    pub private_clock: Clock,
}

impl Default for FrontierConfig {
    fn default() -> Self {
        FrontierConfig {
            // Saturates a home connection with pages of usual size.
            fetches: 32,
            // At one page in 5 s each these could give 800 pages/s, far more than a volunteer's
            // line takes. With full windows of usual URLs they take 4.4 KB each, 18 MB in all
            // (measured).
            resident: 4096,
            // A minute and a half of work, so that the disk is asked rarely.
            window: 16,
            private: PrivatePace::default(),
            // Addresses of an operator's network mean nothing to others, and are not their business.
            private_clock: Clock::Own,
        }
    }
}
