//! The facts about a page that an expression is asked about, and its answer.

use apoidea_model::PageUrl;

/// An answer. Before a page is fetched some facts are not known, and an answer that depends on
/// them is not known either (Kleene's logic).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Truth {
    /// It is not so, whatever else may become known.
    No,
    /// Facts are missing.
    Unknown,
    /// It is so, whatever else may become known.
    Yes,
}

/// A page, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its address.
    pub url: &'a PageUrl,
    /// Links followed from a seed, if that is known.
    pub depth: Option<u16>,
    /// The way to it.
    pub via: Via<'a>,
    /// The page itself, once it is fetched.
    pub page: Option<PageFacts<'a>>,
}

/// The way to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via<'a> {
    /// Not known.
    Unknown,
    /// It is a seed, so no link led to it.
    Seed,
    /// A link on this page.
    Link(&'a PageUrl),
}

/// A page that was fetched. A fact that is `None` is known to be missing: a page without a
/// language is in no language.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PageFacts<'a> {
    /// Media type, without parameters and in lower case.
    pub media_type: Option<&'a str>,
    /// The language that it claims.
    pub language: Option<&'a str>,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its visible text. Without it, an answer that depends on the text is not known; see
    /// [`super::Expression::reads_text`].
    pub text: Option<&'a str>,
}

impl<'a> Facts<'a> {
    /// Only the address is known.
    pub fn of_url(url: &'a PageUrl) -> Self {
        Facts {
            url,
            depth: None,
            via: Via::Unknown,
            page: None,
        }
    }
}

impl Truth {
    /// Whether more facts could still make it so.
    pub fn is_possible(self) -> bool {
        self != Truth::No
    }

    /// Whether it is so for certain.
    pub fn is_certain(self) -> bool {
        self == Truth::Yes
    }

    /// Both, for the word `and`.
    pub fn and(self, other: Truth) -> Truth {
        match (self, other) {
            (Truth::No, _) | (_, Truth::No) => Truth::No,
            (Truth::Yes, Truth::Yes) => Truth::Yes,
            _ => Truth::Unknown,
        }
    }

    /// Either, for the word `or`.
    pub fn or(self, other: Truth) -> Truth {
        self.negated().and(other.negated()).negated()
    }

    /// The contrary, for the word `not`.
    pub fn negated(self) -> Truth {
        match self {
            Truth::No => Truth::Yes,
            Truth::Unknown => Truth::Unknown,
            Truth::Yes => Truth::No,
        }
    }
}

impl From<bool> for Truth {
    fn from(is_so: bool) -> Self {
        if is_so { Truth::Yes } else { Truth::No }
    }
}
