//! The permissions of a page for robots, beyond robots.txt: `<meta name=robots>` and the
//! `X-Robots-Tag` header.
//!
//! Both carry the same words. Several sources may speak about one page; the most restrictive wins,
//! whatever their order. Words that only concern a search engine's result page (`nosnippet`,
//! `max-image-preview`…) and `unavailable_after` are ignored.

use std::ops::BitAnd;

/// The name by which sites address this crawler, compared without case (RFC 9309 §2.2.1, product
/// token).
pub(crate) const PRODUCT_TOKEN: &str = "Apoidea";

/// Whether something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Permission {
    /// Yes; so it is when nobody says otherwise.
    #[default]
    Allowed,
    /// No.
    Forbidden,
}

/// The permissions of a page. The default allows everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Directives {
    /// To make the page findable.
    pub index: Permission,
    /// To follow its links.
    pub follow: Permission,
    /// To archive it.
    pub archive: Permission,
}

impl Directives {
    /// Reads the `content` of `<meta name="robots">`, such as `noindex, nofollow`.
    pub fn from_meta(content: &str) -> Self {
        content
            .split([',', ' ', '\t', '\n', '\r', '\x0c'])
            .map(Self::from_word)
            .fold(Self::default(), BitAnd::bitand)
    }

    /// Reads one `X-Robots-Tag` header, such as `noarchive` or `otherbot: noindex, apoidea:
    /// nofollow`.
    ///
    /// A name before a colon addresses what follows, up to the next name, to that robot alone. A
    /// header that is repeated is read one by one and combined with `&`.
    pub fn from_header(value: &str) -> Self {
        let mut audience = Audience::Us;
        let mut all = Self::default();
        for item in value.split(',') {
            let word = match item.split_once(':') {
                Some((setting, _)) if is_setting(setting) => continue,
                Some((agent, word)) => {
                    audience = Audience::of(agent);
                    word
                }
                None => item,
            };
            if audience == Audience::Us {
                all = all & Self::from_meta(word);
            }
        }
        all
    }

    /// Reads the metadata that a page addresses to `name`, as in `<meta name="apoidea"
    /// content="…">`; `None` if the name is neither that of all robots nor ours.
    pub(crate) fn from_named_meta(name: &str, content: &str) -> Option<Self> {
        (Audience::of(name) == Audience::Us).then(|| Self::from_meta(content))
    }

    fn from_word(word: &str) -> Self {
        let (allowed, forbidden) = (Permission::Allowed, Permission::Forbidden);
        let (index, follow, archive) = match word.to_ascii_lowercase().as_str() {
            "noindex" => (forbidden, allowed, allowed),
            "nofollow" => (allowed, forbidden, allowed),
            "noarchive" | "nocache" => (allowed, allowed, forbidden),
            "none" => (forbidden, forbidden, allowed),
            _ => (allowed, allowed, allowed),
        };
        Directives {
            index,
            follow,
            archive,
        }
    }
}

/// The most restrictive of two sources.
impl BitAnd for Directives {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Directives {
            index: self.index & other.index,
            follow: self.follow & other.follow,
            archive: self.archive & other.archive,
        }
    }
}

/// Allowed only if both allow it.
impl BitAnd for Permission {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        if self == Permission::Allowed {
            other
        } else {
            self
        }
    }
}

/// Whom a directive addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    Us,
    Others,
}

impl Audience {
    fn of(agent: &str) -> Self {
        let agent = agent.trim();
        let is_us = ["robots", "*", PRODUCT_TOKEN]
            .iter()
            .any(|name| agent.eq_ignore_ascii_case(name));
        if is_us {
            Audience::Us
        } else {
            Audience::Others
        }
    }
}

/// Whether the word before a colon is a setting with a value instead of a robot's name.
fn is_setting(word: &str) -> bool {
    let word = word.trim().to_ascii_lowercase();
    word == "unavailable_after" || word.starts_with("max-")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Directives = Directives {
        index: Permission::Allowed,
        follow: Permission::Allowed,
        archive: Permission::Allowed,
    };
    const NO_INDEX: Directives = Directives {
        index: Permission::Forbidden,
        ..ALL
    };
    const NO_FOLLOW: Directives = Directives {
        follow: Permission::Forbidden,
        ..ALL
    };
    const NO_ARCHIVE: Directives = Directives {
        archive: Permission::Forbidden,
        ..ALL
    };

    #[test]
    fn meta_content_is_a_list_of_words_in_any_case() {
        for (content, expected) in [
            ("", ALL),
            ("index, follow", ALL),
            ("all", ALL),
            ("NoIndex", NO_INDEX),
            ("noindex,nofollow", NO_INDEX & NO_FOLLOW),
            ("noindex nofollow", NO_INDEX & NO_FOLLOW),
            (" none ,", NO_INDEX & NO_FOLLOW),
            ("noarchive", NO_ARCHIVE),
            (
                "nosnippet, max-snippet:-1, unavailable_after: 1 Jan 2030",
                ALL,
            ),
            ("index, noindex", NO_INDEX),
        ] {
            assert_eq!(Directives::from_meta(content), expected, "{content:?}");
        }
    }

    #[test]
    fn headers_may_address_one_robot() {
        for (value, expected) in [
            ("noindex", NO_INDEX),
            ("apoidea: noindex", NO_INDEX),
            ("APOIDEA:noindex, nofollow", NO_INDEX & NO_FOLLOW),
            ("otherbot: noindex, nofollow", ALL),
            (
                "noarchive, otherbot: noindex, apoidea: nofollow",
                NO_ARCHIVE & NO_FOLLOW,
            ),
            (
                "unavailable_after: 25 Jun 2010 15:00:00 PST, noindex",
                NO_INDEX,
            ),
            ("otherbot: noindex, max-snippet: 3, nofollow", ALL),
            ("*: none", NO_INDEX & NO_FOLLOW),
            (":::,,:", ALL),
        ] {
            assert_eq!(Directives::from_header(value), expected, "{value:?}");
        }
    }

    #[test]
    fn the_most_restrictive_source_wins_in_any_order() {
        assert_eq!(NO_INDEX & ALL, NO_INDEX);
        assert_eq!(ALL & NO_INDEX, NO_INDEX);
        assert_eq!((NO_INDEX & NO_ARCHIVE).follow, Permission::Allowed);
    }

    #[test]
    fn only_metadata_for_all_robots_or_for_us_counts() {
        assert_eq!(
            Directives::from_named_meta("ROBOTS", "noindex"),
            Some(NO_INDEX)
        );
        assert_eq!(
            Directives::from_named_meta("apoidea", "noindex"),
            Some(NO_INDEX)
        );
        assert_eq!(Directives::from_named_meta("googlebot", "noindex"), None);
    }
}
