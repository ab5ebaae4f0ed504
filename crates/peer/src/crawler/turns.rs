//! Turns at addresses that other peers may ask, too.

use super::{Crawler, Finding};
use crate::{
    clock::now,
    swarm::addresses::asking::{Grants, TurnAsker},
};
use apoidea_model::Time;

impl Crawler {
    /// Asks the clocks of the addresses at which hosts wait.
    pub(super) fn ask_for_turns(&mut self) {
        let asked = now();
        let wishes = self.parts.frontier.address_wishes(asked);
        if wishes.is_empty() {
            return;
        }
        let swarm = &self.parts.swarm;
        let asker = TurnAsker {
            overlay: swarm.overlay.clone(),
            clocks: swarm.clocks.clone(),
        };
        let findings = swarm.findings.clone();
        tokio::spawn(async move {
            let grants = asker.ask(wishes).await;
            // A peer that has stopped takes no more findings.
            let _ = findings.send(Finding::Granted { asked, grants });
        });
    }

    /// The clocks have answered.
    pub(super) fn take_grants(&mut self, asked: Time, grants: Grants) {
        for (address, grant) in grants {
            self.parts.frontier.granted(address, grant, asked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        crawler::testing::{TestCrawler, url},
        swarm::addresses::message::TURNS,
    };
    use std::time::Duration;

    const SHARED: [&str; 2] = [
        "crawl.private_address_delay_ms=2000",
        "crawl.share_private_addresses=true",
    ];

    /// Two hosts at one address: the one was asked for its robots.txt, the other waits.
    async fn at_one_address(settings: &[&str]) -> TestCrawler {
        let mut crawler = TestCrawler::in_swarm_with(settings);
        crawler.take_allowance();
        let hosts = [crawler.own(0), crawler.own(1)];
        crawler.admit(&hosts.each_ref().map(|host| url(host, 0)));
        for host in &hosts {
            crawler.resolve(host).await;
        }
        crawler
    }

    fn wait(crawler: &TestCrawler) -> Duration {
        crawler.parts.frontier.next_timeout().since(now())
    }

    fn questions(crawler: &TestCrawler) -> usize {
        let requests = crawler.ring.requests.lock().unwrap();
        let turns = requests.iter().filter(|(_, kind, _)| *kind == TURNS);
        turns.count()
    }

    #[tokio::test]
    async fn a_second_request_waits_for_the_clock_of_the_address() {
        let mut crawler = at_one_address(&SHARED).await;
        assert!(wait(&crawler) > Duration::from_secs(30), "it is slow alone");
        crawler.ask_for_turns();
        crawler.take_turns().await;
        // The other peer does not answer; this one keeps the clock, too.
        assert_eq!(questions(&crawler), 1);
        assert!(wait(&crawler) <= Duration::from_secs(2));
        crawler.ask_for_turns();
        crawler.take_turns().await;
        assert_eq!(questions(&crawler), 1, "the grant is valid");
    }

    #[tokio::test]
    async fn the_addresses_of_an_operators_network_are_nobodys_business() {
        let mut crawler = at_one_address(&SHARED[..1]).await;
        assert!(wait(&crawler) <= Duration::from_secs(2));
        crawler.ask_for_turns();
        crawler.take_turns().await;
        assert_eq!(questions(&crawler), 0);
    }
}
