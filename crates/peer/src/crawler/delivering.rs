//! Delivering links to the queues of their domains, here or at other owners.

use super::{
    Crawler,
    admitter::{AdmitContext, AdmitError, Admitter},
    command::{CommandError, SeedReceipt},
};
use crate::{clock::now, swarm::links::message::LinksAnswer};
use apoidea_crawl::{DOMAIN_COST, Sent};
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, PageUrl, PeerId, Target, Time, UrlHash};
use apoidea_store::Commit;
use std::collections::HashSet;
use tokio::sync::oneshot;

impl Crawler {
    /// Sends links that were found at a domain to the peers that own theirs. Links of this peer's
    /// own arc are admitted at once; all others wait in the outbox, durable with the next commit.
    pub(super) fn deliver(
        &mut self,
        crawl: CrawlId,
        links: Vec<Link>,
        found_at: Option<&Domain>,
        now: Time,
    ) -> Result<Sent, AdmitError> {
        let links = links.into_iter().map(without_session);
        let (mine, others): (Vec<Link>, Vec<Link>) = self.divide(links);
        // Links that enter the queue of the domain itself are told together with the page.
        let leads_on = mine
            .iter()
            .any(|link| found_at.is_some_and(|domain| link.url.host() != domain.as_str()));
        let round = if leads_on {
            self.ledger.next_round()
        } else {
            0
        };
        let mut mine = mine.into_iter().peekable();
        while mine.peek().is_some() {
            let links = mine.by_ref().take(LinkBatch::MAX_LINKS).collect();
            self.admit(LinkBatch { crawl, links }, None, now)?;
        }
        Ok(Sent {
            record: self.send_out(crawl, others, now)?,
            round,
        })
    }

    /// The links that this peer may admit itself, and the rest.
    fn divide(&self, links: impl Iterator<Item = Link>) -> (Vec<Link>, Vec<Link>) {
        let tenancy = &self.parts.swarm.tenancy;
        let mut last: Option<(String, bool)> = None;
        links.partition(|link| {
            let host = link.url.host();
            match &last {
                Some((known, is_mine)) if known == host => *is_mine,
                _ => {
                    let is_mine = tenancy.is_owned(link.url.domain().key());
                    last = Some((host.to_owned(), is_mine));
                    is_mine
                }
            }
        })
    }

    /// Puts links for others into the outbox; those that nobody would take are dropped here. Gives
    /// the number of their record.
    pub(super) fn send_out(
        &mut self,
        crawl: CrawlId,
        links: Vec<Link>,
        now: Time,
    ) -> Result<Option<u64>, AdmitError> {
        let is_wanted = |link: &Link| self.parts.admitter.may_be_wanted(&link.url, now);
        let links: Vec<Link> = links.into_iter().filter(is_wanted).collect();
        if links.is_empty() {
            return Ok(None);
        }
        let number = self.outbox.next;
        self.outbox.next += 1;
        let mut commit = Commit::new();
        commit.put_outbox(number, crawl, &links);
        self.parts.store.apply(&commit)?;
        let recent = self.parts.work.processor.recent();
        links.iter().for_each(|link| recent.insert(&link.url));
        self.parts.swarm.courier.notify_one();
        self.save_soon();
        Ok(Some(number))
    }

    /// Collects what was dropped although it was new, if anybody wants to know.
    fn admit(
        &mut self,
        batch: LinkBatch,
        unkept: Option<&mut HashSet<UrlHash>>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let crawl = batch.crawl;
        self.with_admitter(crawl, unkept, |admitter, context| {
            admitter.admit(batch, context, now)
        })
    }

    /// Lets the admitter change queues.
    pub(super) fn with_admitter(
        &mut self,
        crawl: CrawlId,
        unkept: Option<&mut HashSet<UrlHash>>,
        change: impl FnOnce(&mut Admitter, &mut AdmitContext<'_>) -> Result<(), AdmitError>,
    ) -> Result<(), AdmitError> {
        let mut context = AdmitContext {
            crawl,
            frontier: &mut self.parts.frontier,
            parking: &mut self.parking,
            totals: &mut self.totals,
            recent: self.parts.work.processor.recent(),
            touched: &mut self.dirty,
            ledger: &mut self.ledger,
            owned: &mut self.owned,
            unkept,
        };
        let changed = change(&mut self.parts.admitter, &mut context);
        self.save_soon();
        changed
    }

    /// Admits links that another peer sent. They are acknowledged once they are durable here and at
    /// the replicas. A sender that has filled its share of the queue keeps its links for now.
    pub(super) fn admit_foreign(
        &mut self,
        sender: PeerId,
        batch: LinkBatch,
        reply: oneshot::Sender<LinksAnswer>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let (mut links, mut taken, mut declined) = (Vec::new(), Vec::new(), Vec::new());
        let room = match sender == self.parts.swarm.me {
            true => usize::MAX,
            false => {
                usize::try_from(self.parts.admitter.room_for(sender, now)).unwrap_or(usize::MAX)
            }
        };
        for (place, link) in (0..).zip(batch.links) {
            if links.len() < room && self.parts.swarm.tenancy.is_owned(link.url.domain().key()) {
                taken.push((place, link.url.hash()));
                links.push(link);
            } else {
                declined.push(place);
            }
        }
        self.totals.received += links.len() as u64;
        let crawl = batch.crawl;
        let (urls, domains) = (self.totals.admitted, self.owned);
        let mut unkept = HashSet::new();
        self.admit(LinkBatch { crawl, links }, Some(&mut unkept), now)?;
        let is_dropped = |(_, hash): &(u16, UrlHash)| unkept.contains(hash);
        let dropped = taken.into_iter().filter(is_dropped);
        let dropped = dropped.map(|(place, _)| place).collect();
        let urls = self.totals.admitted.saturating_sub(urls);
        let domains = self.owned.saturating_sub(domains);
        let entered = urls + domains * DOMAIN_COST;
        self.parts.admitter.note_brought(sender, entered, now);
        let answer = LinksAnswer::Taken {
            declined,
            dropped,
            seal: None,
        };
        self.unacknowledged.push((reply, answer));
        Ok(())
    }

    /// Adds URLs to the crawl; answers when they are durable.
    pub(super) async fn seed(
        &mut self,
        urls: Vec<PageUrl>,
        reply: oneshot::Sender<Result<SeedReceipt, CommandError>>,
    ) {
        let (mut links, mut refused) = (Vec::new(), Vec::new());
        for url in urls {
            match self.parts.admitter.check(&url, now()) {
                Ok(()) => links.push(seed_link(url)),
                Err(why) => refused.push((url, why)),
            }
        }
        let accepted = links.len() as u64;
        if let Err(error) = self.deliver(CrawlId::OPEN, links, None, now()) {
            self.note_trouble(&error);
            let _ = reply.send(Err(CommandError(error.to_string())));
            return;
        }
        let durable = self.durable().await;
        tokio::spawn(async move {
            if durable.await.is_ok() {
                let _ = reply.send(Ok(SeedReceipt { accepted, refused }));
            }
        });
    }
}

fn seed_link(url: PageUrl) -> Link {
    Link {
        url,
        depth: 0,
        target: Target::Page,
    }
}

/// A page has one address, whatever session a site hands out with it.
fn without_session(mut link: Link) -> Link {
    if let Some(url) = apoidea_crawl::without_session(&link.url) {
        link.url = url;
    }
    link
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawler::testing::{TestCrawler, link, url};
    use apoidea_overlay::RequestError;
    use tokio::sync::oneshot::error::TryRecvError;

    #[tokio::test]
    async fn links_enter_the_queue_of_an_own_domain_and_wait_for_other_owners() {
        let mut crawler = TestCrawler::in_swarm();
        let (own, foreign) = (crawler.own(0), crawler.foreign(0));
        crawler.admit(&[url(&own, 1), url(&foreign, 2), url(&own, 3)]);
        assert_eq!(crawler.waiting(&own), ["/1", "/3"]);
        assert_eq!(crawler.outgoing(), [format!("http://{foreign}/2")]);
        assert_eq!(crawler.queue(&foreign), []);
    }

    #[tokio::test]
    async fn links_of_an_arc_that_is_being_taken_over_wait_in_the_outbox() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        crawler
            .parts
            .swarm
            .tenancy
            .begin_taking_over(TestCrawler::everything(), None);
        crawler.admit(&[url(&own, 1)]);
        assert_eq!((crawler.queue(&own), crawler.outbox().len()), (vec![], 1));
    }

    #[tokio::test]
    async fn links_that_no_peer_would_take_are_not_sent() {
        let mut crawler = TestCrawler::in_swarm();
        let foreign = crawler.foreign(0);
        let mail = PageUrl::parse(&format!("http://{foreign}:25/")).unwrap();
        crawler.admit(&[mail]);
        assert_eq!(crawler.outbox().len(), 0);
    }

    #[tokio::test]
    async fn sessions_do_not_make_a_page_two_pages() {
        let mut crawler = TestCrawler::alone();
        let own = crawler.own(0);
        let with =
            |session| PageUrl::parse(&format!("http://{own}/a;jsessionid={session}")).unwrap();
        let sessions = [
            with("0123456789abcdef0123456789abcdef"),
            with("fedcba9876543210fedcba9876543210"),
        ];
        crawler.admit(&sessions);
        assert_eq!(crawler.waiting(&own), ["/a"]);
    }

    #[tokio::test]
    async fn only_links_to_other_own_domains_go_a_round_ahead_of_their_page() {
        let mut crawler = TestCrawler::in_swarm();
        let (here, there, foreign) = (crawler.own(0), crawler.own(1), crawler.foreign(0));
        let mut deliver = |to: &Domain, page| {
            let links = vec![link(&url(to, page))];
            let sent = crawler.deliver(CrawlId::OPEN, links, Some(&here), now());
            sent.unwrap()
        };
        assert_eq!(deliver(&here, 1), Sent::default());
        assert_eq!(deliver(&foreign, 1).round, 0);
        assert_eq!(deliver(&foreign, 2).record, Some(1));
        let ahead = deliver(&there, 1);
        assert_eq!((ahead.round, ahead.record), (1, None));
    }

    #[tokio::test]
    async fn links_of_others_are_acknowledged_when_they_are_durable_and_at_a_replica() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        let mut answer = crawler
            .links_of_others(CrawlId::OPEN, &[url(&own, 1)])
            .await;
        assert_eq!(crawler.waiting(&own), ["/1"]);
        assert!(matches!(answer.try_recv(), Err(TryRecvError::Empty)));
        crawler.hand_in().await;
        assert_eq!(crawler.told()[0].puts.len(), 1);
        let early = answer.try_recv();
        assert!(matches!(early, Err(TryRecvError::Empty)), "not durable yet");
        crawler.write().await;
        let taken = answer.try_recv().unwrap();
        assert!(matches!(taken, LinksAnswer::Taken { declined, .. } if declined.is_empty()));
    }

    #[tokio::test]
    async fn links_of_others_that_no_replica_has_are_not_acknowledged() {
        let mut crawler = TestCrawler::in_swarm();
        let unreachable = |_, _, _| Err(RequestError::Unreachable("gone".to_owned()));
        crawler.ring.answer_with(unreachable);
        let own = crawler.own(0);
        let mut answer = crawler
            .links_of_others(CrawlId::OPEN, &[url(&own, 1)])
            .await;
        crawler.hand_in().await;
        crawler.write().await;
        assert!(matches!(answer.try_recv(), Err(TryRecvError::Closed)));
        assert_eq!(crawler.waiting(&own), ["/1"], "they are here all the same");
    }

    #[tokio::test]
    async fn links_that_belong_to_another_peer_are_declined_by_their_place() {
        let mut crawler = TestCrawler::in_swarm();
        let (own, foreign) = (crawler.own(0), crawler.foreign(0));
        let urls = [
            url(&own, 1),
            url(&foreign, 2),
            url(&own, 3),
            url(&foreign, 4),
        ];
        let mut answer = crawler.links_of_others(CrawlId::OPEN, &urls).await;
        crawler.save().await;
        let taken = answer.try_recv().unwrap();
        assert!(matches!(taken, LinksAnswer::Taken { declined, .. } if declined == [1, 3]));
        assert_eq!(crawler.waiting(&own), ["/1", "/3"]);
        assert_eq!(
            (crawler.queue(&foreign), crawler.totals.received),
            (vec![], 2)
        );
        assert_eq!(
            crawler.outbox().len(),
            0,
            "the sender keeps what is declined"
        );
    }

    #[tokio::test]
    async fn links_that_the_owner_does_not_want_are_named() {
        let mut crawler = TestCrawler::in_swarm();
        let own = crawler.own(0);
        let mail = PageUrl::parse(&format!("http://{own}:25/")).unwrap();
        let urls = [url(&own, 1), mail, url(&own, 1), url(&own, 2)];
        let mut answer = crawler.links_of_others(CrawlId::OPEN, &urls).await;
        crawler.save().await;
        let LinksAnswer::Taken { dropped, .. } = answer.try_recv().unwrap() else {
            panic!("the crawl is known");
        };
        assert_eq!(dropped, [1]);
        assert_eq!(crawler.waiting(&own), ["/1", "/2"]);
    }

    #[tokio::test]
    async fn seeds_are_confirmed_when_they_are_durable_and_refused_with_a_reason() {
        let mut crawler = TestCrawler::alone();
        let own = crawler.own(0);
        let mail = PageUrl::parse(&format!("http://{own}:25/")).unwrap();
        let (reply, mut receipt) = oneshot::channel();
        crawler.seed(vec![url(&own, 1), mail.clone()], reply).await;
        crawler.take_turns().await;
        assert!(receipt.try_recv().is_err(), "not durable yet");
        crawler.write().await;
        let receipt = receipt.try_recv().unwrap().unwrap();
        assert_eq!((receipt.accepted, receipt.refused.len()), (1, 1));
        assert_eq!(receipt.refused[0].0, mail);
        assert_eq!(crawler.waiting(&own), ["/1"]);
    }
}
