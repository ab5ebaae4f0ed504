//! Domains that this volunteer refuses to fetch, in lists with a name each, such as a category.
//!
//! A line is a host (`a.example`: that host alone), a whole domain (`*.a.example` or `.a.example`:
//! it and everything below it), or an entry of a hosts file (`0.0.0.0 a.example`), the form that
//! public lists have. `#` begins a comment. Only fingerprints are kept, eight bytes an entry, so
//! that a list of a million costs 8 MB and not 80. Reading the files is left to others.

use apoidea_model::{Domain, Key};
use std::net::IpAddr;

/// The volunteer's lists.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusals {
    lists: Vec<List>,
}

/// One list, as sorted fingerprints of names.
#[derive(Debug, Clone, PartialEq, Eq)]
struct List {
    name: String,
    hosts: Vec<u64>,
    subtrees: Vec<u64>,
}

/// The list cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidList {
    /// A line is no entry.
    #[error("line {line} of {list}: {text:?} {why}")]
    Line {
        /// Name of the list.
        list: String,
        /// Number of the line, beginning with 1.
        line: usize,
        /// The text of the line.
        text: String,
        /// The fault.
        why: &'static str,
    },
    /// More entries than [`Refusals::MAX_ENTRIES`] in all lists.
    #[error("with {list} there are more than {max} refused domains", max = Refusals::MAX_ENTRIES)]
    TooMany {
        /// Name of the list.
        list: String,
    },
}

/// The reach of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Host,
    Subtree,
}

impl Refusals {
    /// Most entries of all lists together: four of the largest public lists, 32 MB.
    pub const MAX_ENTRIES: usize = 4_000_000;

    /// Adds a list. Nothing is added if a line of it is wrong: half a list would refuse less than
    /// the volunteer wanted.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), InvalidList> {
        let mut list = List {
            name: name.to_owned(),
            hosts: Vec::new(),
            subtrees: Vec::new(),
        };
        let room = Self::MAX_ENTRIES - self.len();
        for (line, entry) in (1..).zip(text.lines()) {
            let invalid = |why| InvalidList::Line {
                list: name.to_owned(),
                line,
                text: entry.trim().chars().take(80).collect(),
                why,
            };
            if let Some((scope, domain)) = parse_entry(entry).map_err(invalid)? {
                list.push(scope, &domain);
            }
            if list.len() > room {
                return Err(InvalidList::TooMany {
                    list: name.to_owned(),
                });
            }
        }
        list.sort();
        self.lists.push(list);
        Ok(())
    }

    /// The name of the first list that refuses this domain, if one does.
    pub fn matches(&self, domain: &Domain) -> Option<&str> {
        if self.lists.is_empty() {
            return None;
        }
        let host = fingerprint(domain.as_str());
        let above: Vec<_> = self_and_parents(domain).map(fingerprint).collect();
        self.lists
            .iter()
            .find(|list| list.refuses(host, &above))
            .map(|list| list.name.as_str())
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.lists.iter().map(List::len).sum()
    }

    /// Whether nothing is refused.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl List {
    fn push(&mut self, scope: Scope, domain: &Domain) {
        let list = match scope {
            Scope::Host => &mut self.hosts,
            Scope::Subtree => &mut self.subtrees,
        };
        list.push(fingerprint(domain.as_str()));
    }

    fn sort(&mut self) {
        for list in [&mut self.hosts, &mut self.subtrees] {
            list.sort_unstable();
            list.dedup();
            list.shrink_to_fit();
        }
    }

    fn refuses(&self, host: u64, above: &[u64]) -> bool {
        self.hosts.binary_search(&host).is_ok()
            || above
                .iter()
                .any(|name| self.subtrees.binary_search(name).is_ok())
    }

    fn len(&self) -> usize {
        self.hosts.len() + self.subtrees.len()
    }
}

/// `a.b.c`, `b.c` and `c`; an address has nothing above it.
fn self_and_parents(domain: &Domain) -> impl Iterator<Item = &str> {
    let depth = if domain.ip().is_some() { 1 } else { usize::MAX };
    std::iter::successors(Some(domain.as_str()), |name| Some(name.split_once('.')?.1)).take(depth)
}

/// Eight bytes of a hash that nobody can aim: two names share them once in 10¹³ lookups in a list
/// of a million.
fn fingerprint(name: &str) -> u64 {
    let digest = Key::hash(name);
    let (first, _) = digest
        .as_bytes()
        .split_first_chunk()
        .expect("a key has 32 bytes, more than 8");
    u64::from_be_bytes(*first)
}

/// Reads a line; `None` if it is empty or a comment.
fn parse_entry(line: &str) -> Result<Option<(Scope, Domain)>, &'static str> {
    let text = line.split_once('#').map_or(line, |(text, _)| text);
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).trim();
    let mut words = text.split_whitespace();
    let entry = match (words.next(), words.next(), words.next()) {
        (None, ..) => return Ok(None),
        (Some(entry), None, _) => entry,
        (Some(address), Some(host), None) if is_sink(address) => host,
        _ => return Err("has more than one word; an entry is a domain"),
    };
    let (scope, name) = match entry.strip_prefix("*.").or_else(|| entry.strip_prefix('.')) {
        Some(name) => (Scope::Subtree, name),
        None => (Scope::Host, entry),
    };
    if name.contains('*') {
        return Err("has a * in another place than before the first dot");
    }
    name.parse()
        .map(|domain| Some((scope, domain)))
        .map_err(|_| "is not a domain")
}

/// The addresses that hosts files send unwanted names to.
fn is_sink(address: &str) -> bool {
    address
        .parse()
        .is_ok_and(|address: IpAddr| address.is_unspecified() || address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusals(text: &str) -> Refusals {
        let mut refusals = Refusals::default();
        refusals.add("mine", text).unwrap();
        refusals
    }

    fn refuses(refusals: &Refusals, host: &str) -> bool {
        refusals.matches(&host.parse().unwrap()).is_some()
    }

    #[test]
    fn a_host_is_itself_and_a_star_is_all_below_too() {
        let list = refusals("\u{feff}one.example\n*.all.example # why\n\n.dot.example\n*.co.uk");
        for (host, refused) in [
            ("one.example", true),
            ("ONE.example.", true),
            ("www.one.example", false),
            ("all.example", true),
            ("www.all.example", true),
            ("a.b.all.example", true),
            ("small.example", false),
            ("example", false),
            ("x.dot.example", true),
            ("bbc.co.uk", true),
            ("uk", false),
        ] {
            assert_eq!(refuses(&list, host), refused, "{host}");
        }
        assert_eq!(list.len(), 4);
    }

    #[test]
    fn names_are_compared_in_one_spelling() {
        let list = refusals("Bücher.Example\n*.0x7f.1\n[::1]\n*.2.0.192.in-addr.arpa");
        for host in [
            "xn--bcher-kva.example",
            "127.0.0.1",
            "[0:0::1]",
            "1.2.0.192.in-addr.arpa",
        ] {
            assert!(refuses(&list, host), "{host}");
        }
        assert!(
            !refuses(&refusals("*.1.1"), "8.8.1.1"),
            "an address is no subdomain of its end"
        );
    }

    #[test]
    fn hosts_files_are_lists() {
        let list = refusals(
            "# comment\n127.0.0.1 localhost\n0.0.0.0\tads.example # x\n:: six.example\r\n",
        );
        for host in ["ads.example", "six.example", "localhost"] {
            assert!(refuses(&list, host), "{host}");
        }
    }

    #[test]
    fn the_list_that_refuses_is_named() {
        let mut refusals = Refusals::default();
        assert!(refusals.is_empty());
        refusals.add("gambling", "*.bet.example").unwrap();
        refusals.add("mine", "a.example").unwrap();
        assert_eq!(
            refusals.matches(&"www.bet.example".parse().unwrap()),
            Some("gambling")
        );
        assert_eq!(
            refusals.matches(&"a.example".parse().unwrap()),
            Some("mine")
        );
        assert_eq!(refusals.matches(&"b.example".parse().unwrap()), None);
    }

    #[test]
    fn a_bad_line_is_named_and_nothing_is_added() {
        for (text, complaint) in [
            (
                "a.example\na b",
                "line 2 of mine: \"a b\" has more than one word; an entry is a domain",
            ),
            (
                "http://a.example/",
                "line 1 of mine: \"http://a.example/\" is not a domain",
            ),
            (
                "*",
                "line 1 of mine: \"*\" has a * in another place than before the first dot",
            ),
            (
                "a.*.example",
                "line 1 of mine: \"a.*.example\" has a * in another place than before the first dot",
            ),
            ("*.", "line 1 of mine: \"*.\" is not a domain"),
            (
                "8.8.8.8 a.example",
                "line 1 of mine: \"8.8.8.8 a.example\" has more than one word; an entry is a domain",
            ),
        ] {
            let mut refusals = Refusals::default();
            assert_eq!(
                refusals.add("mine", text).unwrap_err().to_string(),
                complaint
            );
            assert!(refusals.is_empty());
        }
    }
}
