//! Small named values: counters, the archive's mark, and whatever else the peer wants to find
//! again.
//!
//! Names that begin with `#` are the store's own.

use crate::{Commit, ReadError, Store, archive::Mark, tables::Table};

const ARCHIVE_MARK: &str = "#archive";
pub(crate) const COMMITS: &str = "#commits";
pub(crate) const DOMAINS: &str = "#domains";
pub(crate) const HELD: &str = "#held";
pub(crate) const OUTBOX: &str = "#outbox";
pub(crate) const PAGES: &str = "#pages";

impl Store {
    /// The value last committed under a name.
    pub fn value(&self, name: &str) -> Result<Option<Vec<u8>>, ReadError> {
        self.read(|tables| {
            Ok(tables
                .space(Table::Values)
                .get(name)?
                .map(|value| value.to_vec()))
        })
    }

    /// The values whose names begin with `prefix`, in the order of their names.
    pub fn values(&self, prefix: &str, limit: usize) -> Result<Vec<(String, Vec<u8>)>, ReadError> {
        self.read(|tables| {
            let mut found = Vec::new();
            for entry in tables.space(Table::Values).prefix(prefix).take(limit) {
                let (name, value) = entry.into_inner()?;
                let text =
                    std::str::from_utf8(&name).map_err(|_| ReadError::corrupt("name", &name))?;
                found.push((text.to_owned(), value.to_vec()));
            }
            Ok(found)
        })
    }

    /// The archive's mark at the last commit; to be given to
    /// [`crate::archive::Archive::open`].
    pub fn archive_mark(&self) -> Result<Option<Mark>, ReadError> {
        let Some(bytes) = self.value(ARCHIVE_MARK)? else {
            return Ok(None);
        };
        let mark = postcard::from_bytes(&bytes);
        mark.map(Some)
            .map_err(|_| ReadError::corrupt("archive mark", ARCHIVE_MARK.as_bytes()))
    }

    pub(crate) fn counter(&self, name: &str) -> Result<u64, ReadError> {
        decode_counter(name, self.value(name)?.as_deref())
    }
}

pub(crate) fn decode_counter(name: &str, value: Option<&[u8]>) -> Result<u64, ReadError> {
    let Some(bytes) = value else { return Ok(0) };
    let bytes = bytes
        .try_into()
        .map_err(|_| ReadError::corrupt("counter", name.as_bytes()))?;
    Ok(u64::from_be_bytes(bytes))
}

impl Commit {
    /// Remembers a small value under a name that does not begin with `#`.
    pub fn set_value(&mut self, name: &str, value: &[u8]) {
        debug_assert!(!name.starts_with('#'), "names with # are the store's own");
        self.put(Table::Values, name.as_bytes().into(), value.into());
    }

    /// Forgets a named value.
    pub fn remove_value(&mut self, name: &str) {
        self.remove(Table::Values, name.as_bytes().into());
    }

    /// Declares everything up to `mark` as kept. Call [`crate::archive::Archive::sync`] first.
    pub fn set_archive_mark(&mut self, mark: &Mark) {
        let bytes = postcard::to_stdvec(mark).expect("a mark is two numbers and always serialises");
        self.put(Table::Values, ARCHIVE_MARK.as_bytes().into(), bytes.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::open;

    #[test]
    fn values_are_found_by_how_their_names_begin() {
        let (_folder, store) = open();
        let mut commit = Commit::new();
        for name in ["bee b", "bee a", "bees", "wasp a"] {
            commit.set_value(name, name.as_bytes());
        }
        store.commit(&commit).unwrap();
        let names = |prefix, limit| -> Vec<String> {
            store
                .values(prefix, limit)
                .unwrap()
                .into_iter()
                .map(|(name, _)| name)
                .collect()
        };
        assert_eq!(names("bee ", 9), ["bee a", "bee b"]);
        assert_eq!(names("bee", 2), ["bee a", "bee b"]);
        assert_eq!(names("hornet", 9), [""; 0]);
    }
}
