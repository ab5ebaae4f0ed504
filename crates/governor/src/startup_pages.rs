//! Giving back what only starting needed.
//!
//! A program with a window toolkit reads 40 MiB of its libraries' symbols and relocations while it
//! starts, and never again; the pages stay in its resident memory all the same. Those that nobody
//! can have changed are forgotten here and read again if they are needed after all.

/// Forgets the unchanged pages of the program's files. Elsewhere than on Linux there is nothing to
/// do.
pub fn forget() {
    #[cfg(target_os = "linux")]
    linux::forget();
}

#[cfg(target_os = "linux")]
mod linux {
    #![allow(unsafe_code)]

    use rustix::mm::{Advice, madvise};

    /// A mapping of a file that is as in the file.
    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct Unchanged {
        start: usize,
        length: usize,
    }

    pub(super) fn forget() {
        let Ok(maps) = std::fs::read_to_string("/proc/self/smaps") else {
            return;
        };
        for Unchanged { start, length } in unchanged(&maps) {
            // SAFETY: the mapping is of a file, private, not writable, and none of its pages was
            // ever changed, so that the next access reads the same bytes from the file. What the
            // dynamic linker writes to is writable until it is done.
            let _ = unsafe { madvise(start as *mut _, length, Advice::LinuxDontNeed) };
        }
    }

    /// The mappings of libraries and programs that nobody can write to and nobody has written to.
    pub(super) fn unchanged(maps: &str) -> Vec<Unchanged> {
        let mut found = Vec::new();
        let mut candidate = None;
        for line in maps.lines() {
            let mut words = line.split_ascii_whitespace();
            match (words.next(), words.next()) {
                (Some("Anonymous:"), Some("0")) => found.extend(candidate.take()),
                (Some("Anonymous:"), _) => candidate = None,
                (Some(range), Some("r--p" | "r-xp")) if line.contains(" /") => {
                    candidate = parse(range)
                }
                (Some(range), Some(_)) if range.contains('-') => candidate = None,
                _ => {}
            }
        }
        found
    }

    fn parse(range: &str) -> Option<Unchanged> {
        let (start, end) = range.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let (start, end) = (address(start)?, address(end)?);
        Some(Unchanged {
            start,
            length: end.checked_sub(start)?,
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const MAPS: &str = "\
7f0000000000-7f0000002000 r--p 00000000 08:01 42 /usr/lib/libclean.so
Rss: 8 kB
Anonymous:             0 kB
7f0000002000-7f0000003000 r--p 00002000 08:01 42 /usr/lib/librelocated.so
Anonymous:             4 kB
7f0000003000-7f0000004000 rw-p 00003000 08:01 42 /usr/lib/libdata.so
Anonymous:             0 kB
7f0000004000-7f0000005000 r--p 00000000 00:00 0
Anonymous:             0 kB
7f0000005000-7f0000006000 r--s 00000000 08:01 43 /usr/share/cache
Anonymous:             0 kB
7f0000006000-7f0000007000 r-xp 00000000 08:01 42 /usr/lib/libtext.so
Anonymous:             0 kB
";

        #[test]
        fn only_unchanged_private_pages_of_files_are_forgotten() {
            let expected = [(0x7f00_0000_0000, 0x2000), (0x7f00_0000_6000, 0x1000)];
            let found: Vec<_> = unchanged(MAPS)
                .into_iter()
                .map(|map| (map.start, map.length))
                .collect();
            assert_eq!(found, expected);
        }

        #[test]
        fn the_program_runs_on_after_it_forgot() {
            forget();
            assert_eq!(unchanged("nonsense\n-- r--p /\nAnonymous: 0 kB"), []);
        }
    }
}
