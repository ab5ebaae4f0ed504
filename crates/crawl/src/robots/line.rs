//! The lines of a robots.txt, one field each.
//!
//! Line ends, comments, the byte-order mark and the misspellings that Google's parser forgives are
//! settled here; what the fields mean together is not.

use super::{Effect, Robots};
use std::time::Duration;

/// A line that says something.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    UserAgent(&'a str),
    /// A path may have any bytes, in whatever encoding the author's editor had.
    Rule(Effect, &'a [u8]),
    CrawlDelay(Duration),
    Sitemap(&'a str),
}

/// The complete lines among the bytes that are read, with their numbers. `\n`, `\r` and `\r\n` all
/// end a line.
pub(super) fn numbered_lines(file: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let mut rest = first_lines(file);
    let lines = std::iter::from_fn(move || {
        let end = rest.iter().position(|&b| is_line_end(b));
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        let at_end = rest.is_empty();
        rest = after
            .strip_prefix(b"\r\n")
            .or_else(|| after.get(1..))
            .unwrap_or_default();
        (!at_end).then_some(line)
    });
    (1..).zip(lines)
}

fn first_lines(file: &[u8]) -> &[u8] {
    if file.len() <= Robots::MAX_BYTES {
        return file;
    }
    let ends_there = is_line_end(file[Robots::MAX_BYTES]);
    let head = &file[..Robots::MAX_BYTES];
    let whole = head
        .iter()
        .rposition(|&b| is_line_end(b))
        .filter(|_| !ends_there);
    if ends_there {
        head
    } else {
        &head[..whole.unwrap_or(0)]
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

impl<'a> Field<'a> {
    /// Reads a line; `None` if it says nothing that we know.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let text = line
            .split(|&b| b == b'#')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        let (name, value) = split_field(text)?;
        let name = str::from_utf8(name).ok()?.to_ascii_lowercase();
        let as_text = || str::from_utf8(value).ok();
        match name.as_str() {
            "user-agent" | "useragent" | "user agent" => {
                Some(Field::UserAgent(leading_text(value)))
            }
            "allow" => Some(Field::Rule(Effect::Allow, value)),
            "disallow" | "dissallow" | "dissalow" | "disalow" | "diasllow" | "disallaw" => {
                Some(Field::Rule(Effect::Disallow, value))
            }
            "crawl-delay" | "crawldelay" => parse_delay(as_text()?).map(Field::CrawlDelay),
            "sitemap" | "site-map" => as_text().map(Field::Sitemap),
            _ => None,
        }
    }
}

/// The part before the first byte that is not text: a product token is ASCII and comes first.
fn leading_text(value: &[u8]) -> &str {
    value.utf8_chunks().next().map_or("", |chunk| chunk.valid())
}

/// Splits at the colon or, where there is none, between two words.
fn split_field(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_space = |b: &u8| matches!(b, b' ' | b'\t');
    if let Some(colon) = text.iter().position(|&b| b == b':') {
        return Some((text[..colon].trim_ascii(), text[colon + 1..].trim_ascii()));
    }
    let space = text.iter().position(is_space)?;
    let (name, value) = (&text[..space], text[space..].trim_ascii());
    (!value.iter().any(is_space)).then_some((name, value))
}

/// Reads a number of seconds, with or without a fraction and whatever follows it (`2.5`, `10 s`).
fn parse_delay(value: &str) -> Option<Duration> {
    let end = value
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(value.len());
    let seconds: f64 = value[..end].parse().ok()?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_end_ends_one_line() {
        let lines: Vec<_> = numbered_lines(b"\xef\xbb\xbfa\r\nb\rc\n\nd\r\r\ne").collect();
        let expected: [(u32, &[u8]); 7] = [
            (1, b"a"),
            (2, b"b"),
            (3, b"c"),
            (4, b""),
            (5, b"d"),
            (6, b""),
            (7, b"e"),
        ];
        assert_eq!(lines, expected);
        assert_eq!(numbered_lines(b"").count(), 0);
    }

    #[test]
    fn a_line_cut_off_at_the_limit_is_not_read() {
        let mut file = b"x\n".repeat(Robots::MAX_BYTES / 2 - 2);
        file.extend_from_slice(b"/ab\n/cd\n");
        assert_eq!(file.len(), Robots::MAX_BYTES + 4);
        let last = |file: &[u8]| numbered_lines(file).last().unwrap().1.to_vec();
        assert_eq!(last(&file), b"/ab");
        assert_eq!(last(&file[..Robots::MAX_BYTES - 1]), b"/ab");
        file.insert(0, b'\n');
        assert_eq!(last(&file), b"/ab", "its end lies exactly at the limit");
        file.insert(0, b'\n');
        assert_eq!(last(&file), b"x", "now it is cut");
        assert_eq!(
            numbered_lines(&b"x".repeat(Robots::MAX_BYTES + 1)).count(),
            0
        );
    }

    #[test]
    fn spellings_of_a_field_are_forgiven_and_other_lines_ignored() {
        let disallow = || Some(Field::Rule(Effect::Disallow, b"/x"));
        for line in [
            "Disallow: /x",
            "DISALLOW:/x#y",
            "\tdisallow :\t/x ",
            "disallow /x",
            "dissallow: /x",
        ] {
            assert_eq!(Field::read(line.as_bytes()), disallow(), "{line}");
        }
        for line in [
            "",
            "# Disallow: /x",
            "Disallow",
            "disallow /x /y",
            "Disallowed: /x",
            ": /x",
            "<html>",
        ] {
            assert_eq!(Field::read(line.as_bytes()), None, "{line}");
        }
        assert_eq!(
            Field::read(b"Disallow:"),
            Some(Field::Rule(Effect::Disallow, b""))
        );
        assert_eq!(
            Field::read(b"Useragent: a b"),
            Some(Field::UserAgent("a b"))
        );
        assert_eq!(
            Field::read(b"Sitemap: http://a/b"),
            Some(Field::Sitemap("http://a/b"))
        );
        assert_eq!(
            Field::read(b"Allow: /\xe9"),
            Some(Field::Rule(Effect::Allow, b"/\xe9"))
        );
        assert_eq!(
            Field::read(b"User-agent: a/\xe9"),
            Some(Field::UserAgent("a/"))
        );
    }

    #[test]
    fn a_delay_is_a_number_of_seconds() {
        for (value, millis) in [
            ("10", 10_000),
            ("0.5", 500),
            (".25", 250),
            ("2 seconds", 2000),
            ("0", 0),
        ] {
            assert_eq!(
                parse_delay(value),
                Some(Duration::from_millis(millis)),
                "{value}"
            );
        }
        for value in ["", "-1", "nan", "inf", "soon", ".", "1.2.3"] {
            assert_eq!(parse_delay(value), None, "{value}");
        }
        assert_eq!(parse_delay(&"9".repeat(400)), Some(Duration::MAX));
    }
}
