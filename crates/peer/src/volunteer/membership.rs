//! The network that the volunteer has joined by an invite, or founded. It counts from the next start
//! on, in place of the one that the settings name.

use crate::{config::NetworkConfig, volunteer::preferences_file::replace};
use apoidea_overlay::{AddressPolicy, EntryPlace, EntryPoint, Invite, NetworkId};
use serde::{Deserialize, Serialize};
use std::{fs, io, path::Path};

/// The file in the data folder.
const FILE: &str = "network.json";
/// Letters and digits of a founded network's name that nobody guesses.
const SECRET_CHARS: usize = 26;

/// The network that the volunteer chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Its name.
    pub name: NetworkId,
    /// Is it a private one?
    pub is_private: bool,
    /// Peers of it.
    pub entry_points: Vec<EntryPoint>,
}

/// Why a network cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// The name cannot be one.
    #[error("a private network's name is 1 to {most} letters, digits, dots, dashes and underscores",
        most = NetworkId::MAX_CHARS - SECRET_CHARS - 1)]
    Name,
    /// The file cannot be used.
    #[error("cannot use the network in {file}: {source}")]
    File {
        /// The file.
        file: String,
        /// The cause.
        source: io::Error,
    },
}

impl Membership {
    /// The network of an invite.
    pub fn of(invite: &Invite) -> Self {
        let peers = invite.peers.iter();
        let entry_points = peers.flat_map(|peer| {
            let addresses = peer.addresses.iter();
            addresses.map(|address| EntryPoint {
                id: Some(peer.id),
                place: EntryPlace::Address(*address),
            })
        });
        Membership {
            name: invite.network.clone(),
            is_private: invite.addresses == AddressPolicy::Private,
            entry_points: entry_points.collect(),
        }
    }

    /// A private network of one's own. Its name ends with a secret, which only its invites carry.
    pub fn found(name: &str) -> Result<Self, MembershipError> {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let is_name = !name.is_empty() && name.chars().all(is_letter);
        let key = apoidea_model::Key::from_bytes(rand::random());
        let secret = key.to_string();
        let name = format!("{name}-{}", &secret[..SECRET_CHARS]);
        let name = name.parse().ok().filter(|_| is_name);
        Ok(Membership {
            name: name.ok_or(MembershipError::Name)?,
            is_private: true,
            entry_points: Vec::new(),
        })
    }

    /// The network that was chosen last, if one was.
    pub fn load(folder: &Path) -> Result<Option<Self>, MembershipError> {
        let bytes = match fs::read(folder.join(FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|source| failed(folder, source))?,
        };
        let read = serde_json::from_slice(&bytes).map_err(io::Error::from);
        read.map(Some).map_err(|source| failed(folder, source))
    }

    /// Chooses this network from the next start on.
    pub fn save(&self, folder: &Path) -> Result<(), MembershipError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let written = bytes.and_then(|bytes| {
            fs::create_dir_all(folder)?;
            replace(&folder.join(FILE), &bytes)
        });
        written.map_err(|source| failed(folder, source))
    }

    /// Returns to the network of the settings, from the next start on.
    pub fn forget(folder: &Path) -> Result<(), MembershipError> {
        match fs::remove_file(folder.join(FILE)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(folder, error)),
            _ => Ok(()),
        }
    }

    /// Puts the choice in the settings' place.
    pub(crate) fn apply(self, network: &mut NetworkConfig) {
        network.name = self.name;
        network.is_private = self.is_private;
        network.entry_points.extend(self.entry_points);
    }
}

fn failed(folder: &Path, source: io::Error) -> MembershipError {
    MembershipError::File {
        file: folder.join(FILE).display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_founded_network_has_a_name_that_nobody_guesses() {
        let [one, other] = [(); 2].map(|()| Membership::found("family").unwrap());
        assert!(one.is_private && one.name.as_str().starts_with("family-"));
        assert_ne!(one.name, other.name);
        for wrong in ["", "a b", "ü", &"x".repeat(60)] {
            assert!(Membership::found(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_choice_survives_until_it_is_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let folder = &folder.path().join("new");
        assert_eq!(Membership::load(folder).unwrap(), None);
        let mut founded = Membership::found("family").unwrap();
        founded.entry_points = vec!["5.1.0.1:7".parse().unwrap()];
        founded.save(folder).unwrap();
        assert_eq!(Membership::load(folder).unwrap(), Some(founded.clone()));
        let mut config = NetworkConfig::default();
        founded.apply(&mut config);
        assert!(config.is_private && config.name.as_str().starts_with("family-"));
        assert_eq!(config.entry_points.len(), 1);
        fs::write(folder.join(FILE), "{").unwrap();
        let wrong = Membership::load(folder).unwrap_err().to_string();
        assert!(wrong.contains(FILE), "{wrong}");
        Membership::forget(folder).unwrap();
        assert_eq!(Membership::load(folder).unwrap(), None);
    }
}
