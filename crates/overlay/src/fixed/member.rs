//! A member of a fixed network, as its operator writes it into the settings.

use apoidea_model::PeerId;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// One member of a fixed network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// Who.
    #[serde(with = "spelled")]
    pub id: PeerId,
    /// Where.
    #[serde(default)]
    pub addresses: Vec<SocketAddr>,
    /// How much it takes on, relative to the others; 1 to [`Member::MAX_CAPACITY`].
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

/// An id as people copy it from one place to another: its hexadecimal digits.
mod spelled {
    use super::PeerId;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(id: &PeerId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(id)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PeerId, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
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
        assert_eq!((member.id, serde_json::to_string(&member).unwrap()), (id, text));
        let wrong = serde_json::from_str::<Member>(r#"{"id":"abc"}"#).unwrap_err().to_string();
        assert!(wrong.contains("64 hexadecimal digits"), "{wrong}");
    }
}
