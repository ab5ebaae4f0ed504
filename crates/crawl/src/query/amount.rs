//! Times and sizes as people write them: `2d`, `500M`.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr, time::Duration};

/// A length of time, such as `90s`, `15m`, `4h` or `2d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(u64);

/// A number of bytes, such as `64k`, `500M` or `5G`, in powers of 1,000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Size(u64);

/// The text is no amount of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no {kind}; right is one such as {example}")]
pub struct InvalidAmount {
    text: String,
    kind: &'static str,
    example: &'static str,
}

const SPANS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
const SIZES: [(&str, u64); 5] = [
    ("T", 1_000_000_000_000),
    ("G", 1_000_000_000),
    ("M", 1_000_000),
    ("k", 1000),
    ("", 1),
];

impl Span {
    /// So many seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Span(seconds)
    }

    /// As a duration.
    pub const fn duration(self) -> Duration {
        Duration::from_secs(self.0)
    }
}

impl Size {
    /// In bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

/// A whole number with one of the units; an amount of nothing is none.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let is_it = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit.trim());
    let (_, factor) = units.iter().find(is_it)?;
    let number: u64 = number.parse().ok()?;
    number.checked_mul(*factor).filter(|amount| *amount > 0)
}

/// In the largest unit that leaves a whole number.
fn print(amount: u64, units: &[(&str, u64)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let whole = units
        .iter()
        .find(|(_, factor)| amount.is_multiple_of(*factor));
    let (unit, factor) = whole.copied().unwrap_or(("", 1));
    write!(f, "{}{unit}", amount / factor)
}

impl FromStr for Span {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        parse(text, &SPANS)
            .map(Span)
            .ok_or_else(|| invalid(text, "length of time", "90s, 15m, 4h or 2d"))
    }
}

impl FromStr for Size {
    type Err = InvalidAmount;

    fn from_str(text: &str) -> Result<Self, InvalidAmount> {
        parse(text, &SIZES)
            .map(Size)
            .ok_or_else(|| invalid(text, "size", "64k, 500M or 5G"))
    }
}

fn invalid(text: &str, kind: &'static str, example: &'static str) -> InvalidAmount {
    InvalidAmount {
        text: text.chars().take(40).collect(),
        kind,
        example,
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, &SPANS, f)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print(self.0, &SIZES, f)
    }
}

impl TryFrom<String> for Span {
    type Error = InvalidAmount;

    fn try_from(text: String) -> Result<Self, InvalidAmount> {
        text.parse()
    }
}

impl TryFrom<String> for Size {
    type Error = InvalidAmount;

    fn try_from(text: String) -> Result<Self, InvalidAmount> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> String {
        span.to_string()
    }
}

impl From<Size> for String {
    fn from(size: Size) -> String {
        size.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_printed() {
        for (text, seconds, printed) in [
            ("90s", 90, "90s"),
            ("15 m", 900, "15m"),
            ("48h", 172_800, "2d"),
            ("1D", 86_400, "1d"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.duration().as_secs(), seconds);
            assert_eq!(span.to_string(), printed);
        }
        for (text, bytes, printed) in [
            ("64k", 64_000, "64k"),
            ("1500M", 1_500_000_000, "1500M"),
            ("1001", 1001, "1001"),
        ] {
            let size: Size = text.parse().unwrap();
            assert_eq!((size.bytes(), size.to_string().as_str()), (bytes, printed));
        }
    }

    #[test]
    fn what_is_no_amount_is_told_what_would_be() {
        for text in [
            "",
            "2",
            "d",
            "-1d",
            "2w",
            "0s",
            "99999999999999999999d",
            "1.5h",
        ] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.to_string().contains("15m, 4h or 2d"), "{error}");
        }
        for text in ["", "M", "0", "5X", "18446744073709551615k"] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.to_string().contains("500M or 5G"), "{error}");
        }
    }
}
