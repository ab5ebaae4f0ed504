//! Taking in what the tasks report.

use super::{
    Crawler, Finding, MAX_FINDINGS_AT_ONCE, link,
    rounds::{Done, Sent},
};
use crate::{
    admitter::{AdmitError, encode_state},
    judge,
    page::{self, PageSight, now},
    process::ProcessedPage,
    robots_fetch::RobotsAnswer,
    status::{PageEvent, Totals},
    writer::Order,
};
use apoidea_crawl::{Effort, Event, Origin, Outcome, Report, Settlement};
use apoidea_model::{Domain, PageUrl, Pending, Slot, Target, Time};
use apoidea_store::Commit;

impl Crawler {
    pub(super) async fn take_all(&mut self, first: Finding) {
        let mut next = Some(first);
        for _ in 0..MAX_FINDINGS_AT_ONCE {
            let Some(finding) = next else { break };
            self.take(finding).await;
            next = self.parts.findings.try_recv().ok();
        }
        if let Some(finding) = next {
            self.take(finding).await;
        }
    }

    async fn take(&mut self, finding: Finding) {
        let now = now();
        match finding {
            Finding::Resolved { domain, address } => {
                self.resolving -= 1;
                if let Err(error) = &address {
                    let failure = Outcome::Failed(page::resolve_failure(error));
                    Totals::count(&mut self.totals.failures, &judge::name(&failure), 1);
                }
                self.touch(&domain);
                self.parts.frontier.handle(
                    Event::Resolved {
                        domain,
                        address: address.ok(),
                    },
                    now,
                );
            }
            Finding::Robots {
                domain,
                origin,
                answer,
            } => self.take_robots(domain, origin, answer, now),
            Finding::Held { domain, slot } => self.put_back(&domain, slot, Time::ZERO),
            Finding::Fetched { report, pending } => self.take_fetched(report, pending, now),
            Finding::Durable {
                settled,
                archive_bytes,
            } => {
                self.parts.reporter.archive_bytes = archive_bytes;
                settled
                    .into_iter()
                    .for_each(|(domain, slot)| self.take_durable(domain, slot));
                if self.trouble.is_some() {
                    self.recover_from_trouble().await;
                }
            }
            Finding::Delivered(records) => self.take_delivered(&records),
            Finding::Replicated { unheld } => self.end_round(&unheld),
            Finding::TurnedAway {
                helper,
                domain,
                what,
                otherwise,
            } => {
                self.turned_away(helper, domain, what, otherwise);
            }
            Finding::Lent(what) => self.lent(what),
            Finding::Returned => self.leases.returned(),
            Finding::ForAnother { from, result, page } => self.end_lease(from, result, page).await,
            Finding::Trouble(trouble) => self.trouble = Some(trouble),
            Finding::PutAside { domain, slot } => {
                self.totals.put_aside += 1;
                self.processing.weigh(&domain, slot, 0);
            }
            Finding::Processed {
                domain,
                slot,
                page,
                sight,
            } => {
                let bytes = page
                    .records
                    .as_ref()
                    .map_or(0, |records| records.len() as u64);
                self.processing.weigh(&domain, slot, bytes);
                self.deferred.push_back((domain, slot, page, sight));
                self.take_deferred().await;
            }
        }
    }

    fn take_robots(&mut self, domain: Domain, origin: Origin, answer: RobotsAnswer, now: Time) {
        let RobotsAnswer {
            access,
            retry_after,
            effort,
        } = answer;
        let sitemaps = access
            .sitemaps()
            .iter()
            .map(|url| link(url, 0, Target::Sitemap))
            .collect();
        self.touch(&domain);
        if let Err(error) = self.note_state(&domain) {
            self.is_in_trouble(&error);
        }
        let event = Event::Robots {
            domain: domain.clone(),
            origin,
            access,
            retry_after,
            effort,
        };
        self.parts.frontier.handle(event, now);
        if let Err(error) = self.deliver(sitemaps, Some(&domain), now) {
            self.is_in_trouble(&error);
        }
    }

    fn take_fetched(&mut self, report: Report, pending: Pending, now: Time) {
        let Report {
            domain,
            slot,
            outcome,
            effort,
        } = report.clone();
        let name = judge::name(&outcome);
        if outcome != Outcome::Page {
            Totals::count(&mut self.totals.failures, &name, 1);
            self.show(&pending.url, name, effort, 0, now);
        }
        self.totals.bytes += effort.bytes;
        self.touch(&domain);
        let settlement = self.parts.frontier.settle(report, now);
        if outcome == Outcome::Page && settlement.is_some() {
            return self.processing.weigh(&domain, slot, effort.bytes);
        }
        if let Err(error) = self.conclude(&domain, slot, &outcome, pending, settlement, now) {
            self.is_in_trouble(&error);
        }
        self.finish(&domain, slot);
    }

    /// A domain whose fetch was not sent goes to the disk until its turn comes again, and at least
    /// until the given time.
    pub(super) fn put_back(&mut self, domain: &Domain, slot: Option<Slot>, not_before: Time) {
        if let Some(state) = self.parts.frontier.release(domain) {
            self.dirty.remove(domain);
            let mut commit = Commit::new();
            commit.put_domain(domain, encode_state(&state));
            if let Err(error) = self.parts.store.apply(&commit) {
                self.is_in_trouble(&error.into());
            }
            self.parking
                .insert(domain.clone(), state.ready_at().max(not_before));
        }
        match slot {
            Some(slot) => self.finish(domain, slot),
            None if !self.processing.has(domain) => self.park_if_settled(domain),
            None => {}
        }
    }

    /// Settles a URL that brought no page. What fails here leaves it in its queue on disk, to be
    /// fetched again.
    fn conclude(
        &mut self,
        domain: &Domain,
        slot: Slot,
        outcome: &Outcome,
        pending: Pending,
        settlement: Option<Settlement>,
        now: Time,
    ) -> Result<(), AdmitError> {
        let mut sent = Sent::default();
        if let Outcome::Redirect(to) = outcome {
            // One link further, so that a chain without end ends at the greatest depth.
            sent = self.deliver(
                vec![link(to, pending.depth + 1, pending.target)],
                Some(domain),
                now,
            )?;
        } else {
            self.note_state(domain)?;
        }
        match settlement {
            Some(Settlement::Retry(pending)) => self.replace(domain, &pending),
            Some(Settlement::Done(_) | Settlement::Dropped(_)) => {
                self.leave_queue(domain, slot, sent)
            }
            // It was refused while it was fetched.
            None if *outcome != Outcome::Page && self.parts.admitter.is_refused_by_hand(domain) => {
                self.leave_queue(domain, slot, sent)
            }
            None => Ok(()),
        }
    }

    /// Pages are taken in once the disk works: their links must be in the queues before they leave
    /// their own.
    pub(super) async fn take_deferred(&mut self) {
        while self.trouble.is_none()
            && let Some((domain, slot, page, sight)) = self.deferred.pop_front()
        {
            match self.deliver(page.links.clone(), Some(&domain), now()) {
                Ok(sent) => self.keep(domain, slot, page, sight, sent).await,
                Err(error) => {
                    self.is_in_trouble(&error);
                    self.deferred.push_front((domain, slot, page, sight));
                }
            }
        }
    }

    async fn keep(
        &mut self,
        domain: Domain,
        slot: Slot,
        page: ProcessedPage,
        sight: PageSight,
        sent: Sent,
    ) {
        let ProcessedPage {
            link_count,
            records,
            url,
            bytes,
            millis,
            ..
        } = page;
        let outcome = match sight {
            PageSight::New => "page",
            PageSight::Duplicate => "duplicate",
            PageSight::Sitemap => "sitemap",
        };
        self.totals.links += link_count;
        self.totals.pages += u64::from(sight != PageSight::Sitemap);
        self.totals.duplicates += u64::from(sight == PageSight::Duplicate);
        let event = PageEvent {
            at: now(),
            url,
            outcome: outcome.to_owned(),
            bytes,
            links: link_count,
            millis,
        };
        self.parts.pages.publish(event);
        let mut commit = Commit::new();
        commit.remove_pending(&domain, slot);
        self.parts.admitter.queued = self.parts.admitter.queued.saturating_sub(1);
        self.kept.insert((domain.clone(), slot), sent);
        self.order(Order {
            commit,
            records,
            settled: Some((domain, slot)),
            reply: None,
        })
        .await;
    }

    /// A page is on the disk: now it is done.
    fn take_durable(&mut self, domain: Domain, slot: Slot) {
        if let Some((_, sent)) = self.kept.remove_entry(&(domain.clone(), slot)) {
            self.done.push_back(Done {
                domain: domain.clone(),
                slot,
                sent,
            });
            self.tell_soon();
        }
        self.finish(&domain, slot);
    }

    fn show(&mut self, url: &PageUrl, outcome: String, effort: Effort, links: u64, now: Time) {
        let millis = u64::try_from(effort.took.as_millis()).unwrap_or(u64::MAX);
        self.parts.pages.publish(PageEvent {
            at: now,
            url: url.clone(),
            outcome,
            bytes: effort.bytes,
            links,
            millis,
        });
    }
}
