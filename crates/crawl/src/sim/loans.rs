//! Fetches of simulated peers, at their owner or at a helper: the messages of a loan and their
//! delays.
//!
//! No message is lost, but a helper may die: its loans end when they are overdue.

use super::{
    agent::Subject,
    telling::{DISK, PROCESS},
    web::Web,
    world::{News, SMALL, Side, World},
};
use crate::lending::{Choice, FetchId, Refused};
use apoidea_model::{Link, PageId};
use std::time::Duration;

/// A fetch and the peer that does it.
#[derive(Clone)]
pub(super) struct Job {
    pub owner: usize,
    /// The owner itself or a helper.
    pub by: usize,
    fetch: FetchId,
    subject: Subject,
}

impl Job {
    fn is_lent(&self) -> bool {
        self.owner != self.by
    }
}

impl World {
    /// A peer's frontier wants a fetch.
    pub(super) fn start(&mut self, owner: usize, fetch: FetchId, subject: Subject) {
        let choice = self.agents[owner].assign(&fetch, self.now);
        self.carry_out(owner, fetch, subject, choice);
    }

    fn carry_out(&mut self, owner: usize, fetch: FetchId, subject: Subject, choice: Choice) {
        if let (FetchId::Page(page), Choice::Here | Choice::Lend(_)) = (&fetch, &choice) {
            self.begin(owner, page);
        }
        let by = |by| Job {
            owner,
            by,
            fetch: fetch.clone(),
            subject: subject.clone(),
        };
        match choice {
            Choice::Here => self.request(by(owner)),
            Choice::Lend(helper) => {
                let job = by(self.peers[&helper]);
                let agent = &mut self.agents[owner];
                agent
                    .lending
                    .lend(fetch, helper, Refused::No, subject, self.now);
                self.soon(self.way(), News::Asked(job));
            }
            Choice::Later(wait) => self.put_back(owner, &fetch, wait),
            Choice::Back => self.put_back(owner, &fetch, Duration::ZERO),
        }
    }

    /// A page is on its way: no other peer may be at it.
    fn begin(&mut self, owner: usize, page: &PageId) {
        let is_new = self.agents[owner].pages.stage(page).is_none();
        self.agents[owner].pages.begin(page);
        let others = self.under_way.insert(page.clone(), owner);
        self.usage.doubles += usize::from(is_new && others.is_some());
    }

    fn put_back(&mut self, owner: usize, fetch: &FetchId, wait: Duration) {
        if let FetchId::Page(page) = fetch {
            self.under_way.remove(page);
        }
        let domain = fetch.domain().clone();
        self.agents[owner].put_back(domain, fetch, self.now + wait, self.now);
    }

    /// Helpers that tell nothing are gone: their fetches go back to their queues.
    pub(super) fn end_overdue(&mut self, owner: usize) {
        for (fetch, _) in self.agents[owner].overdue(self.now) {
            self.put_back(owner, &fetch, Duration::ZERO);
        }
    }

    /// A helper is asked. It looks for the host's address first.
    pub(super) fn asked(&mut self, job: Job) {
        if self.agents[job.by].is_liar {
            return self.pretend(job);
        }
        if !self.agents[job.by].may_borrow() {
            return self.soon(self.way(), News::TurnedAway(job));
        }
        self.agents[job.by].lending.on_borrowed();
        self.soon(self.way(), News::Taken(job.clone()));
        self.soon(SMALL, News::Request(job));
    }

    pub(super) fn taken(&mut self, job: &Job) {
        let helper = self.ids[job.by];
        self.agents[job.owner].lending.on_taken(helper, &job.fetch);
        self.look(job.owner);
    }

    pub(super) fn turned_away(&mut self, job: Job) {
        let helper = self.ids[job.by];
        let agent = &mut self.agents[job.owner];
        if let Some((subject, choice)) = agent.turned_away(helper, &job.fetch, self.now) {
            self.carry_out(job.owner, job.fetch, subject, choice);
        }
        self.look(job.owner);
    }

    /// The host is asked.
    pub(super) fn request(&mut self, job: Job) {
        let host = self.host(job.fetch.domain());
        let address = Web::address(host, self.addresses);
        self.usage.ask(host, address, self.now);
        let took = match &job.subject {
            Subject::Page(pending) => self.took(pending),
            Subject::Robots(_) => SMALL,
        };
        self.soon(took, News::Answered(job));
    }

    /// The host has answered. A helper sends the links to other domains itself.
    pub(super) fn answered(&mut self, job: Job) {
        self.usage.answer(self.host(job.fetch.domain()));
        if self.dead[job.by] {
            return;
        }
        let mut away = Vec::new();
        if let Subject::Page(pending) = &job.subject {
            self.agents[job.by].fetched += 1;
            self.usage.lent_pages += u64::from(job.is_lent());
            self.note_page(pending);
            away = self.links(pending, Side::Away);
        }
        if !job.is_lent() {
            let mut links = self.links_within(&job.subject);
            links.extend(away);
            return self.settle(job.owner, job.fetch.domain().clone(), job.subject, links);
        }
        self.agents[job.by].lending.on_request_ended();
        let record = self.agents[job.by].outbox.begin();
        let mine = self.spread(job.by, record, away);
        self.admit(job.by, mine);
        self.soon(PROCESS + DISK + self.way(), News::Result(job));
    }

    /// The owner has the result, and the links within the domain.
    pub(super) fn result(&mut self, job: Job) {
        let helper = self.ids[job.by];
        let is_true = !self.agents[job.by].is_liar;
        if is_true {
            self.soon(self.way(), News::Returned(job.by));
        }
        let lending = &mut self.agents[job.owner].lending;
        if let Some(subject) = lending.on_result(helper, &job.fetch) {
            let links = match is_true {
                true => self.links_within(&subject),
                false => Vec::new(),
            };
            self.settle(job.owner, job.fetch.domain().clone(), subject, links);
        }
    }

    fn links_within(&self, subject: &Subject) -> Vec<Link> {
        match subject {
            Subject::Page(pending) => self.links(pending, Side::Within),
            Subject::Robots(_) => Vec::new(),
        }
    }
}
