//! URLs that lead into endless spaces: recognised by their looks alone, before they cost anyone a
//! request.
//!
//! A check must hardly ever hit an ordinary page, so each needs strong evidence, and what looks
//! endless but might not be (deep archives, long lists, combined filters) is left to the number of
//! URLs per host that admission allows. Nothing is remembered between two URLs.

use apoidea_model::{PageUrl, Time};

/// The reason why a URL is not followed; a counter for each tells the volunteer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum Trap {
    /// Longer than [`Trap::MAX_CHARS`].
    #[error("it is longer than {} characters", Trap::MAX_CHARS)]
    Length,
    /// More path segments than [`Trap::MAX_DEPTH`].
    #[error("its path is deeper than {} segments", Trap::MAX_DEPTH)]
    Depth,
    /// A path segment, or a parameter with its value, occurs more than [`Trap::MAX_REPEATS`] times:
    /// relative links that pile up.
    #[error("a part of it is repeated more than {} times", Trap::MAX_REPEATS)]
    Repetition,
    /// More query parameters than [`Trap::MAX_PARAMETERS`].
    #[error("it has more than {} query parameters", Trap::MAX_PARAMETERS)]
    Parameters,
    /// It names a visitor's session, so every visit finds the same pages under new URLs.
    /// [`without_session`] gives the URL that does not.
    #[error("it carries a session id")]
    Session,
    /// A date that only a calendar without an end leads to.
    #[error("it is a calendar page far from today")]
    Calendar,
}

impl Trap {
    /// Longest URL that is followed. Longer ones are hardly ever pages that somebody links to on
    /// purpose.
    pub const MAX_CHARS: usize = 1024;
    /// Most path segments.
    pub const MAX_DEPTH: usize = 20;
    /// Most occurrences of one path segment, or of one parameter with the same value.
    pub const MAX_REPEATS: usize = 2;
    /// Most query parameters: twice what the filters of a large shop come to.
    pub const MAX_PARAMETERS: usize = 20;
    /// Years ahead of today that are announced by someone, and not only counted up to by a
    /// calendar.
    pub const YEARS_AHEAD: u16 = 2;
    /// Years back that a calendar of events may have been kept. Older dates elsewhere are archives.
    pub const YEARS_BACK: u16 = 30;

    /// Refuses a URL that looks like a trap.
    pub fn check(url: &PageUrl, now: Time) -> Result<(), Trap> {
        if url.as_str().len() > Self::MAX_CHARS {
            return Err(Trap::Length);
        }
        if segments(url).count() > Self::MAX_DEPTH {
            return Err(Trap::Depth);
        }
        if parameters(url).count() > Self::MAX_PARAMETERS {
            return Err(Trap::Parameters);
        }
        if has_repeats(segments(url)) || has_repeats(parameters(url)) {
            return Err(Trap::Repetition);
        }
        if has_session(url) {
            return Err(Trap::Session);
        }
        if is_far_calendar(url, now) {
            return Err(Trap::Calendar);
        }
        Ok(())
    }
}

/// Whether a URL combines so many filters that there are endlessly many like it. A host has only so
/// many of these: they show the same things in other selections and orders.
pub(crate) fn is_combination(url: &PageUrl) -> bool {
    parameters(url).count() > PLAIN_PARAMETERS
}

/// Query parameters of a page that is meant to be found: what it is, of which list, which part of
/// it.
const PLAIN_PARAMETERS: usize = 3;

/// The same page under a URL without the session id that this one carries; `None` if it carries
/// none, or nothing usable remains.
pub fn without_session(url: &PageUrl) -> Option<PageUrl> {
    if !has_session(url) {
        return None;
    }
    let path: Vec<_> = url
        .path()
        .split('/')
        .filter(|segment| !is_session_segment(segment))
        .map(without_path_session)
        .collect();
    let query: Vec<_> = parameters(url)
        .filter(|pair| !is_session_pair(pair))
        .collect();
    let separator = if query.is_empty() { "" } else { "?" };
    let text = format!(
        "{}{}{separator}{}",
        url.origin(),
        path.join("/"),
        query.join("&")
    );
    PageUrl::parse(&text).ok()
}

/// The parts of the path; a final slash opens no further one.
fn segments(url: &PageUrl) -> impl Iterator<Item = &str> {
    let path = url.path();
    let path = path.strip_prefix('/').unwrap_or(path);
    let path = path.strip_suffix('/').unwrap_or(path);
    path.split('/')
}

/// The `name=value` pairs of the query.
fn parameters(url: &PageUrl) -> impl Iterator<Item = &str> {
    let query = url
        .path_and_query()
        .split_once('?')
        .map_or("", |(_, query)| query);
    query.split('&').filter(|pair| !pair.is_empty())
}

/// Whether something occurs too often. There are few parts, so comparing each with each is cheap.
fn has_repeats<'a>(parts: impl Iterator<Item = &'a str>) -> bool {
    let parts: Vec<_> = parts.collect();
    parts
        .iter()
        .any(|part| parts.iter().filter(|other| *other == part).count() > Trap::MAX_REPEATS)
}

fn has_session(url: &PageUrl) -> bool {
    parameters(url).any(is_session_pair)
        || segments(url)
            .any(|segment| is_session_segment(segment) || without_path_session(segment) != segment)
}

/// Names that sessions of Java, PHP, ASP, ColdFusion, osCommerce and Zen Cart go by, and nothing
/// else does.
const SESSION_NAMES: [&str; 7] = [
    "jsessionid",
    "phpsessid",
    "phpsessionid",
    "cftoken",
    "oscsid",
    "zenid",
    "aspsessionid",
];
/// Names that also stand for a story or a talk, unless the value is a token.
const AMBIGUOUS_NAMES: [&str; 7] = [
    "sid",
    "s",
    "session",
    "sessionid",
    "session_id",
    "sessid",
    "sess",
];
/// Shortest token that is taken for a session id; PHP's shortest has 22 characters, others at least
/// 16.
const MIN_TOKEN_CHARS: usize = 16;

fn is_session_pair(pair: &str) -> bool {
    let Some((name, value)) = pair.split_once('=').filter(|(_, value)| !value.is_empty()) else {
        return false;
    };
    let name = name.to_ascii_lowercase();
    // ASP appends letters of its own to the name.
    SESSION_NAMES.contains(&name.as_str())
        || name.starts_with("aspsessionid")
        || (AMBIGUOUS_NAMES.contains(&name.as_str()) && is_token(value))
}

/// Long, and letters and digits without a word's order.
fn is_token(value: &str) -> bool {
    value.len() >= MIN_TOKEN_CHARS
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
        && value.bytes().filter(u8::is_ascii_digit).count() * 8 >= value.len()
        && value.bytes().any(|b| b.is_ascii_alphabetic())
}

/// ASP.NET keeps the session in a path segment of its own: `/(S(lit3py55t21z5v55vlm25s55))/`.
fn is_session_segment(segment: &str) -> bool {
    let inner = segment
        .strip_prefix("(")
        .and_then(|rest| rest.strip_suffix("))"));
    inner
        .and_then(|rest| rest.rsplit_once("S("))
        .is_some_and(|(_, token)| {
            token.len() >= MIN_TOKEN_CHARS && token.bytes().all(|b| b.is_ascii_alphanumeric())
        })
}

/// Java keeps it behind a segment: `/page;jsessionid=0123456789ABCDEF`.
fn without_path_session(segment: &str) -> &str {
    match segment.split_once(';') {
        Some((page, parameters)) if parameters.split(';').any(is_session_pair) => page,
        _ => segment,
    }
}

/// Words in a path that announce a calendar.
const CALENDAR_WORDS: [&str; 8] = [
    "calendar",
    "kalender",
    "calendrier",
    "calendario",
    "agenda",
    "events",
    "veranstaltungen",
    "termine",
];
/// Years that a date far ahead is looked for in. Larger numbers are rather models or amounts; no
/// calendar gets there without passing through these.
const LAST_YEAR: u16 = 2199;
/// A clock that says less is a simulation's, or was never set.
const FIRST_YEAR: u16 = 2025;

fn is_far_calendar(url: &PageUrl, now: Time) -> bool {
    let this_year = year_of(now);
    let in_calendar = is_calendar(url);
    let is_far = |year: u16| {
        let ahead = year > this_year + Trap::YEARS_AHEAD && (in_calendar || year <= LAST_YEAR);
        ahead || (in_calendar && year + Trap::YEARS_BACK < this_year)
    };
    dated_segments(url).chain(dated_parameters(url)).any(is_far)
}

fn is_calendar(url: &PageUrl) -> bool {
    let named = |name| {
        parameters(url).any(|pair| {
            pair.split_once('=')
                .is_some_and(|(key, _)| is_key(key, name))
        })
    };
    segments(url).any(|segment| {
        CALENDAR_WORDS
            .iter()
            .any(|word| segment.eq_ignore_ascii_case(word))
    }) || (named("year") && named("month"))
}

/// Years of `/2031/05/` and `/2031-05-17/`.
fn dated_segments(url: &PageUrl) -> impl Iterator<Item = u16> {
    let next = segments(url).skip(1).chain([""]);
    segments(url)
        .zip(next)
        .filter_map(|(segment, next)| match year(segment) {
            Some(year) => is_month(next).then_some(year),
            None => year_of_date(segment),
        })
}

/// Years of `?date=2031-05`, and of `?year=2031`.
fn dated_parameters(url: &PageUrl) -> impl Iterator<Item = u16> {
    let pairs = parameters(url).filter_map(|pair| pair.split_once('='));
    pairs.filter_map(|(key, value)| {
        if is_key(key, "year") {
            year(value)
        } else {
            year_of_date(value)
        }
    })
}

/// Whether the parameter is the one of this name, perhaps under a plugin's prefix (`cal_year`,
/// `ajaxCalendar-month`)?
fn is_key(key: &str, name: &str) -> bool {
    let word = key.rsplit(['_', '-', '.']).next().unwrap_or(key);
    word.eq_ignore_ascii_case(name)
}

/// The year of `2031-05` or `2031-05-17`, if the text is nothing else.
fn year_of_date(text: &str) -> Option<u16> {
    let (first, rest) = text.split_once('-')?;
    let (month, day) = rest
        .split_once('-')
        .map_or((rest, None), |(month, day)| (month, Some(day)));
    let is_date = is_month(month) && day.is_none_or(|day| is_number(day, 1..=31));
    year(first).filter(|_| is_date)
}

fn year(text: &str) -> Option<u16> {
    let is_year = text.len() == 4 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&year| is_year && year >= 1000)
}

fn is_month(text: &str) -> bool {
    is_number(text, 1..=12)
}

fn is_number(text: &str, range: std::ops::RangeInclusive<u8>) -> bool {
    text.len() <= 2 && text.parse().is_ok_and(|number: u8| range.contains(&number))
}

/// The year by the mean length of one, which is off by a day at most.
fn year_of(now: Time) -> u16 {
    const MILLIS: u64 = 31_556_952_000;
    u16::try_from(1970 + now.as_millis() / MILLIS)
        .unwrap_or(LAST_YEAR)
        .clamp(FIRST_YEAR, LAST_YEAR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// June 2026.
    const NOW: Time = Time::from_millis(1_781_000_000_000);

    fn page(text: &str) -> PageUrl {
        PageUrl::parse(text).unwrap()
    }

    fn check(path: &str) -> Result<(), Trap> {
        Trap::check(&page(&format!("https://a.example{path}")), NOW)
    }

    #[test]
    fn ordinary_pages_pass() {
        for path in [
            "/",
            "/doc/std/collections/hash_map/struct.HashMap.html",
            "/wiki/Endless_loop",
            "/2026/06/09/news-of-the-day/",
            "/1887/05/12/the-daily-paper",
            "/events/2027/03/festival",
            "/events/1999/10/archive",
            "/calendar?month=7&year=2026",
            "/article?sid=24/01/01/123",
            "/conference?session=keynote&session_id=42",
            "/talks?session=the-quiet-architecture-of-bees",
            "/a/b/a/b",
            "/en/en/",
            "/search?q=a&page=2&sort=price&size=xl&size=l&size=m&color=red&brand=x",
            "/web/20240101000000/https://b.example/a//b",
            "/models/7200/12/manual",
            "/2077/game",
            "/shop/item/4711-05",
            "/?s=searching+for+something+long+enough",
            "/commit/0123456789abcdef0123456789abcdef01234567",
            "/a;b=c/d",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn each_limit_is_passed_by_one_more() {
        let long = |chars: usize| format!("/{}", "x".repeat(chars - "https://a.example/".len()));
        assert_eq!(check(&long(Trap::MAX_CHARS)), Ok(()));
        assert_eq!(check(&long(Trap::MAX_CHARS + 1)), Err(Trap::Length));
        let deep = |depth: usize| (0..depth).map(|i| format!("/{i}")).collect::<String>();
        assert_eq!(check(&deep(Trap::MAX_DEPTH)), Ok(()));
        assert_eq!(check(&format!("{}/", deep(Trap::MAX_DEPTH))), Ok(()));
        assert_eq!(check(&deep(Trap::MAX_DEPTH + 1)), Err(Trap::Depth));
        let query = |count: usize| {
            format!(
                "/?{}",
                (0..count).map(|i| format!("p{i}=1&")).collect::<String>()
            )
        };
        assert_eq!(check(&query(Trap::MAX_PARAMETERS)), Ok(()));
        assert_eq!(
            check(&query(Trap::MAX_PARAMETERS + 1)),
            Err(Trap::Parameters)
        );
    }

    #[test]
    fn piled_up_links_are_traps() {
        for path in ["/a/a/a", "/a/b/a/b/a/", "/x////", "/?p=1&p=1&p=1"] {
            assert_eq!(check(path), Err(Trap::Repetition), "{path}");
        }
    }

    #[test]
    fn sessions_are_recognised_and_removed() {
        for (path, without) in [
            ("/a;jsessionid=0123456789ABCDEF.node1?x=1", "/a?x=1"),
            ("/a?PHPSESSID=0jk2m3n4b5v6c7x8z9l0k1j2h3", "/a"),
            ("/a?x=1&PHPSESSID=abc&y=2", "/a?x=1&y=2"),
            ("/a?ASPSESSIONIDQABTCSDA=ABCDEFGHIJKLMNOPABCDEFGH", "/a"),
            ("/(S(lit3py55t21z5v55vlm25s55))/page.aspx", "/page.aspx"),
            (
                "/forum?s=0123456789abcdef0123456789abcdef&t=5",
                "/forum?t=5",
            ),
            ("/a?sid=4b1c7f0e9d8a4b1c7f0e9d8a", "/a"),
            ("/;jsessionid=1", "/"),
        ] {
            assert_eq!(check(path), Err(Trap::Session), "{path}");
            let url = without_session(&page(&format!("https://a.example{path}"))).unwrap();
            assert_eq!(url.path_and_query(), without);
            assert_eq!(Trap::check(&url, NOW), Ok(()), "nothing is left of it");
        }
        assert_eq!(without_session(&page("https://a.example/a?x=1")), None);
    }

    #[test]
    fn calendars_end_somewhere() {
        for path in [
            "/2031/05/",
            "/events/2029/1/",
            "/calendar/2029-05-17",
            "/calendar/1971/02/",
            "/cal.php?month=2&year=2044",
            "/cal.php?cal_month=2&cal_year=1970",
            "/list?date=2033-12-01",
            "/agenda/9999/12/31",
        ] {
            assert_eq!(check(path), Err(Trap::Calendar), "{path}");
        }
    }

    #[test]
    fn a_clock_that_was_never_set_makes_no_calendars() {
        let url = page("https://a.example/2026/06/09/news");
        assert_eq!(Trap::check(&url, Time::ZERO), Ok(()));
        assert_eq!(Trap::check(&url, Time::NEVER), Ok(()));
    }
}
