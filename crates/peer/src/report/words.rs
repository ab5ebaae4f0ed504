//! The peer's enumerations as English, for the command line, the tray and the journal. The dashboard
//! has its own in `ui/src/logic/words.ts`. No other place makes sentences of them, and no program
//! has to read a sentence.

use crate::{
    network::NetworkState,
    report::{
        outcome::PageOutcome,
        status::{Attention, DomainStatus, RobotsStatus, StopReason},
    },
};
use apoidea_crawl::DropReason;
use apoidea_model::Time;
use std::time::Duration;

/// What becomes of a domain.
pub fn domain(status: &DomainStatus, now: Time) -> String {
    match status {
        DomainStatus::Crawling => "crawling".to_owned(),
        DomainStatus::Done => "done".to_owned(),
        DomainStatus::Rests { until } => {
            format!("rests for {} min", until.since(now).as_secs() / 60)
        }
        DomainStatus::Stopped { why } => format!("stopped: {}", stopped(*why)),
        DomainStatus::Refused => "refused by you".to_owned(),
        DomainStatus::Helped => "helped: its owner crawls it".to_owned(),
    }
}

fn stopped(why: StopReason) -> &'static str {
    match why {
        StopReason::Forbidden => "it forbids us",
        StopReason::Challenged => "it wants to see a human",
        StopReason::Unreachable => "no answer for a week",
    }
}

/// What is known of a domain's robots.txt.
pub fn robots(status: &RobotsStatus, now: Time) -> String {
    match status {
        RobotsStatus::NotAsked => "not asked yet".to_owned(),
        RobotsStatus::Silent { until } => {
            let minutes = until.since(now).as_secs().div_ceil(60);
            format!("does not answer; asked again in {minutes} min")
        }
        RobotsStatus::Known { delay_ms: None } => "known".to_owned(),
        RobotsStatus::Known {
            delay_ms: Some(delay),
        } => {
            let delay = Duration::from_millis(*delay).as_secs_f32();
            format!("known, asks for {delay} s between requests")
        }
        RobotsStatus::LeftToOwner => "heeded by its owner".to_owned(),
    }
}

/// How a URL's fetch ended.
pub fn outcome(outcome: PageOutcome) -> String {
    let words = match outcome {
        PageOutcome::Status(status) => return format!("status {status}"),
        PageOutcome::Page => "page",
        PageOutcome::Duplicate => "duplicate",
        PageOutcome::Unchanged => "unchanged",
        PageOutcome::Sitemap => "sitemap",
        PageOutcome::Redirect => "redirect",
        PageOutcome::NotModified => "not modified",
        PageOutcome::Throttled => "throttled",
        PageOutcome::Challenge => "challenge",
        PageOutcome::NameNotResolved => "name not resolved",
        PageOutcome::NoConnection => "no connection",
        PageOutcome::NoSecureConnection => "no secure connection",
        PageOutcome::AnswerBrokeOff => "answer broke off",
        PageOutcome::NoAnswerInTime => "no answer in time",
        PageOutcome::ServerError => "server error",
        PageOutcome::RedirectLoop => "redirect loop",
        PageOutcome::PrivateAddress => "private address",
        PageOutcome::NotAPage => "not a page",
    };
    words.to_owned()
}

/// Why a URL was not admitted.
pub fn dropped(reason: DropReason) -> &'static str {
    match reason {
        DropReason::OtherDomain => "other domain",
        DropReason::UnknownCrawl => "unknown crawl",
        DropReason::OutOfScope => "out of scope",
        DropReason::Refused => "refused domain",
        DropReason::Trap => "trap",
        DropReason::TooDeep => "too deep",
        DropReason::Seen => "seen",
        DropReason::Exhausted => "domain has had its share",
        DropReason::Overflow => "queue full",
        DropReason::CrowdedSite => "site has too many hosts",
    }
}

/// A peer's place in the network.
pub fn network(state: &NetworkState) -> String {
    match state {
        NetworkState::Outside => "outside the ring".to_owned(),
        NetworkState::Joining => "joining".to_owned(),
        NetworkState::Alone => "alone".to_owned(),
        NetworkState::Member { peers } => format!("member of ~{peers} peers"),
        NetworkState::Fixed { peers, down } => {
            format!("member of a fixed network of {peers} peers, {down} of them down")
        }
    }
}

/// What needs the volunteer.
pub fn attention(attention: &Attention) -> String {
    match attention {
        Attention::Store { error } => format!("Cannot read or write what is remembered: {error}"),
        Attention::Archive { error } => {
            format!("Cannot write: {error}. Nothing is lost; crawling goes on when it works again.")
        }
        Attention::WriterEnded => "The writing thread has ended; restart the peer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_000_000);

    #[test]
    fn times_are_told_from_now_on() {
        let until = NOW + Duration::from_secs(150);
        let rests = domain(&DomainStatus::Rests { until }, NOW);
        assert_eq!(rests, "rests for 2 min");
        assert_eq!(
            robots(&RobotsStatus::Silent { until }, NOW),
            "does not answer; asked again in 3 min"
        );
    }

    #[test]
    fn a_delay_is_told_in_seconds() {
        let known = RobotsStatus::Known {
            delay_ms: Some(2500),
        };
        assert_eq!(
            robots(&known, NOW),
            "known, asks for 2.5 s between requests"
        );
    }

    #[test]
    fn the_place_in_the_network_is_told_with_its_numbers() {
        let member = NetworkState::Member { peers: 12 };
        assert_eq!(network(&member), "member of ~12 peers");
        let fixed = NetworkState::Fixed { peers: 8, down: 1 };
        let told = "member of a fixed network of 8 peers, 1 of them down";
        assert_eq!(network(&fixed), told);
    }

    #[test]
    fn trouble_is_told_with_its_cause() {
        let error = "No space left on device".to_owned();
        assert!(attention(&Attention::Archive { error }).contains("No space left"));
    }
}
