//! The text that has changed between two versions of a page, for somebody who watches it.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// A line that is longer is shown around its change only.
const LONG_LINE_BYTES: usize = 300;
/// The words that are shown before and after such a change.
const AROUND: usize = 8;
/// Stands for words that are left out.
const LEFT_OUT: &str = "…";

/// The lines that came and went.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TextDelta {
    /// Lines that are new.
    pub added: String,
    /// Lines that are there no more.
    pub removed: String,
    /// Whether there was more than fits.
    pub is_cut: bool,
}

impl TextDelta {
    /// Bytes of both texts together.
    pub const MAX_BYTES: usize = 4096;

    /// The lines that differ. A line that only moved is no change.
    pub fn between(before: &str, after: &str) -> Self {
        let (added, removed) = (missing_in(before, after), missing_in(after, before));
        let is_paired = added.len() == removed.len();
        let narrowed = |mine: &[&str], other: &[&str]| -> Vec<String> {
            let lines = mine.iter().enumerate();
            let narrow = |(place, line): (usize, &&str)| match other.get(place) {
                Some(other) if is_paired => around_change(line, other),
                _ => (*line).to_owned(),
            };
            lines.map(narrow).collect()
        };
        let (new, gone) = (narrowed(&added, &removed), narrowed(&removed, &added));
        let length = |lines: &[String]| lines.iter().map(|line| line.len() + 1).sum::<usize>();
        let room = Self::MAX_BYTES - length(&gone).min(Self::MAX_BYTES / 4);
        let (added, cut_added) = fitting(&new, room);
        let (removed, cut_removed) = fitting(&gone, Self::MAX_BYTES - added.len());
        TextDelta {
            added,
            removed,
            is_cut: cut_added || cut_removed,
        }
    }

    /// The beginning of a text, where the one before is not known.
    pub fn beginning(text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let (added, is_cut) = fitting(&lines, Self::MAX_BYTES);
        TextDelta {
            added,
            removed: String::new(),
            is_cut,
        }
    }

    /// A stranger's delta, without anything that a terminal or a reader of feeds might obey; none if
    /// it is too long.
    pub fn checked(self) -> Option<Self> {
        let is_short = self.added.len() + self.removed.len() <= Self::MAX_BYTES;
        is_short.then(|| TextDelta {
            added: plain(&self.added),
            removed: plain(&self.removed),
            is_cut: self.is_cut,
        })
    }
}

/// The lines of a text that another one has not, or has fewer times.
fn missing_in<'a>(other: &'a str, text: &'a str) -> Vec<&'a str> {
    let mut there: HashMap<&'a str, usize> = HashMap::new();
    for line in other.lines() {
        *there.entry(line).or_default() += 1;
    }
    let is_missing = |line: &&'a str| match there.get_mut(*line) {
        Some(left) if *left > 0 => {
            *left -= 1;
            false
        }
        _ => true,
    };
    text.lines().filter(is_missing).collect()
}

/// The part of a long line in which it differs from another one, with a few words around it.
fn around_change(line: &str, other: &str) -> String {
    if line.len() <= LONG_LINE_BYTES {
        return line.to_owned();
    }
    let (mine, theirs): (Vec<&str>, Vec<&str>) =
        (line.split(' ').collect(), other.split(' ').collect());
    let same = |(mine, theirs): &(&&str, &&str)| mine == theirs;
    let begin = mine.iter().zip(&theirs).take_while(same).count();
    let shorter = mine.len().min(theirs.len());
    let end = mine.iter().rev().zip(theirs.iter().rev());
    let end = end.take(shorter - begin).take_while(same).count();
    let first = begin.saturating_sub(AROUND);
    let last = (mine.len() - end + AROUND).min(mine.len());
    let mut words = mine[first..last].join(" ");
    if first > 0 {
        words.insert_str(0, LEFT_OUT);
    }
    if last < mine.len() {
        words.push_str(LEFT_OUT);
    }
    words
}

/// The first lines that have room, each on its own line, and whether others had none.
fn fitting(lines: &[String], room: usize) -> (String, bool) {
    let mut text = String::new();
    for line in lines {
        let line = plain(line);
        let gap = usize::from(!text.is_empty());
        if text.len() + gap + line.len() > room {
            let left = room.saturating_sub(text.len() + gap + LEFT_OUT.len());
            let end = (0..=left).rev().find(|&end| line.is_char_boundary(end));
            let part = line.get(..end.unwrap_or(0)).unwrap_or("");
            if !part.is_empty() {
                text.push_str(if gap > 0 { "\n" } else { "" });
                text.push_str(part);
                text.push_str(LEFT_OUT);
            }
            return (text, true);
        }
        text.push_str(if gap > 0 { "\n" } else { "" });
        text.push_str(&line);
    }
    (text, false)
}

/// Text without characters that are not shown but obeyed: those of terminals, and those that turn
/// the direction of writing.
fn plain(text: &str) -> String {
    let is_obeyed = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().filter(|c| !is_obeyed(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn between(before: &str, after: &str) -> (String, String) {
        let TextDelta { added, removed, .. } = TextDelta::between(before, after);
        (added, removed)
    }

    fn pair(added: &str, removed: &str) -> (String, String) {
        (added.to_owned(), removed.to_owned())
    }

    #[test]
    fn lines_that_came_and_went_are_told_and_moved_ones_are_not() {
        assert_eq!(between("a\nb\nc", "a\nx\nc"), pair("x", "b"));
        assert_eq!(between("a\nb\nc", "c\nb\na"), pair("", ""));
        assert_eq!(between("a\na", "a\na\na"), pair("a", ""));
        assert_eq!(between("", "a\nb"), pair("a\nb", ""));
    }

    #[test]
    fn of_a_long_line_only_the_part_is_told_that_differs() {
        let words =
            |number: usize| format!("{} {number} {}", "old ".repeat(100), "end ".repeat(100));
        let (added, removed) = between(&words(1), &words(2));
        assert!(added.contains(" 2 ") && removed.contains(" 1 "), "{added}");
        assert!(added.len() < 100 && added.starts_with('…') && added.ends_with('…'));
        // One that only grew.
        let long = "word ".repeat(200);
        let (added, _) = between(long.trim(), &format!("{long}more"));
        assert!(added.ends_with("word more"), "{added}");
    }

    #[test]
    fn a_delta_is_never_too_long_and_says_that_it_is_cut() {
        let lines = |name: &str| {
            let line = |number| format!("{name} {number} ü");
            (0..2000).map(line).collect::<Vec<_>>().join("\n")
        };
        for (before, after) in [
            (lines("a"), lines("b")),
            (lines("a"), String::new()),
            ("x".to_owned(), "ü".repeat(9000)),
            ("ü".repeat(9000), lines("b")),
        ] {
            let delta = TextDelta::between(&before, &after);
            assert!(delta.is_cut);
            assert!(delta.added.len() + delta.removed.len() <= TextDelta::MAX_BYTES);
            assert_eq!(delta.clone().checked(), Some(delta));
        }
        assert!(TextDelta::beginning(&lines("a")).is_cut);
        assert_eq!(TextDelta::beginning("a\nb").added, "a\nb");
    }

    #[test]
    fn a_stranger_cannot_speak_to_the_terminal_or_at_length() {
        let of = |added: &str| TextDelta {
            added: added.to_owned(),
            ..TextDelta::default()
        };
        let checked = of("a\u{1b}[2Jb\u{202e}c\nd\r").checked().unwrap();
        assert_eq!(checked.added, "a[2Jbc\nd");
        assert_eq!(of(&"x".repeat(TextDelta::MAX_BYTES + 1)).checked(), None);
        assert_eq!(between("", "\u{7}bell"), pair("bell", ""));
    }
}
