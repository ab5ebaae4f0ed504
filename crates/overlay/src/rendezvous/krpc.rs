//! The messages of BitTorrent's DHT (BEP 5) that a client needs: two questions and their answers.
//!
//! A question's number has four bytes: the standard leaves their number open, but some nodes insist.
//! Questions say that this side answers none (BEP 43), so nobody keeps it as a node of the DHT.

use super::bencode::{Value, put_bytes};
use std::net::{Ipv4Addr, SocketAddrV4};

/// Nodes taken from one answer; eight are usual, some implementations tell twenty.
const MAX_NODES: usize = 20;
/// Announced addresses taken from one answer: about as many as fit into a datagram.
const MAX_VALUES: usize = 160;
/// Longest token that is sent back.
const MAX_TOKEN: usize = 64;

/// A position in the DHT: of a node, or of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Position(pub [u8; 20]);

impl Position {
    /// The distance of two positions, as Kademlia takes it.
    pub fn distance(self, other: Position) -> [u8; 20] {
        std::array::from_fn(|at| self.0[at] ^ other.0[at])
    }
}

/// The answer of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The number of the question.
    pub question: u32,
    /// The node's own position, as it says.
    pub node: Position,
    /// The word that lets this side announce itself there.
    pub token: Option<Vec<u8>>,
    /// Nodes nearer to the topic.
    pub nodes: Vec<(Position, SocketAddrV4)>,
    /// Addresses that were announced under the topic.
    pub announced: Vec<SocketAddrV4>,
}

/// The question for the addresses that were announced under a topic.
pub(super) fn ask(question: u32, me: Position, topic: Position) -> Vec<u8> {
    let mut out = b"d1:ad2:id".to_vec();
    put_bytes(&mut out, &me.0);
    out.extend_from_slice(b"9:info_hash");
    put_bytes(&mut out, &topic.0);
    out.extend_from_slice(b"e1:q9:get_peers2:roi1e");
    end(out, question)
}

/// The announcement of this side at a port, under a topic.
pub(super) fn announce(
    question: u32,
    me: Position,
    topic: Position,
    port: u16,
    token: &[u8],
) -> Vec<u8> {
    let mut out = b"d1:ad2:id".to_vec();
    put_bytes(&mut out, &me.0);
    out.extend_from_slice(b"12:implied_porti0e9:info_hash");
    put_bytes(&mut out, &topic.0);
    out.extend_from_slice(format!("4:porti{port}e5:token").as_bytes());
    put_bytes(&mut out, token);
    out.extend_from_slice(b"e1:q13:announce_peer2:roi1e");
    end(out, question)
}

fn end(mut out: Vec<u8>, question: u32) -> Vec<u8> {
    out.extend_from_slice(b"1:t");
    put_bytes(&mut out, &question.to_be_bytes());
    out.extend_from_slice(b"1:y1:qe");
    out
}

/// Reads an answer; none for anything else.
pub(super) fn read(datagram: &[u8]) -> Option<Answer> {
    let message = Value::read(datagram)?;
    let question = message.get("t")?.bytes()?.try_into().ok()?;
    let answer = message.get("r")?;
    let node = Position(answer.get("id")?.bytes()?.try_into().ok()?);
    let token = answer.get("token").and_then(Value::bytes);
    let nodes = answer.get("nodes").and_then(Value::bytes).unwrap_or(&[]);
    let nodes = nodes.chunks_exact(26).filter_map(|node| {
        let (position, address) = node.split_at(20);
        Some((Position(position.try_into().ok()?), compact(address)?))
    });
    let announced = answer.get("values").map_or(&[][..], Value::items).iter();
    let announced = announced.filter_map(|value| compact(value.bytes()?));
    Some(Answer {
        question: u32::from_be_bytes(question),
        node,
        token: token
            .filter(|token| token.len() <= MAX_TOKEN)
            .map(<[u8]>::to_vec),
        nodes: nodes.take(MAX_NODES).collect(),
        announced: announced.take(MAX_VALUES).collect(),
    })
}

fn compact(bytes: &[u8]) -> Option<SocketAddrV4> {
    let [a, b, c, d, high, low] = *<&[u8; 6]>::try_from(bytes).ok()?;
    let port = u16::from_be_bytes([high, low]);
    Some(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn questions_are_written_as_the_standard_says() {
        let (me, topic) = (Position([b'm'; 20]), Position([b't'; 20]));
        let asked = String::from_utf8(ask(0x6161_6161, me, topic)).unwrap();
        let (me20, t20) = ("m".repeat(20), "t".repeat(20));
        let expected =
            format!("d1:ad2:id20:{me20}9:info_hash20:{t20}e1:q9:get_peers2:roi1e1:t4:aaaa1:y1:qe");
        assert_eq!(asked, expected);
        let announced = String::from_utf8(announce(0x6162_6162, me, topic, 99, b"tok")).unwrap();
        let expected = format!(
            "d1:ad2:id20:{me20}12:implied_porti0e9:info_hash20:{t20}4:porti99e5:token3:toke\
             1:q13:announce_peer2:roi1e1:t4:abab1:y1:qe"
        );
        assert_eq!(announced, expected);
    }

    fn answer(nodes: usize, values: usize) -> Vec<u8> {
        let mut out = b"d1:rd2:id20:nnnnnnnnnnnnnnnnnnnn5:nodes".to_vec();
        put_bytes(
            &mut out,
            &[[b'x'; 20].as_slice(), &[9, 9, 9, 9, 0, 80]]
                .concat()
                .repeat(nodes),
        );
        out.extend_from_slice(b"5:token2:ok6:valuesl");
        (0..values).for_each(|_| put_bytes(&mut out, &[1, 2, 3, 4, 1, 0]));
        out.extend_from_slice(b"ee1:t4:aaaa1:y1:re");
        out
    }

    #[test]
    fn an_answer_is_read_and_bounded() {
        let read_back = read(&answer(2, 3)).unwrap();
        assert_eq!(read_back.question, 0x6161_6161);
        assert_eq!(read_back.token.as_deref(), Some(&b"ok"[..]));
        assert_eq!(read_back.nodes[1].1, "9.9.9.9:80".parse().unwrap());
        assert_eq!(read_back.announced, ["1.2.3.4:256".parse().unwrap(); 3]);
        let large = read(&answer(100, 5000)).unwrap();
        assert_eq!(
            (large.nodes.len(), large.announced.len()),
            (MAX_NODES, MAX_VALUES)
        );
        assert_eq!(
            read(b"d1:eli201e1:xe1:t4:aaaa1:y1:ee"),
            None,
            "an error is no answer"
        );
    }

    proptest! {
        #[test]
        fn strangers_answers_never_panic(
            at in 0usize..200, byte: u8, cut in 0usize..200,
        ) {
            let mut bytes = answer(2, 3);
            let at = at % bytes.len();
            bytes[at] = byte;
            bytes.truncate(bytes.len().saturating_sub(cut));
            let _ = read(&bytes);
        }
    }
}
