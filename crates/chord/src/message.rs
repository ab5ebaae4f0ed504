//! What peers say to each other to keep the ring and to find owners.
//!
//! The transport authenticates who speaks; a message therefore never names its sender. Lists travel
//! only when they have changed: both sides remember a [`Version`]. Whether an answer makes sense is
//! judged where it is used.

use crate::{
    Contact,
    contact::{Addresses, Contacts},
};
use apoidea_model::Key;
use serde::{Deserialize, Serialize};

/// Ties a response to its request; chosen by the asker and meaningless to anyone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u32);

/// Which state of a list the other side has already seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version(pub u32);

/// One message of the ring's protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Wants a response.
    Request(RequestId, Request),
    /// Answers a request.
    Response(RequestId, Response),
    /// Wants no answer.
    Notice(Notice),
}

/// A question to another peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Are you there?
    Ping,
    /// You are my first successor: tell me your neighbours, and consider me as your predecessor.
    Stabilize {
        /// How to reach the asker.
        addresses: Addresses,
        /// The state of the successor list that the asker has from this peer.
        known: Option<Version>,
        /// The asker's predecessors, nearest first, where they changed since the last acknowledged
        /// time.
        predecessors: Option<Contacts>,
    },
    /// Tell me your neighbours, without considering me.
    Neighbours,
    /// Who owns this key, or who is nearer to it?
    Find {
        /// The key.
        key: Key,
        /// How many successors of the owner to name, for the replicas.
        successors: u8,
    },
    /// We are few: I am a member; compare our rosters.
    Roster {
        /// How to reach the asker.
        addresses: Addresses,
        /// Sum over the asker's roster; the same sum means the same members.
        digest: u64,
    },
    /// I am a member, and perhaps your neighbour; are you there?
    Hello {
        /// How to reach the asker.
        addresses: Addresses,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Response {
    /// To `Ping` and `Hello`: here.
    Alive,
    /// To a question about state: ask again in a moment, the state is just changing.
    Busy,
    /// Alive, but without a position on the ring.
    Absent,
    /// To `Stabilize` and `Neighbours`.
    Neighbours {
        /// The predecessor, as the asker needs to know it.
        predecessor: Predecessor,
        /// The successor list.
        successors: Successors,
        /// Does the answerer keep the full membership?
        scale: Scale,
    },
    /// To `Find`: the key is in the answerer's arc, which begins after `from`.
    Owner {
        /// Exclusive start of the answerer's arc.
        from: Key,
        /// The peers after it, nearest first.
        successors: Contacts,
    },
    /// To `Find`: not mine; these are nearer.
    Closer {
        /// Peers before the key, nearest to it first.
        before: Contacts,
        /// Peers at or after the key, nearest to it first.
        after: Contacts,
    },
    /// To `Roster`: the other members, or none if the rosters are the same.
    Roster {
        /// The answerer's roster.
        members: Contacts,
    },
}

/// A statement to which no one answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// I am going; these were my neighbours.
    Leaving {
        /// Who was before me.
        predecessor: Option<Contact>,
        /// Who was after me, nearest first.
        successors: Contacts,
    },
    /// There is another ring; look yourself up through this peer.
    OtherRing {
        /// A member of the other ring.
        through: Contact,
    },
}

/// A predecessor in the few bytes that it usually needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Predecessor {
    /// None is known yet.
    Unknown,
    /// It is the asker.
    You,
    /// It is this peer.
    Peer(Contact),
}

/// A successor list, or that it has not changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Successors {
    /// It is the one that the asker knows.
    Unchanged,
    /// It is this one, nearest first.
    List(Version, Contacts),
}

/// How the answerer keeps the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scale {
    /// Few peers: every member knows every other.
    Small,
    /// Many: successors, predecessors and fingers.
    Large,
}

/// What a message is about, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Liveness.
    Ping,
    /// Keeping successors and predecessor right.
    Stabilize,
    /// Reading neighbours, when joining or adopting a successor.
    Neighbours,
    /// One hop of a lookup.
    Find,
    /// Comparing and verifying the members of a small ring.
    Roster,
    /// Any response.
    Response,
    /// Leaving, or another ring.
    Notice,
}

impl Message {
    /// Longest encoding of a valid message, in bytes; a transport may refuse anything longer
    /// unread.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// What it is about.
    pub fn kind(&self) -> Kind {
        match self {
            Message::Request(_, request) => request.kind(),
            Message::Response(..) => Kind::Response,
            Message::Notice(_) => Kind::Notice,
        }
    }
}

impl Request {
    /// What it is about.
    pub fn kind(&self) -> Kind {
        match self {
            Request::Ping => Kind::Ping,
            Request::Stabilize { .. } => Kind::Stabilize,
            Request::Neighbours => Kind::Neighbours,
            Request::Find { .. } => Kind::Find,
            Request::Roster { .. } | Request::Hello { .. } => Kind::Roster,
        }
    }
}

impl Kind {
    /// Every kind, in the order of their counters.
    pub const ALL: [Kind; 7] = [
        Kind::Ping,
        Kind::Stabilize,
        Kind::Neighbours,
        Kind::Find,
        Kind::Roster,
        Kind::Response,
        Kind::Notice,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::PeerId;

    #[test]
    fn the_longest_message_fits_its_bound() {
        let address = "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
            .parse()
            .unwrap();
        let contact = Contact::new(PeerId::at(Key::hash("a")), &[address; Addresses::MAX]);
        let all = || Contacts::new(vec![contact.clone(); Contacts::MAX]);
        let longest = Message::Response(
            RequestId(u32::MAX),
            Response::Closer {
                before: all(),
                after: all(),
            },
        );
        let bytes = postcard::to_stdvec(&longest).unwrap();
        assert!(bytes.len() <= Message::MAX_BYTES, "{}", bytes.len());
        assert_eq!(postcard::from_bytes::<Message>(&bytes).unwrap(), longest);
    }

    #[test]
    fn a_round_without_change_is_a_few_bytes() {
        let response = Message::Response(
            RequestId(1000),
            Response::Neighbours {
                predecessor: Predecessor::You,
                successors: Successors::Unchanged,
                scale: Scale::Large,
            },
        );
        assert!(postcard::to_stdvec(&response).unwrap().len() <= 8);
    }
}
