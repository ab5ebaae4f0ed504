//! The spelling of words and texts in expressions.

use super::token::is_bare;
use std::fmt;

/// Words that mean something by themselves, so a text that is one of them is quoted.
pub(super) const RESERVED: [&str; 5] = ["and", "or", "not", "all", "none"];

/// A text as an expression spells it: bare where that is clear, in quotation marks otherwise.
pub(super) fn quoted(text: &str) -> Quoted<'_> {
    Quoted(text)
}

/// See [`quoted`].
pub(super) struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = !self.0.is_empty()
            && self.0.chars().all(is_bare)
            && !RESERVED
                .iter()
                .any(|word| word.eq_ignore_ascii_case(self.0));
        if is_plain {
            return f.write_str(self.0);
        }
        f.write_str("\"")?;
        for character in self.0.chars() {
            if matches!(character, '"' | '\\') {
                f.write_str("\\")?;
            }
            write!(f, "{character}")?;
        }
        f.write_str("\"")
    }
}
