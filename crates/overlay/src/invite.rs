//! An invite: a link that names a network and a few of its peers with their addresses. Two people
//! with one invite have a network, without anybody else.
//!
//! `apoidea:` is followed by a version, the contents and a checksum in letters and digits that can be
//! read aloud, typed in either case, and packed tightly into a QR code. A checksum finds slips of the
//! pen; it proves nothing. The peers prove their ids when they are called.

use crate::{AddressPolicy, NetworkId};
use apoidea_chord::Contact;
use apoidea_model::{Key, PeerId, Route};
use serde::{Deserialize, Serialize};
use std::{fmt, net::SocketAddr, str::FromStr};

/// The scheme, with its colon.
const SCHEME: &str = "apoidea:";
/// The only version so far.
const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
/// Longer links are not looked at; the longest that is made has about 500 characters.
const MAX_CHARS: usize = 2000;
/// The digits of RFC 4648's base 32, in the case in which links are written.
const DIGITS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A network, and peers of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invite {
    /// The network's name. That of a private network is its secret.
    pub network: NetworkId,
    /// The addresses that its peers may dial.
    pub addresses: AddressPolicy,
    /// Peers of it.
    pub peers: Vec<InvitedPeer>,
}

/// A peer that an invite names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InvitedPeer {
    /// The peer.
    pub id: PeerId,
    /// The addresses at which it may be found.
    pub addresses: Vec<SocketAddr>,
}

/// Why a text is no invite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInvite {
    /// It is something else.
    #[error("this is no invite: one begins with {SCHEME}")]
    Other,
    /// Characters are missing, added or changed.
    #[error("the invite is damaged; copy all of it once more")]
    Damaged,
    /// Its version is not known.
    #[error(
        "the invite is of version {0}, made by a newer program; this one knows version {VERSION}"
    )]
    Newer(u8),
    /// It names nobody who may be called.
    #[error("the invite names no peer at an address of the Internet; ask for a new one")]
    Empty,
}

impl Invite {
    /// Peers that one invite names.
    pub const MAX_PEERS: usize = 4;
    /// Addresses of one peer.
    pub const MAX_ADDRESSES: usize = 4;

    /// An invite to a network by these peers; as many as fit.
    pub fn new(
        network: NetworkId,
        addresses: AddressPolicy,
        peers: impl IntoIterator<Item = InvitedPeer>,
    ) -> Self {
        let mut invite = Invite {
            network,
            addresses,
            peers: Vec::new(),
        };
        for mut peer in peers {
            peer.addresses.retain(|address| addresses.allows(*address));
            peer.addresses.truncate(Self::MAX_ADDRESSES);
            let is_known = invite.peers.iter().any(|known| known.id == peer.id);
            if !peer.addresses.is_empty() && !is_known && invite.peers.len() < Self::MAX_PEERS {
                invite.peers.push(peer);
            }
        }
        invite
    }

    /// The peers with the addresses that may be dialled, as contacts.
    pub fn contacts(&self) -> Vec<Contact> {
        let contact = |peer: &InvitedPeer| {
            let routes: Vec<Route> = peer.addresses.iter().copied().map(Route::from).collect();
            Contact::new(peer.id, &routes)
        };
        self.peers.iter().map(contact).collect()
    }

    /// The link in capital letters, which a QR code holds in less room.
    pub fn to_qr_text(&self) -> String {
        self.to_string().to_ascii_uppercase()
    }
}

impl fmt::Display for Invite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = vec![VERSION];
        bytes.extend(postcard::to_stdvec(self).map_err(|_| fmt::Error)?);
        let sum = checksum(&bytes);
        bytes.extend(sum);
        write!(f, "{SCHEME}{}", encode(&bytes))
    }
}

impl FromStr for Invite {
    type Err = InvalidInvite;

    fn from_str(text: &str) -> Result<Self, InvalidInvite> {
        let text = text.trim();
        let scheme = text.get(..SCHEME.len()).ok_or(InvalidInvite::Other)?;
        if !scheme.eq_ignore_ascii_case(SCHEME) || text.len() > MAX_CHARS {
            return Err(InvalidInvite::Other);
        }
        // Browsers like to add slashes behind a scheme, and mail programs break lines.
        let digits = text[SCHEME.len()..].trim_matches('/');
        let bytes = decode(digits).ok_or(InvalidInvite::Damaged)?;
        let (bytes, sum) = bytes
            .split_last_chunk::<CHECKSUM_BYTES>()
            .ok_or(InvalidInvite::Damaged)?;
        if checksum(bytes) != *sum {
            return Err(InvalidInvite::Damaged);
        }
        let (version, body) = bytes.split_first().ok_or(InvalidInvite::Damaged)?;
        if *version != VERSION {
            return Err(InvalidInvite::Newer(*version));
        }
        let invite: Invite = postcard::from_bytes(body).map_err(|_| InvalidInvite::Damaged)?;
        // Whoever made it may have named more than an invite holds, or addresses of a home network
        // in an invite to the open one.
        let invite = Invite::new(invite.network, invite.addresses, invite.peers);
        match invite.peers.is_empty() {
            true => Err(InvalidInvite::Empty),
            false => Ok(invite),
        }
    }
}

fn checksum(bytes: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let key = Key::hash([b"apoidea invite ".as_slice(), bytes].concat());
    std::array::from_fn(|at| key.as_bytes()[at])
}

fn encode(bytes: &[u8]) -> String {
    let (mut text, mut bits, mut count) = (String::new(), 0u32, 0);
    for &byte in bytes {
        (bits, count) = (bits << 8 | u32::from(byte), count + 8);
        while count >= 5 {
            count -= 5;
            text.push(char::from(DIGITS[(bits >> count & 31) as usize]));
        }
        bits &= (1 << count) - 1;
    }
    if count > 0 {
        text.push(char::from(DIGITS[(bits << (5 - count) & 31) as usize]));
    }
    text
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0u32, 0);
    for digit in text.bytes().filter(|digit| !digit.is_ascii_whitespace()) {
        let value = DIGITS
            .iter()
            .position(|known| *known == digit.to_ascii_lowercase())?;
        (bits, count) = (bits << 5 | value as u32, count + 5);
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    // What is left over is less than a digit, and nothing.
    (bits == 0 && count < 5).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn peer(n: u8, addresses: &[&str]) -> InvitedPeer {
        InvitedPeer {
            id: PeerId::at(Key::hash([n])),
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
        }
    }

    fn invite(addresses: AddressPolicy) -> Invite {
        let peers = [
            peer(
                1,
                &["5.1.0.1:27643", "[2a00::1]:27643", "192.168.1.7:27643"],
            ),
            peer(2, &["5.2.0.1:99"]),
        ];
        Invite::new("here".parse().unwrap(), addresses, peers)
    }

    #[test]
    fn an_invite_reads_back_however_it_is_written() {
        let invite = invite(AddressPolicy::Global);
        let link = invite.to_string();
        assert!(link.starts_with("apoidea:") && link.len() < 250, "{link}");
        let (start, end) = link.split_at(40);
        for text in [
            link.clone(),
            invite.to_qr_text(),
            format!("  {link}\n"),
            link.replace("apoidea:", "apoidea://"),
            format!("{start}\r\n {end}"),
        ] {
            assert_eq!(text.parse(), Ok(invite.clone()), "{text}");
        }
    }

    #[test]
    fn addresses_of_a_home_network_are_for_private_networks() {
        let open = invite(AddressPolicy::Global);
        assert_eq!(open.peers[0].addresses.len(), 2);
        let private = invite(AddressPolicy::Private);
        assert_eq!(private.peers[0].addresses.len(), 3);
        // A forger who leaves them in does not get far.
        let forged = Invite {
            addresses: AddressPolicy::Global,
            peers: vec![peer(1, &["192.168.1.1:80", "127.0.0.1:9"])],
            ..private
        };
        let read = forged.to_string().parse::<Invite>();
        assert_eq!(read, Err(InvalidInvite::Empty));
    }

    #[test]
    fn more_than_fits_is_left_out() {
        let addresses: Vec<String> = (1..=9).map(|n| format!("5.1.0.{n}:7")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let peers = (0..9).map(|n| peer(n % 5, &addresses)).collect();
        let large = Invite {
            network: "here".parse().unwrap(),
            addresses: AddressPolicy::Global,
            peers,
        };
        let read: Invite = large.to_string().parse().unwrap();
        assert_eq!(read.peers.len(), Invite::MAX_PEERS);
        assert!(read.peers.iter().all(|peer| peer.addresses.len() == 4));
        assert!(read.to_string().len() < 700);
    }

    #[test]
    fn a_bad_text_is_refused_with_the_reason() {
        let link = invite(AddressPolicy::Global).to_string();
        let cut = &link[..link.len() - 3];
        for (text, why) in [
            ("", InvalidInvite::Other),
            ("https://example.org/", InvalidInvite::Other),
            ("apoidea", InvalidInvite::Other),
            ("apoidéa:", InvalidInvite::Other),
            ("apoidea:", InvalidInvite::Damaged),
            ("apoidea:aa", InvalidInvite::Damaged),
            ("apoidea:1!", InvalidInvite::Damaged),
            (cut, InvalidInvite::Damaged),
            (&format!("{link}b"), InvalidInvite::Damaged),
            (&"apoidea:".repeat(1000), InvalidInvite::Other),
        ] {
            assert_eq!(text.parse::<Invite>(), Err(why), "{text}");
        }
        let mut newer = vec![2, 0];
        newer.extend(checksum(&[2, 0]));
        let newer = format!("{SCHEME}{}", encode(&newer));
        assert_eq!(newer.parse::<Invite>(), Err(InvalidInvite::Newer(2)));
    }

    proptest! {
        #[test]
        fn every_slip_of_the_pen_is_found(at in 8usize..100, digit in "[a-z2-7]") {
            let link = invite(AddressPolicy::Global).to_string();
            let mut slipped = link.clone();
            slipped.replace_range(at..=at, &digit);
            prop_assume!(slipped != link);
            prop_assert_eq!(slipped.parse::<Invite>(), Err(InvalidInvite::Damaged));
        }

        #[test]
        fn strangers_links_never_panic(text in "apoidea:[a-z2-7]{0,200}") {
            let _ = text.parse::<Invite>();
        }
    }
}
