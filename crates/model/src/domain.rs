//! The domain of a URL: its host. One peer owns it and one politeness clock serves it.

use crate::Key;
use serde::{Deserialize, Serialize};
use std::{borrow::Borrow, fmt, net::IpAddr, str::FromStr, sync::Arc};

/// A canonical host name or IP literal, lower case, in its ASCII (punycode) form, without a
/// trailing dot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Domain(Arc<str>);

/// The text is not a host name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a host name: {why}")]
pub struct InvalidDomain {
    text: String,
    why: &'static str,
}

impl Domain {
    /// Longest host name that DNS allows, in characters.
    pub const MAX_CHARS: usize = 253;

    /// Takes a host that is canonical already, as in a [`crate::PageUrl`].
    pub(crate) fn from_canonical(host: &str) -> Self {
        Domain(host.into())
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The domain's place on the ring, which decides its owner. All hosts of a site have one: names
    /// below a site are made at will, and must not spread over all peers.
    pub fn key(&self) -> Key {
        Key::hash(self.site())
    }

    /// The site this host is part of: the name directly below its public suffix (`www.a.co.uk` →
    /// `a.co.uk`), or the host itself where there is none.
    pub fn site(&self) -> &str {
        if self.ip().is_some() {
            self.as_str()
        } else {
            psl::domain_str(&self.0).unwrap_or(&self.0)
        }
    }

    /// The address, where the host is an IP literal instead of a name.
    pub fn ip(&self) -> Option<IpAddr> {
        let text = self
            .0
            .strip_prefix('[')
            .and_then(|text| text.strip_suffix(']'))
            .unwrap_or(&self.0);
        text.parse().ok()
    }
}

impl FromStr for Domain {
    type Err = InvalidDomain;

    fn from_str(text: &str) -> Result<Self, InvalidDomain> {
        let refuse = |why| InvalidDomain {
            text: text.chars().take(80).collect(),
            why,
        };
        let host =
            url::Host::parse(text.trim()).map_err(|_| refuse("not a valid name or address"))?;
        let host = host.to_string();
        canonical_host(&host)
            .map(Self::from_canonical)
            .map_err(refuse)
    }
}

/// Removes the trailing dot and refuses what DNS could never resolve.
pub(crate) fn canonical_host(host: &str) -> Result<&str, &'static str> {
    let host = host.strip_suffix('.').unwrap_or(host);
    if host.len() > Domain::MAX_CHARS {
        return Err("longer than 253 characters");
    }
    let is_name = !host.starts_with('[');
    if is_name
        && host
            .split('.')
            .any(|label| label.is_empty() || label.len() > 63)
    {
        return Err("a label is empty or longer than 63 characters");
    }
    Ok(host)
}

impl TryFrom<String> for Domain {
    type Error = InvalidDomain;

    fn try_from(text: String) -> Result<Self, InvalidDomain> {
        text.parse()
    }
}

impl From<Domain> for String {
    fn from(domain: Domain) -> String {
        domain.0.as_ref().to_owned()
    }
}

impl Borrow<str> for Domain {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_spelling_per_host() {
        for (text, canonical) in [
            ("Example.COM", "example.com"),
            ("example.com.", "example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("0x7f.1", "127.0.0.1"),
            ("[::0001]", "[::1]"),
        ] {
            assert_eq!(text.parse::<Domain>().unwrap().as_str(), canonical);
        }
        for bad in ["", ".", "a..b", "a b", &"a".repeat(64), "..", "a/b"] {
            assert!(bad.parse::<Domain>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn public_suffixes_tell_which_hosts_share_a_site() {
        for (host, site) in [
            ("www.example.co.uk", "example.co.uk"),
            ("a.b.example.com", "example.com"),
            ("alice.github.io", "alice.github.io"),
            ("co.uk", "co.uk"),
            ("127.0.0.1", "127.0.0.1"),
        ] {
            assert_eq!(host.parse::<Domain>().unwrap().site(), site);
        }
    }

    #[test]
    fn all_hosts_of_a_site_have_one_place_on_the_ring() {
        let key = |host: &str| host.parse::<Domain>().unwrap().key();
        assert_eq!(key("a.b.example.com"), key("example.com"));
        assert_eq!(key("WWW.example.co.uk."), key("blog.example.co.uk"));
        for (one, other) in [
            ("a.example.com", "a.example.org"),
            ("alice.github.io", "bob.github.io"),
            ("192.0.2.1", "192.0.2.2"),
            ("[2001:db8::1]", "[2001:db8::2]"),
        ] {
            assert_ne!(key(one), key(other), "{one} and {other}");
        }
    }

    #[test]
    fn serde_refuses_what_parsing_refuses() {
        assert!(Domain::try_from("a..b".to_owned()).is_err());
        assert_eq!(
            "[::1]".parse::<Domain>().unwrap().ip(),
            Some("::1".parse().unwrap())
        );
    }
}
