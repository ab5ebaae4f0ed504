//! The messages by which peers keep the ring and find owners.
//!
//! The transport authenticates the sender, so a message never names it. Lists travel only when they
//! have changed: both sides remember a [`Version`]. The code that uses an answer judges whether it
//! makes sense.

use crate::{
    Contact, Seat,
    contact::{Contacts, Routes},
};
use apoidea_model::{Key, PeerId};
use serde::{Deserialize, Serialize};

/// Ties a response to its request; chosen by the asker and meaningless to anyone else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RequestId(pub u32);

/// The state of a list that the other side has already seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Version(pub u32);

/// One message of the ring's protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Wants a response.
    Request(RequestId, RingRequest),
    /// Answers a request, and says where the answerer sits: the asker may have heard otherwise.
    Response(RequestId, Seat, RingResponse),
    /// Wants no answer.
    Notice(Notice),
}

/// The word of an asker about itself. The asked peer compares the seat with the address at which
/// the asker speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Introduction {
    /// The ways to reach it.
    pub routes: Routes,
    /// Its seat.
    pub seat: Seat,
}

impl Introduction {
    /// This peer as a contact.
    pub(crate) fn of(&self, asker: PeerId) -> Contact {
        Contact::seated(asker, self.seat, self.routes.clone())
    }
}

impl From<&Contact> for Introduction {
    fn from(contact: &Contact) -> Self {
        Introduction {
            routes: contact.routes.clone(),
            seat: contact.seat(),
        }
    }
}

/// A question to another peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RingRequest {
    /// Asks whether the peer is alive.
    Ping,
    /// Asks the first successor for its neighbours, and to consider the asker as its predecessor.
    Stabilize {
        /// The asker's own word about itself.
        asker: Introduction,
        /// The state of the successor list that the asker has from this peer.
        known: Option<Version>,
        /// The asker's predecessors, nearest first, where they changed since the last acknowledged
        /// time.
        predecessors: Option<Contacts>,
    },
    /// Asks for the neighbours, without becoming one.
    Neighbours,
    /// Asks for the owner of this key, or for peers nearer to it.
    Find {
        /// The key.
        key: Key,
        /// The number of successors of the owner to name, for the replicas.
        successors: u8,
    },
    /// From a neighbour: asks for the nearest neighbours on both sides.
    Survey {
        /// The asker's own word about itself.
        asker: Introduction,
        /// The state of them that the asker has from this peer.
        known: Option<Version>,
    },
    /// From a member of a small ring: compares the two rosters.
    Roster {
        /// The asker's own word about itself.
        asker: Introduction,
        /// Sum over the asker's roster; the same sum means the same members.
        digest: u64,
    },
    /// From a member that may be a neighbour: asks whether the peer is alive.
    Hello {
        /// The asker's own word about itself.
        asker: Introduction,
    },
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RingResponse {
    /// To `Ping` and `Hello`: the peer is alive.
    Alive,
    /// To a question about state: the state is just changing, and the asker may ask again in a
    /// moment.
    Busy,
    /// Alive, but without a position on the ring.
    Absent,
    /// To a question that makes the asker a neighbour: its seat does not belong to the address at
    /// which it speaks, or its epoch is over.
    Misplaced,
    /// To `Stabilize` and `Neighbours`.
    Neighbours {
        /// The predecessor, as the asker needs to know it.
        predecessor: Predecessor,
        /// The successor list.
        successors: Successors,
        /// Whether the answerer keeps the full membership.
        scale: Scale,
    },
    /// To `Find`: the key is in the answerer's arc, which begins after `from`.
    Owner {
        /// Exclusive start of the answerer's arc.
        from: Key,
        /// The peers after it, nearest first.
        successors: Contacts,
    },
    /// To `Find`: the key is not in the answerer's arc, and these peers are nearer.
    Closer {
        /// Peers before the key, nearest to it first.
        before: Contacts,
        /// Peers at or after the key, nearest to it first.
        after: Contacts,
    },
    /// To `Survey`: the nearest predecessors and successors, each nearest first, with the state
    /// that they are; none if the asker knows it.
    Around(Option<(Version, Contacts, Contacts)>),
    /// To `Roster`: the other members, or none if the rosters are the same.
    Roster {
        /// The answerer's roster.
        members: Contacts,
    },
}

/// A statement that wants no answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// The sender leaves; these were its neighbours.
    Leaving {
        /// The leaving peer's predecessor.
        predecessor: Option<Contact>,
        /// The leaving peer's successors, nearest first.
        successors: Contacts,
    },
    /// There is another ring; the receiver should look itself up through this peer.
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
    /// It is the asker, who should tell its own predecessors once more.
    YouAgain,
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

/// The way in which the answerer keeps the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scale {
    /// Few peers: every member knows every other.
    Small,
    /// Many: successors, predecessors and fingers.
    Large,
}

/// The subject of a message, for counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MessageKind {
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
    pub const MAX_BYTES: usize = 26 * 1024;

    /// Its subject.
    pub fn kind(&self) -> MessageKind {
        match self {
            Message::Request(_, request) => request.kind(),
            Message::Response(..) => MessageKind::Response,
            Message::Notice(_) => MessageKind::Notice,
        }
    }
}

impl RingRequest {
    /// Its subject.
    pub fn kind(&self) -> MessageKind {
        match self {
            RingRequest::Ping => MessageKind::Ping,
            RingRequest::Stabilize { .. } | RingRequest::Survey { .. } => MessageKind::Stabilize,
            RingRequest::Neighbours => MessageKind::Neighbours,
            RingRequest::Find { .. } => MessageKind::Find,
            RingRequest::Roster { .. } | RingRequest::Hello { .. } => MessageKind::Roster,
        }
    }
}

impl MessageKind {
    /// Every kind, in the order of their counters.
    pub const ALL: [MessageKind; 7] = [
        MessageKind::Ping,
        MessageKind::Stabilize,
        MessageKind::Neighbours,
        MessageKind::Find,
        MessageKind::Roster,
        MessageKind::Response,
        MessageKind::Notice,
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prefix;
    use apoidea_model::Route;

    #[test]
    fn the_longest_message_fits_its_bound() {
        let address = "[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535"
            .parse()
            .unwrap();
        let relay = PeerId::at(Key::hash("b"));
        let seat = Seat::Bound {
            prefix: Prefix::V6([0xff; 6]),
            number: u8::MAX,
            epoch: u32::MAX,
        };
        for route in [address, Route::Via { relay }] {
            let contact = Contact::new(PeerId::at(Key::hash("a")), &[route; Routes::MAX]);
            fits(&contact.at(seat));
        }
    }

    fn fits(contact: &Contact) {
        let all = || Contacts::new(vec![contact.clone(); Contacts::MAX]);
        let longest = Message::Response(
            RequestId(u32::MAX),
            contact.seat(),
            RingResponse::Closer {
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
            Seat::Free,
            RingResponse::Neighbours {
                predecessor: Predecessor::You,
                successors: Successors::Unchanged,
                scale: Scale::Large,
            },
        );
        assert!(postcard::to_stdvec(&response).unwrap().len() <= 8);
    }
}
