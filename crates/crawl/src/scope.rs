//! The pages that this peer takes part in crawling: contactable, wanted, not refused, no trap.
//!
//! The predicate of a crawl, in two steps, so that links to a domain that is out of scope cost no
//! look at what is known of it: [`Scope::check_domain`] once for each domain of a batch, and
//! [`Scope::check_url`] for each URL, through the hook of [`crate::Admission`].

use crate::{ContactRefused, Contactable, DropReason, Refusals, Trap};
use apoidea_model::{Domain, PageUrl, Time};
use std::collections::BTreeSet;

/// The rules about which pages are crawled.
pub struct Scope {
    contactable: Contactable,
    refusals: Refusals,
    by_hand: BTreeSet<Domain>,
    company: Company,
    only: Vec<Domain>,
}

/// Whether other peers could fetch what this one refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// This peer is alone.
    None,
    /// It has neighbours on the ring.
    Neighbours,
}

/// A page is not crawled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwanted<'a> {
    /// It must not be contacted.
    #[error(transparent)]
    Contact(ContactRefused),
    /// The crawl is confined to other domains.
    #[error("its domain is not among those that crawl.only names")]
    NotAmongOnly,
    /// The volunteer refuses the domain.
    #[error("its domain is refused by you")]
    RefusedByHand,
    /// The list of this name refuses the domain.
    #[error("its domain is refused by {0}")]
    RefusedBy(&'a str),
    /// It looks like a trap.
    #[error("it looks like a trap: {0}")]
    Trap(Trap),
}

impl From<Unwanted<'_>> for DropReason {
    fn from(unwanted: Unwanted<'_>) -> Self {
        match unwanted {
            Unwanted::Contact(_) | Unwanted::NotAmongOnly => DropReason::OutOfScope,
            Unwanted::RefusedByHand | Unwanted::RefusedBy(_) => DropReason::Refused,
            Unwanted::Trap(_) => DropReason::Trap,
        }
    }
}

impl Scope {
    /// The scope of a peer that is alone and refuses nothing by hand. An empty `only` names every
    /// domain.
    pub fn new(contactable: Contactable, refusals: Refusals, only: Vec<Domain>) -> Self {
        Scope {
            contactable,
            refusals,
            by_hand: BTreeSet::new(),
            company: Company::None,
            only,
        }
    }

    /// Tells whether others could fetch what is refused by hand: its links are admitted then.
    pub fn set_company(&mut self, company: Company) {
        self.company = company;
    }

    /// The domains refused by hand while running, each with everything below it.
    pub fn by_hand(&self) -> &BTreeSet<Domain> {
        &self.by_hand
    }

    /// The domains refused by hand, to be changed.
    pub fn by_hand_mut(&mut self) -> &mut BTreeSet<Domain> {
        &mut self.by_hand
    }

    /// Whether the volunteer refuses this domain, or one that it is part of.
    pub fn is_refused_by_hand(&self, domain: &Domain) -> bool {
        is_within_one(domain.as_str(), &self.by_hand)
    }

    /// Whether this peer must not contact the domain itself, whoever brought its URLs here: its
    /// volunteer or one of the lists refuses it, or the crawl is confined to others.
    pub fn is_refused(&self, domain: &Domain) -> bool {
        self.is_refused_by_hand(domain) || self.check_domain(domain).is_err()
    }

    /// Refuses a page that is never admitted here.
    pub fn check(&self, url: &PageUrl, now: Time) -> Result<(), Unwanted<'_>> {
        self.check_domain(&url.domain())?;
        self.check_url(url, now)
    }

    /// Refuses a page that this peer would not fetch itself, for a volunteer who asks for it.
    pub fn explain(&self, url: &PageUrl, now: Time) -> Result<(), Unwanted<'_>> {
        if self.is_refused_by_hand(&url.domain()) {
            return Err(Unwanted::RefusedByHand);
        }
        self.check(url, now)
    }

    /// Refuses a domain of which no page is admitted here.
    pub fn check_domain(&self, domain: &Domain) -> Result<(), Unwanted<'_>> {
        if let Some(address) = domain.ip() {
            let checked = self.contactable.check_address(address);
            checked.map_err(Unwanted::Contact)?;
        }
        if !self.only.is_empty() && !is_within_one(domain.as_str(), &self.only) {
            return Err(Unwanted::NotAmongOnly);
        }
        if self.company == Company::None && self.is_refused_by_hand(domain) {
            return Err(Unwanted::RefusedByHand);
        }
        match self.refusals.matches(domain) {
            Some(list) => Err(Unwanted::RefusedBy(list)),
            None => Ok(()),
        }
    }

    /// Refuses a page of an admissible domain: by its port, or because it looks like a trap.
    pub fn check_url(&self, url: &PageUrl, now: Time) -> Result<(), Unwanted<'_>> {
        let checked = self.contactable.check_url(url);
        checked.map_err(Unwanted::Contact)?;
        Trap::check(url, now).map_err(Unwanted::Trap)
    }
}

/// Whether a host is one of these domains or lies below one.
pub fn is_within_one<'a>(host: &str, domains: impl IntoIterator<Item = &'a Domain>) -> bool {
    domains
        .into_iter()
        .any(|domain| is_within(host, domain.as_str()))
}

/// Whether a host is the domain or lies below it.
fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_millis(1_700_000_000_000);

    fn scope(only: &[&str]) -> Scope {
        let mut refusals = Refusals::default();
        refusals.add("gambling", "*.casino.example").unwrap();
        let only = only.iter().map(|name| name.parse().unwrap()).collect();
        Scope::new(Contactable::new(vec![80, 443], Vec::new()), refusals, only)
    }

    fn reason(scope: &Scope, url: &str) -> Option<DropReason> {
        let checked = scope.check(&PageUrl::parse(url).unwrap(), NOW);
        checked.err().map(DropReason::from)
    }

    #[test]
    fn each_kind_of_unwanted_page_has_its_reason() {
        let scope = scope(&["example"]);
        for (url, expected) in [
            ("http://a.example/", None),
            ("http://example/", None),
            ("http://a.notexample/", Some(DropReason::OutOfScope)),
            ("http://a.example:8080/", Some(DropReason::OutOfScope)),
            ("http://10.0.0.1/", Some(DropReason::OutOfScope)),
            ("http://www.casino.example/", Some(DropReason::Refused)),
            ("http://a.example/x/x/x/x/", Some(DropReason::Trap)),
        ] {
            assert_eq!(reason(&scope, url), expected, "{url}");
        }
    }

    #[test]
    fn a_domain_refused_by_hand_is_admitted_for_neighbours_and_explained_all_the_same() {
        let mut scope = scope(&[]);
        scope.by_hand_mut().insert("a.example".parse().unwrap());
        let url = PageUrl::parse("http://www.a.example/").unwrap();
        assert_eq!(scope.check(&url, NOW), Err(Unwanted::RefusedByHand));
        assert!(scope.is_refused_by_hand(&"a.example".parse().unwrap()));
        assert!(!scope.is_refused_by_hand(&"ba.example".parse().unwrap()));
        scope.set_company(Company::Neighbours);
        assert_eq!(scope.check(&url, NOW), Ok(()));
        assert_eq!(scope.explain(&url, NOW), Err(Unwanted::RefusedByHand));
    }

    #[test]
    fn a_refusal_names_what_refuses() {
        let scope = scope(&[]);
        let url = PageUrl::parse("http://casino.example/").unwrap();
        let refused = scope.explain(&url, NOW).unwrap_err();
        assert_eq!(refused.to_string(), "its domain is refused by gambling");
    }
}
