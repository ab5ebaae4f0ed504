//! The domains that the volunteer refuses, as the store remembers them.

use apoidea_model::Domain;
use apoidea_store::{Commit, ReadError, Store};
use std::collections::BTreeSet;

const REFUSED_VALUE: &str = "refused";

/// Reads the refused domains.
pub(crate) fn read(store: &Store) -> Result<BTreeSet<Domain>, ReadError> {
    let stored = store.value(REFUSED_VALUE)?.unwrap_or_default();
    Ok(serde_json::from_slice(&stored).unwrap_or_default())
}

/// Writes them with a commit.
pub(crate) fn write(refused: &BTreeSet<Domain>, commit: &mut Commit) {
    let bytes = serde_json::to_vec(refused).expect("names always serialise");
    commit.set_value(REFUSED_VALUE, &bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let refused = BTreeSet::from(["a.test".parse().unwrap(), "b.test".parse().unwrap()]);
        let store = Store::open(folder.path(), Default::default()).unwrap();
        assert_eq!(read(&store).unwrap(), BTreeSet::new());
        let mut commit = Commit::new();
        write(&refused, &mut commit);
        store.commit(&commit).unwrap();
        assert_eq!(read(&store).unwrap(), refused);
    }
}
