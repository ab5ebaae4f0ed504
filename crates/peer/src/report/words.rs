//! The peer's enumerations as English, for the command line, the tray and the journal. The dashboard
//! has its own in `ui/src/logic/words.ts`. No other place makes sentences of them, and no program
//! has to read a sentence.

use crate::{
    network::NetworkState,
    report::{
        outcome::PageOutcome,
        status::{Attention, DomainStatus, Missing, RobotsStatus, StopReason},
    },
    swarm::{
        trust::standing::{LieKind, Standing},
        watching::watchlist::{ChangeKind, OwnWatch, WatchStanding, WatchTarget, WatchedChange},
    },
};
use apoidea_crawl::DropReason;
use apoidea_model::Time;
use apoidea_overlay::{EntryState, EntryStatus, EntryWay, Reachability};
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

/// A change of something that is watched.
pub fn change(change: &WatchedChange) -> String {
    let url = &change.url;
    match change.kind {
        ChangeKind::Changed => format!("{url} has changed"),
        ChangeKind::ReadsNow => format!("{url} has changed; this is how it begins now"),
        ChangeKind::Unseen => format!("{url} has changed; its text is not known here"),
        ChangeKind::Gone => format!("{url} is not there any more"),
    }
}

/// The same for a small notice, with the first words that are new.
pub fn notice(watched: &WatchedChange) -> String {
    const MAX_CHARS: usize = 120;
    let mut text = change(watched);
    if let Some(line) = watched.added.lines().next() {
        text.push_str(": ");
        text.extend(line.chars().take(MAX_CHARS));
        text.push_str(if line.chars().count() > MAX_CHARS {
            "…"
        } else {
            ""
        });
    }
    text
}

/// How a watch stands.
pub fn watch(watch: &OwnWatch, now: Time) -> String {
    match (watch.standing, &watch.target) {
        (WatchStanding::Asking, _) => "its owner has not answered yet".to_owned(),
        (WatchStanding::Full, _) => "too many peers watch this site; tried again".to_owned(),
        (WatchStanding::Unknown, _) => "not crawled yet".to_owned(),
        (WatchStanding::Kept, WatchTarget::Site(_)) => "watched".to_owned(),
        (WatchStanding::Kept, WatchTarget::Page(_)) if watch.visited == Time::ZERO => {
            "watched; not visited yet".to_owned()
        }
        (WatchStanding::Kept, WatchTarget::Page(_)) => {
            let hours = now.since(watch.visited).as_secs() / 3600;
            match hours {
                0 => "watched; visited within the last hour".to_owned(),
                hours => format!("watched; visited {hours} h ago"),
            }
        }
    }
}

/// What was found of another peer's work, and what it led to.
pub fn standing(standing: &Standing, now: Time) -> String {
    let Standing { checked, right, .. } = standing;
    let mut words = format!("checked {}, right {}", times(*checked), times(*right));
    if let Some(lie) = standing.lies.last() {
        let ago = duration(now.since(lie.at));
        let what = match lie.kind {
            LieKind::DroppedLinks => format!("dropped {}", count(lie.count, "link")),
            LieKind::LostPages => format!("could not show {}", count(lie.count, "page")),
        };
        words += &format!("; {what} {ago} ago");
    }
    if let Some(until) = standing.distrusted_until {
        words += &format!("; distrusted for {}", duration(until.since(now)));
    }
    words
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn count(count: u32, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn duration(duration: Duration) -> String {
    let minutes = duration.as_secs().div_ceil(60);
    match minutes {
        0..=119 => format!("{minutes} min"),
        120..=2879 => format!("{} h", minutes / 60),
        minutes => format!("{} days", minutes / 1440),
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

/// Whether others can reach this peer.
pub fn reachability(found: Reachability) -> &'static str {
    match found {
        Reachability::Open => "others can reach it",
        Reachability::Unknown => "it is not known yet whether others can reach it",
        Reachability::NotReachable => {
            "others cannot reach it: a router or a firewall is in the way"
        }
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

/// What a peer lacks.
pub fn missing(missing: Missing) -> String {
    match missing {
        Missing::Internet => "No Internet connection; it goes on when there is one".to_owned(),
        Missing::NameServer => {
            "The name servers do not answer; it goes on when one does".to_owned()
        }
        Missing::Touch => {
            "Cut off from the other peers, which may crawl in its place; it waits for them a while"
                .to_owned()
        }
        Missing::Peers { ways: 1 } => "Crawling alone: nobody found yet, 1 way tried".to_owned(),
        Missing::Peers { ways } => {
            format!("Crawling alone: nobody found yet, {ways} ways tried")
        }
    }
}

/// A way into the ring.
pub fn entry_way(way: EntryWay) -> &'static str {
    match way {
        EntryWay::Remembered => "peers of the last run",
        EntryWay::Configured => "entry points of the settings",
        EntryWay::Name => "the program's own entry point",
        EntryWay::LocalNetwork => "local network",
        EntryWay::Rendezvous => "BitTorrent's DHT",
    }
}

/// How a way into the ring went.
pub fn entry(status: &EntryStatus) -> String {
    let EntryStatus {
        asked, answered, ..
    } = status;
    match status.state {
        EntryState::Off => "off".to_owned(),
        EntryState::Nothing if status.way == EntryWay::Rendezvous => "nobody is there".to_owned(),
        EntryState::Nothing => "none known".to_owned(),
        EntryState::NotNeeded => "not needed so far".to_owned(),
        EntryState::Trying => "being tried".to_owned(),
        EntryState::Silent if *asked == 0 => "nobody answers".to_owned(),
        EntryState::Silent => format!("none of {asked} answers"),
        EntryState::Closed => "cannot be reached".to_owned(),
        EntryState::Found => format!("{answered} of {asked} answered"),
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
    use crate::swarm::trust::standing::FoundLie;

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
    fn a_standing_says_what_was_found_and_for_how_long_it_counts() {
        let mut peer = Standing {
            peer: apoidea_model::PeerId::at(apoidea_model::Key::hash("a peer")),
            checked: 412,
            right: 412,
            distrusted_until: None,
            lies: Vec::new(),
        };
        assert_eq!(standing(&peer, NOW), "checked 412 times, right 412 times");
        peer.right = 1;
        peer.distrusted_until = Some(NOW + Duration::from_secs(3600));
        peer.lies.push(FoundLie {
            kind: LieKind::DroppedLinks,
            count: 37,
            at: NOW - Duration::from_secs(300),
        });
        assert_eq!(
            standing(&peer, NOW),
            "checked 412 times, right once; dropped 37 links 5 min ago; distrusted for 60 min"
        );
        peer.lies[0].kind = LieKind::LostPages;
        let words = standing(&peer, NOW);
        assert!(
            words.contains("could not show 37 pages 5 min ago"),
            "{words}"
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
