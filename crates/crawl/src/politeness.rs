//! The pace at which a host and an address may be asked.
//!
//! Towards global addresses every number is a constant of the good-citizen contract: no setting
//! makes a volunteer impolite. Only addresses in a network that the operator listed as their own
//! may be asked faster.

use crate::robots::Robots;
use apoidea_model::{AddressRange, is_global};
use std::{net::IpAddr, time::Duration};

/// Least time between two requests to one host.
pub const HOST_DELAY: Duration = Duration::from_secs(5);
/// The pause after a fetch is this many times the fetch, so that a slow host gets more of it.
pub const FETCH_TIME_FACTOR: u32 = 5;
/// A slow host is not punished beyond this.
pub const HOST_DELAY_MAX: Duration = Duration::from_secs(60);
/// Least time between two requests to one address, whatever the host.
pub const ADDRESS_DELAY: Duration = Duration::from_secs(2);
/// Least wait after 429 or 503.
pub const BACK_OFF: Duration = Duration::from_secs(300);
/// Longest wait after 429 or 503 that is honoured: a `Retry-After` of a year is a mistake.
pub const BACK_OFF_MAX: Duration = DAY;
/// For so long the delay of a host stays doubled after 429 or 503.
pub const DOUBLED_FOR: Duration = DAY;
/// The delay doubles at most so often within that time: 2⁴ × 60 s is 16 minutes.
pub const DOUBLINGS_MAX: u8 = 4;
/// After so many failures in a row the host rests.
pub const FAILURES_UNTIL_REST: u8 = 5;
/// The rest of a host that keeps failing.
pub const REST: Duration = DAY;
/// After so many rests without one answer between them the host is given up: a week.
pub const RESTS_UNTIL_STOP: u8 = 7;
/// After so many 403s in a row the host is stopped. A directory or two that visitors may not list
/// is no run.
pub const FORBIDDEN_UNTIL_STOP: u8 = 10;
/// Wait before a robots.txt that did not answer is asked for again; doubles up to a day.
pub const ROBOTS_RETRY: Duration = BACK_OFF;
/// Wait after a name did not resolve; doubles until the host rests.
pub const RESOLVE_RETRY: Duration = Duration::from_secs(3600);

/// Names for private use: RFC 6761 §6.2, RFC 6762, RFC 8375, and ICANN's decision on `internal`.
const PRIVATE_SUFFIXES: [&str; 4] = ["test", "local", "home.arpa", "internal"];

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The pace for networks of the operator's own: an intranet, a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivatePace {
    /// The networks. Global addresses are never part of one, whatever this says.
    pub networks: Vec<AddressRange>,
    /// Takes the place of [`HOST_DELAY`].
    pub delay: Duration,
    /// Takes the place of [`ADDRESS_DELAY`].
    pub per_address: Duration,
    /// Takes the place of [`BACK_OFF`]; rests and retries shrink in proportion.
    pub back_off: Duration,
}

impl Default for PrivatePace {
    /// No private networks, and the global pace.
    fn default() -> Self {
        PrivatePace {
            networks: Vec::new(),
            delay: HOST_DELAY,
            per_address: ADDRESS_DELAY,
            back_off: BACK_OFF,
        }
    }
}

/// The pace that holds for one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    delay: Duration,
    per_address: Duration,
    back_off: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Pace::GLOBAL
    }
}

impl Pace {
    /// For all addresses of the Internet, and for hosts whose address is not known.
    pub const GLOBAL: Pace = Pace {
        delay: HOST_DELAY,
        per_address: ADDRESS_DELAY,
        back_off: BACK_OFF,
    };

    /// The pace for an address, which is the global one unless it lies in a private network.
    pub fn of(address: IpAddr, private: &PrivatePace) -> Self {
        let is_private =
            !is_global(address) && private.networks.iter().any(|net| net.contains(address));
        if !is_private {
            return Pace::GLOBAL;
        }
        Pace {
            delay: private.delay,
            per_address: private.per_address,
            back_off: private.back_off,
        }
    }

    /// The pace for a name that has no address: the global one, unless there are private networks
    /// and the name is one of those that the Internet never has.
    pub fn of_name(name: &str, private: &PrivatePace) -> Self {
        let is_inside = |suffix: &str| {
            name.strip_suffix(suffix)
                .is_some_and(|rest| rest.ends_with('.'))
        };
        if private.networks.is_empty() || !PRIVATE_SUFFIXES.into_iter().any(is_inside) {
            return Pace::GLOBAL;
        }
        Pace {
            delay: private.delay,
            per_address: private.per_address,
            back_off: private.back_off,
        }
    }

    /// The pause after a fetch that took so long. `Crawl-delay` is what the host itself asks for.
    pub fn pause(self, took: Duration, crawl_delay: Option<Duration>) -> Duration {
        let fair = if self.delay.is_zero() {
            Duration::ZERO
        } else {
            took.saturating_mul(FETCH_TIME_FACTOR)
        };
        let asked = crawl_delay.unwrap_or_default().min(Robots::MAX_CRAWL_DELAY);
        fair.clamp(self.delay, HOST_DELAY_MAX.max(self.delay))
            .max(asked)
    }

    /// Least time between two requests to one host.
    pub fn per_host(self) -> Duration {
        self.delay
    }

    /// Least time between two requests to the address.
    pub fn per_address(self) -> Duration {
        self.per_address
    }

    /// The wait after 429 or 503.
    pub fn back_off(self, retry_after: Option<Duration>) -> Duration {
        retry_after
            .unwrap_or_default()
            .clamp(self.back_off, BACK_OFF_MAX.max(self.back_off))
    }

    /// A wait of the contract (a rest, a retry), shortened where back-off is shortened.
    pub fn scale(self, wait: Duration) -> Duration {
        if self.back_off >= BACK_OFF {
            return wait;
        }
        let millis =
            wait.as_millis().saturating_mul(self.back_off.as_millis()) / BACK_OFF.as_millis();
        Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn only_names_that_the_internet_never_has_follow_the_private_pace() {
        let pace = |name: &str, networks: &[&str]| {
            let private = PrivatePace {
                back_off: SECOND,
                ..private(networks)
            };
            Pace::of_name(name, &private).scale(BACK_OFF)
        };
        assert_eq!(pace("a.test", &["10.0.0.0/8"]), SECOND);
        assert_eq!(pace("printer.home.arpa", &["10.0.0.0/8"]), SECOND);
        for global in ["a.example", "test", "atest", "a.test.example"] {
            assert_eq!(pace(global, &["10.0.0.0/8"]), BACK_OFF, "{global}");
        }
        assert_eq!(pace("a.test", &[]), BACK_OFF);
    }

    fn private(networks: &[&str]) -> PrivatePace {
        PrivatePace {
            networks: networks.iter().map(|net| net.parse().unwrap()).collect(),
            delay: Duration::ZERO,
            per_address: Duration::ZERO,
            back_off: 3 * SECOND,
        }
    }

    #[test]
    fn a_slow_host_gets_a_longer_pause_within_bounds() {
        let pause = |took: u64| {
            Pace::GLOBAL
                .pause(Duration::from_millis(took), None)
                .as_millis()
        };
        assert_eq!(
            [pause(0), pause(1000), pause(1001), pause(3000)],
            [5000, 5000, 5005, 15_000]
        );
        assert_eq!(pause(60_000), 60_000);
    }

    #[test]
    fn a_crawl_delay_lengthens_the_pause_up_to_its_limit() {
        let pause = |delay: u64| {
            Pace::GLOBAL
                .pause(SECOND, Some(Duration::from_secs(delay)))
                .as_secs()
        };
        assert_eq!(
            [pause(0), pause(1), pause(120), pause(300), pause(86_400)],
            [5, 5, 120, 300, 300]
        );
    }

    #[test]
    fn retry_after_is_honoured_between_five_minutes_and_a_day() {
        let wait = |asked: Option<u64>| {
            Pace::GLOBAL
                .back_off(asked.map(Duration::from_secs))
                .as_secs()
        };
        assert_eq!(
            [wait(None), wait(Some(1)), wait(Some(1000))],
            [300, 300, 1000]
        );
        assert_eq!(wait(Some(10_000_000)), 86_400);
    }

    #[test]
    fn no_setting_hurries_a_global_address() {
        let everything = private(&["0.0.0.0/0", "::/0", "10.0.0.0/8"]);
        assert_eq!(
            Pace::of("93.184.216.34".parse().unwrap(), &everything),
            Pace::GLOBAL
        );
        assert_eq!(
            Pace::of("2606:4700::1".parse().unwrap(), &everything),
            Pace::GLOBAL
        );
        assert_eq!(
            Pace::of("10.1.2.3".parse().unwrap(), &private(&["192.168.0.0/16"])),
            Pace::GLOBAL
        );
    }

    #[test]
    fn a_private_network_has_its_own_pace() {
        let pace = Pace::of("10.1.2.3".parse().unwrap(), &private(&["10.0.0.0/8"]));
        assert_eq!(pace.pause(SECOND, None), Duration::ZERO);
        assert_eq!(
            pace.pause(SECOND, Some(SECOND)),
            SECOND,
            "what a host asks for is honoured everywhere"
        );
        assert_eq!(pace.scale(REST), Duration::from_secs(864));
        assert_eq!(pace.back_off(None), 3 * SECOND);
        assert_eq!(pace.back_off(Some(30 * SECOND)), 30 * SECOND);
    }
}
