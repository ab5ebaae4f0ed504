//! A member of a fixed network, as its operator writes it into the settings.

use apoidea_model::PeerId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One member of a fixed network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The member.
    pub id: PeerId,
    /// The addresses at which it listens.
    #[serde(default)]
    pub addresses: Vec<SocketAddr>,
    /// Its share of the work, relative to the others; 1 to [`Member::MAX_CAPACITY`].
    #[serde(default = "one")]
    pub capacity: u8,
}

fn one() -> u8 {
    1
}

impl Member {
    /// Largest capacity, a hundred times the smallest.
    pub const MAX_CAPACITY: u8 = 100;
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::Key;

    #[test]
    fn an_id_is_written_with_the_digits_that_a_peer_shows() {
        let id = PeerId::at(Key::hash("a"));
        let text = format!(r#"{{"id":"{id}","addresses":["127.0.0.1:1"],"capacity":1}}"#);
        let member: Member = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (member.id, serde_json::to_string(&member).unwrap()),
            (id, text)
        );
        let wrong = serde_json::from_str::<Member>(r#"{"id":"abc"}"#)
            .unwrap_err()
            .to_string();
        assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
    }
}
