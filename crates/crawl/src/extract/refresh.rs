//! `<meta http-equiv=refresh content="5; url=/next">` (WHATWG HTML §4.2.5.3).

/// The reference that a refresh leads to; `None` if it reloads the page or is not understood.
pub(super) fn target(content: &str) -> Option<&str> {
    let after_time = content
        .trim_ascii_start()
        .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let has_time = after_time.len() < content.trim_ascii_start().len();
    let is_separated = after_time.starts_with([';', ','])
        || after_time.trim_ascii_start().len() < after_time.len();
    if !has_time || !is_separated {
        return None;
    }
    let rest = after_time.trim_ascii_start();
    let rest = rest
        .strip_prefix([';', ','])
        .unwrap_or(rest)
        .trim_ascii_start();
    let url = after_label(rest).unwrap_or(rest);
    let url = match url.chars().next()? {
        quote @ ('"' | '\'') => url[1..].split(quote).next()?,
        _ => url,
    };
    (!url.is_empty()).then_some(url)
}

/// The text that follows `url=`.
fn after_label(rest: &str) -> Option<&str> {
    let label = rest
        .get(..3)
        .filter(|label| label.eq_ignore_ascii_case("url"))?;
    Some(
        rest[label.len()..]
            .trim_ascii_start()
            .strip_prefix('=')?
            .trim_ascii_start(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_as_browsers_do() {
        for (content, expected) in [
            ("5; url=/next", Some("/next")),
            ("0;URL='/a b'x", Some("/a b")),
            ("0, url = \"/a", Some("/a")),
            (" 1.5 /next", Some("/next")),
            ("0;/next", Some("/next")),
            (".;url=x", Some("x")),
            ("0;urls=x", Some("urls=x")),
            ("5", None),
            ("5;", None),
            ("5; url=", None),
            ("5url=/next", None),
            ("url=/next", None),
            ("", None),
            ("0;é", Some("é")),
        ] {
            assert_eq!(target(content), expected, "{content:?}");
        }
    }
}
