//! The values by which a server recognises a version of a page (RFC 9110 §8.8), kept to ask "has it
//! changed?" at the next visit.
//!
//! A stranger chose them and they go out in our requests, so they are parsed: no value of these
//! types can end a header line or grow a request beyond bounds.

use crate::Time;
use serde::{Deserialize, Serialize};
use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime},
};

/// An entity tag with its quotes, such as `"xyzzy"` or `W/"xyzzy"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ETag(Box<str>);

/// The date of a page's last change, to the second, as its server tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct LastModified {
    seconds: u64,
}

/// The text is not a validator that can be sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidValidator {
    /// The tag is longer than [`ETag::MAX_BYTES`].
    #[error("an ETag of more than {} bytes", ETag::MAX_BYTES)]
    TooLong,
    /// The tag is not visible ASCII between quotes.
    #[error("an ETag that is not visible ASCII between quotes")]
    NotATag,
    /// The date is none, or lies outside the years 1970 to 9999.
    #[error("a Last-Modified that is no date")]
    NotADate,
}

/// The validators of one version of a page.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Validators {
    /// The `ETag` header.
    pub etag: Option<ETag>,
    /// The `Last-Modified` header.
    pub last_modified: Option<LastModified>,
}

impl ETag {
    /// Longest tag that is kept, in bytes. Most are 10 to 40; those of some large sites reach 100.
    pub const MAX_BYTES: usize = 256;

    /// The tag as it is sent, with its quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ETag {
    type Err = InvalidValidator;

    fn from_str(text: &str) -> Result<Self, InvalidValidator> {
        if text.len() > Self::MAX_BYTES {
            return Err(InvalidValidator::TooLong);
        }
        let quoted = text.strip_prefix("W/").unwrap_or(text);
        let tag = quoted
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'))
            .ok_or(InvalidValidator::NotATag)?;
        let is_tag = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
        if !tag.bytes().all(is_tag) {
            return Err(InvalidValidator::NotATag);
        }
        Ok(ETag(text.into()))
    }
}

impl TryFrom<String> for ETag {
    type Error = InvalidValidator;

    fn try_from(text: String) -> Result<Self, InvalidValidator> {
        text.parse()
    }
}

impl From<ETag> for String {
    fn from(tag: ETag) -> String {
        tag.0.into()
    }
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl LastModified {
    /// The first second of the year 10000, which an HTTP date cannot name.
    const END_SECONDS: u64 = 253_402_300_800;

    /// The moment that the date names.
    pub const fn time(self) -> Time {
        Time::from_millis(self.seconds * 1000)
    }
}

impl FromStr for LastModified {
    type Err = InvalidValidator;

    /// Reads any of the three forms that RFC 9110 §5.6.7 allows.
    fn from_str(text: &str) -> Result<Self, InvalidValidator> {
        let date = httpdate::parse_http_date(text).map_err(|_| InvalidValidator::NotADate)?;
        let since_epoch = date.duration_since(SystemTime::UNIX_EPOCH);
        let since_epoch = since_epoch.map_err(|_| InvalidValidator::NotADate)?;
        since_epoch.as_secs().try_into()
    }
}

impl TryFrom<u64> for LastModified {
    type Error = InvalidValidator;

    fn try_from(seconds: u64) -> Result<Self, InvalidValidator> {
        if seconds < Self::END_SECONDS {
            Ok(LastModified { seconds })
        } else {
            Err(InvalidValidator::NotADate)
        }
    }
}

impl From<LastModified> for u64 {
    fn from(date: LastModified) -> u64 {
        date.seconds
    }
}

impl fmt::Display for LastModified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(self.seconds);
        fmt::Display::fmt(&httpdate::HttpDate::from(date), f)
    }
}

impl Validators {
    /// Reads the two headers of an answer. A value that cannot be sent back is left out: the next
    /// visit is then unconditional, which costs bytes and nothing else.
    pub fn read(etag: Option<&[u8]>, last_modified: Option<&[u8]>) -> Self {
        Validators {
            etag: etag.and_then(parsed),
            last_modified: last_modified.and_then(parsed),
        }
    }

    /// Whether a request with these would be unconditional.
    pub fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }

    /// The header that makes a request conditional, as name and value. The tag is preferred: it is
    /// exact, and a server that has one ignores the date (RFC 9110 §13.1.3).
    pub fn condition(&self) -> Option<(&'static str, String)> {
        let tag = self.etag.as_ref();
        tag.map(|tag| ("If-None-Match", tag.to_string()))
            .or_else(|| {
                let date = self.last_modified?;
                Some(("If-Modified-Since", date.to_string()))
            })
    }
}

fn parsed<T: FromStr>(value: &[u8]) -> Option<T> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_quoted_visible_ascii_of_bounded_length() {
        for good in ["\"\"", "\"xyzzy\"", "W/\"0-1,2;3\"", "W/\"a\""] {
            assert_eq!(good.parse::<ETag>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "*",
            "xyzzy",
            "\"",
            "w/\"a\"",
            "\"a\"b\"",
            "\"a b\"",
            "\"ä\"",
            "\"a\r\nHost: b\"",
            "\"a\u{7f}\"",
        ] {
            assert_eq!(bad.parse::<ETag>(), Err(InvalidValidator::NotATag), "{bad}");
        }
        let long = format!("\"{}\"", "x".repeat(ETag::MAX_BYTES - 1));
        assert_eq!(long.parse::<ETag>(), Err(InvalidValidator::TooLong));
    }

    #[test]
    fn dates_come_back_in_the_one_form_that_is_sent() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            let date: LastModified = text.parse().unwrap();
            assert_eq!(date.to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
            assert_eq!(date.time(), Time::from_millis(784_111_777_000));
        }
        for bad in [
            "",
            "yesterday",
            "0",
            "Sun, 06 Nov 1994 08:49:37 GMT\r\nX: y",
        ] {
            assert_eq!(
                bad.parse::<LastModified>(),
                Err(InvalidValidator::NotADate),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_strangers_bytes_are_checked_like_a_header() {
        let bytes = postcard::to_stdvec("\"a\r\nb\"").unwrap();
        assert!(postcard::from_bytes::<ETag>(&bytes).is_err());
        let bytes = postcard::to_stdvec(&u64::MAX).unwrap();
        assert!(postcard::from_bytes::<LastModified>(&bytes).is_err());
        let last = LastModified::END_SECONDS - 1;
        let date = LastModified::try_from(last).unwrap();
        assert_eq!(date.to_string(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }

    #[test]
    fn the_tag_makes_the_condition_and_otherwise_the_date() {
        let date = b"Sun, 06 Nov 1994 08:49:37 GMT";
        let both = Validators::read(Some(b" \"a\" "), Some(date));
        assert_eq!(both.condition(), Some(("If-None-Match", "\"a\"".into())));
        let dated = Validators::read(Some(b"a b"), Some(date));
        assert_eq!(
            dated.condition(),
            Some(("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT".into()))
        );
        let none = Validators::read(Some(b"\xff"), None);
        assert!(none.is_empty());
        assert_eq!(none.condition(), None);
    }
}
