//! Where a crawl begins, as the operator writes it: the list in the program, a file, or a list of
//! URLs, which may be empty.

use apoidea_model::PageUrl;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

/// The list in the program.
const BUILT_IN: &str = include_str!("../../../../assets/seeds.txt");
/// The word for it in the settings.
const WORD: &str = "built-in";
/// URLs of one list. A crawl needs a few hundred; each takes about a hundred bytes.
const MOST: usize = 10_000;

/// Where a crawl begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SeedSource {
    /// At the list in the program, and only if neither the volunteer nor the ring knows anything.
    #[default]
    BuiltIn,
    /// At the URLs of a file, one a line; lines that begin with `#` are for people.
    File(PathBuf),
    /// At these.
    List(Vec<PageUrl>),
}

/// Why a list of seeds cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SeedListError {
    /// The file cannot be read.
    #[error("cannot read the seeds in {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write the seeds in {}: {source}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A line is no URL that can be crawled.
    #[error("{place}, line {line}: {text:?} cannot be crawled: {why}")]
    Line {
        /// The list.
        place: String,
        /// The line's number, from 1.
        line: usize,
        /// The line.
        text: String,
        /// The reason.
        why: String,
    },
    /// The list is too long.
    #[error("{place} has more than {MOST} URLs; use `apoidea seed -` for more")]
    TooMany {
        /// The list.
        place: String,
    },
}

impl SeedSource {
    /// Begins at one more URL. A URL that somebody names takes the place of the list in the program.
    pub fn add(&mut self, url: PageUrl) -> Result<(), SeedListError> {
        let mut urls = match self {
            SeedSource::BuiltIn => Vec::new(),
            SeedSource::File(path) => read(path)?,
            SeedSource::List(urls) => std::mem::take(urls),
        };
        urls.push(url);
        *self = SeedSource::List(urls);
        Ok(())
    }

    /// The URLs.
    pub fn urls(&self) -> Result<Vec<PageUrl>, SeedListError> {
        match self {
            SeedSource::BuiltIn => parse(BUILT_IN, "the list in the program"),
            SeedSource::File(path) => read(path),
            SeedSource::List(urls) => Ok(urls.clone()),
        }
    }
}

fn read(path: &Path) -> Result<Vec<PageUrl>, SeedListError> {
    let text = fs::read_to_string(path).map_err(|source| SeedListError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text, &path.display().to_string())
}

/// Reads a list: one URL a line; empty lines and those that begin with `#` are for people.
pub(crate) fn parse(text: &str, place: &str) -> Result<Vec<PageUrl>, SeedListError> {
    let mut urls = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let url = PageUrl::parse(line).map_err(|error| SeedListError::Line {
            place: place.to_owned(),
            line: index + 1,
            text: line.chars().take(200).collect(),
            why: error.to_string(),
        })?;
        if urls.len() == MOST {
            return Err(SeedListError::TooMany {
                place: place.to_owned(),
            });
        }
        urls.push(url);
    }
    Ok(urls)
}

impl Serialize for SeedSource {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SeedSource::BuiltIn => serializer.serialize_str(WORD),
            SeedSource::File(path) => path.serialize(serializer),
            SeedSource::List(urls) => urls.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for SeedSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Written)
    }
}

struct Written;

impl<'de> de::Visitor<'de> for Written {
    type Value = SeedSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of URLs, a file's name, or {WORD:?}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<SeedSource, E> {
        match text {
            WORD => Ok(SeedSource::BuiltIn),
            "" => Err(E::custom(format!(
                "an empty name; write [] for no seeds, or {WORD:?}"
            ))),
            // One URL without brackets is taken for a list by everybody but a parser.
            url if url.contains("://") => Err(E::custom(format!("write [{url:?}] for one URL"))),
            path => Ok(SeedSource::File(path.into())),
        }
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<SeedSource, A::Error> {
        let mut urls = Vec::new();
        while let Some(url) = list.next_element()? {
            urls.push(url);
        }
        Ok(SeedSource::List(urls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Domain;
    use std::collections::BTreeSet;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Section {
        seeds: SeedSource,
    }

    fn section(value: &str) -> Result<SeedSource, String> {
        let section: Result<Section, _> = toml::from_str(&format!("seeds = {value}"));
        let section = section.map_err(|error| error.to_string())?;
        let written = toml::to_string(&section).unwrap();
        assert_eq!(toml::from_str::<Section>(&written).unwrap(), section);
        Ok(section.seeds)
    }

    #[test]
    fn an_operator_writes_the_word_a_file_or_a_list() {
        assert_eq!(section("\"built-in\""), Ok(SeedSource::BuiltIn));
        assert_eq!(section("\"/a/b\""), Ok(SeedSource::File("/a/b".into())));
        assert_eq!(section("[]"), Ok(SeedSource::List(Vec::new())));
        let url = PageUrl::parse("https://a.example/").unwrap();
        let list = section("[\"https://a.example/\"]");
        assert_eq!(list, Ok(SeedSource::List(vec![url])));
        assert!(section("[\"mailto:x\"]").unwrap_err().contains("only http"));
        let one = section("\"https://a.example/\"").unwrap_err();
        assert!(one.contains("write [\"https://a.example/\"]"), "{one}");
        assert!(section("\"\"").unwrap_err().contains("[] for no seeds"));
        assert!(section("7").unwrap_err().contains("a list of URLs"));
    }

    #[test]
    fn the_list_in_the_program_leads_all_over_the_world() {
        let urls = SeedSource::BuiltIn.urls().unwrap();
        assert!((300..1000).contains(&urls.len()), "{}", urls.len());
        let hosts: BTreeSet<Domain> = urls.iter().map(|url| url.domain()).collect();
        assert_eq!(hosts.len(), urls.len(), "each host once");
        let countries: BTreeSet<&str> = hosts
            .iter()
            .filter_map(|host| host.as_str().rsplit('.').next())
            .collect();
        assert!(countries.len() >= 100, "{}: {countries:?}", countries.len());
        let is_language = |host: &&Domain| host.as_str().ends_with(".wikipedia.org");
        let languages = hosts.iter().filter(is_language).count();
        assert!((40..80).contains(&languages), "{languages}");
        for url in &urls {
            let text = url.to_string();
            assert!(
                text.starts_with("https://") && text.ends_with('/'),
                "{text}"
            );
            assert_eq!(text.matches('/').count(), 3, "a front page: {text}");
        }
    }

    #[test]
    fn the_list_in_the_program_is_written_as_it_is_read() {
        let lines: Vec<&str> = BUILT_IN.lines().collect();
        let is_for_people = |line: &&&str| line.is_empty() || line.starts_with('#');
        let written = lines.iter().filter(|line| !is_for_people(line));
        let written: Vec<&str> = written.copied().collect();
        let read = SeedSource::BuiltIn.urls().unwrap();
        let read: Vec<String> = read.iter().map(PageUrl::to_string).collect();
        assert_eq!(written, read, "canonical, without spaces");
        assert!(BUILT_IN.ends_with("/\n") && !BUILT_IN.contains("\n\n\n"));
    }

    #[test]
    fn a_bad_line_is_told_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seeds.txt");
        let file = SeedSource::File(path.clone());
        let missing = file.urls().unwrap_err().to_string();
        assert!(missing.contains("seeds.txt"), "{missing}");
        fs::write(&path, "# mine\n\nhttps://a.example/\n  ftp://b.example/ \n").unwrap();
        let wrong = file.urls().unwrap_err().to_string();
        for part in ["seeds.txt", "line 4", "ftp://b.example/", "only http"] {
            assert!(wrong.contains(part), "{part}: {wrong}");
        }
        let many = "https://a.example/\n".repeat(MOST + 1);
        let refused = parse(&many, "x").unwrap_err().to_string();
        assert!(refused.contains("more than 10000"), "{refused}");
    }

    #[test]
    fn a_url_that_somebody_names_takes_the_place_of_the_list_in_the_program() {
        let url = |text: &str| PageUrl::parse(text).unwrap();
        let mut source = SeedSource::default();
        source.add(url("https://a.example/")).unwrap();
        source.add(url("https://b.example/")).unwrap();
        assert_eq!(source.urls().unwrap().len(), 2);
    }
}
