//! Arbitrary conversations with a ring: no panic, no growth, and its own invariants hold after
//! every step.

#![no_main]

use apoidea_chord::{
    RingAction, Contact, Contacts, RingEvent, Freshness, LookupId, Message, Notice, Predecessor, RequestId, Ring,
    RingRequest, RingResponse, Scale, Seat, Settings, Successors, Version, Introduction,
};
use apoidea_model::{Key, PeerId, Time};
use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
use std::time::Duration;

/// Actions that one event may lead to: a greeting to every member of the longest list, and a few
/// more.
const MOST_ACTIONS: usize = 200;
/// Requests of the ring that can still be answered.
const MOST_OPEN: usize = 512;

fuzz_target!(|bytes: &[u8]| {
    let mut words = Unstructured::new(bytes);
    let _ = Conversation::with(&mut words).and_then(|conversation| conversation.run(&mut words));
});

struct Conversation {
    ring: Ring,
    rng: Xoshiro256PlusPlus,
    now: Time,
    open: Vec<(PeerId, RequestId)>,
}

impl Conversation {
    fn with(words: &mut Unstructured<'_>) -> Result<Self> {
        let successors = words.int_in_range(2..=16)?;
        let settings = Settings { successors, cached_arcs: 4, ..Settings::default() };
        let rng = Xoshiro256PlusPlus::seed_from_u64(words.arbitrary()?);
        Ok(Conversation {
            ring: Ring::new(peer(100), settings),
            rng,
            now: Time::from_millis(1),
            open: Vec::new(),
        })
    }

    fn run(mut self, words: &mut Unstructured<'_>) -> Result<()> {
        while !words.is_empty() {
            let event = self.event(words)?;
            let actions = self.ring.handle(event, self.now, &mut self.rng);
            self.check(&actions);
            self.open.extend(actions.iter().filter_map(|action| match action {
                RingAction::Send(to, Message::Request(id, _)) => Some((to.id, *id)),
                _ => None,
            }));
            self.open.drain(..self.open.len().saturating_sub(MOST_OPEN));
        }
        Ok(())
    }

    fn event(&mut self, words: &mut Unstructured<'_>) -> Result<RingEvent> {
        Ok(match words.int_in_range(0..=11)? {
            0..=2 => self.answer(words)?,
            3 | 4 => {
                self.now = self.now + Duration::from_millis(u64::from(words.arbitrary::<u16>()?));
                RingEvent::Timeout
            }
            5 => RingEvent::Received(
                some_peer(words)?.id,
                None,
                Message::Request(RequestId(words.arbitrary()?), request(words)?),
            ),
            6 => RingEvent::Received(some_peer(words)?.id, None, Message::Notice(notice(words)?)),
            7 => RingEvent::Unreachable(some_peer(words)?.id),
            8 => RingEvent::Lookup {
                id: LookupId(words.arbitrary()?),
                key: some_peer(words)?.key(),
                count: usize::from(words.arbitrary::<u8>()?),
                freshness: if words.arbitrary()? { Freshness::Cached } else { Freshness::Fresh },
            },
            9 => match words.int_in_range(0..=3)? {
                0 => RingEvent::Leave,
                1 => RingEvent::Learned(contacts(words)?.into_vec()),
                2 => RingEvent::Redirected { by: some_peer(words)?.id },
                _ => RingEvent::Join(contacts(words)?.into_vec()),
            },
            10 => RingEvent::Received(
                some_peer(words)?.id,
                None,
                Message::Response(RequestId(words.arbitrary()?), Seat::Free, response(words)?),
            ),
            _ => self.raw(words)?,
        })
    }

    /// Something is said to a question that the ring has asked.
    fn answer(&mut self, words: &mut Unstructured<'_>) -> Result<RingEvent> {
        if self.open.is_empty() {
            return Ok(RingEvent::Timeout);
        }
        let (from, id) = self.open.swap_remove(words.choose_index(self.open.len())?);
        Ok(RingEvent::Received(from, None, Message::Response(id, Seat::Free, response(words)?)))
    }

    /// A message as it comes from the wire.
    fn raw(&mut self, words: &mut Unstructured<'_>) -> Result<RingEvent> {
        let (from, length) = (some_peer(words)?.id, words.arbitrary::<u8>()?);
        let length = usize::from(length).min(words.len());
        let message = postcard::from_bytes(words.bytes(length)?);
        Ok(message.map_or(RingEvent::Timeout, |message| RingEvent::Received(from, None, message)))
    }

    fn check(&self, actions: &[RingAction]) {
        assert!(actions.len() <= MOST_ACTIONS, "{} actions", actions.len());
        let me = self.ring.me().key();
        let mut last = me;
        assert!(self.ring.successors().len() <= Settings::MAX_SUCCESSORS);
        for successor in self.ring.successors() {
            assert!(
                successor.key() != me && successor.key().between(last, me),
                "{:?}",
                self.ring.successors()
            );
            last = successor.key();
        }
        for action in actions {
            if let RingAction::Send(to, message) = action {
                assert!(to.id != self.ring.me().id, "a message to oneself: {message:?}");
                let bytes = postcard::to_stdvec(message).expect("every message encodes");
                assert!(bytes.len() <= Message::MAX_BYTES);
                assert_eq!(&postcard::from_bytes::<Message>(&bytes).expect("and decodes"), message);
            }
        }
        let status = self.ring.status();
        assert!(status.size_estimate.is_finite() && status.size_estimate >= 1.0);
    }
}

fn peer(position: u8) -> Contact {
    let mut bytes = [0; 32];
    bytes[0] = position;
    Contact::new(PeerId::at(Key::from_bytes(bytes)), &["192.0.2.1:4433".parse().expect("an address")])
}

fn some_peer(words: &mut Unstructured<'_>) -> Result<Contact> {
    u8::arbitrary(words).map(peer)
}

fn contacts(words: &mut Unstructured<'_>) -> Result<Contacts> {
    let count = words.int_in_range(0..=40)?;
    let list: Result<Vec<Contact>> = (0..count).map(|_| some_peer(words)).collect();
    Ok(Contacts::new(list?))
}

fn some<T>(
    words: &mut Unstructured<'_>,
    make: impl FnOnce(&mut Unstructured<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if words.arbitrary()? { make(words).map(Some) } else { Ok(None) }
}

fn request(words: &mut Unstructured<'_>) -> Result<RingRequest> {
    let asker = Introduction::from(&peer(0));
    Ok(match words.int_in_range(0..=5)? {
        0 => RingRequest::Ping,
        1 => RingRequest::Neighbours,
        2 => RingRequest::Find { key: some_peer(words)?.key(), successors: words.arbitrary()? },
        3 => RingRequest::Roster { asker, digest: words.arbitrary()? },
        4 => RingRequest::Hello { asker },
        _ => RingRequest::Stabilize {
            asker,
            known: some(words, |words| words.arbitrary().map(Version))?,
            predecessors: some(words, contacts)?,
        },
    })
}

fn response(words: &mut Unstructured<'_>) -> Result<RingResponse> {
    Ok(match words.int_in_range(0..=6)? {
        0 => RingResponse::Alive,
        1 => RingResponse::Busy,
        2 => RingResponse::Absent,
        3 => RingResponse::Neighbours {
            predecessor: match words.int_in_range(0..=2)? {
                0 => Predecessor::Unknown,
                1 => Predecessor::You,
                _ => Predecessor::Peer(some_peer(words)?),
            },
            successors: match some(words, contacts)? {
                Some(list) => Successors::List(Version(words.arbitrary()?), list),
                None => Successors::Unchanged,
            },
            scale: if words.arbitrary()? { Scale::Small } else { Scale::Large },
        },
        4 => RingResponse::Owner { from: some_peer(words)?.key(), successors: contacts(words)? },
        5 => RingResponse::Closer { before: contacts(words)?, after: contacts(words)? },
        _ => RingResponse::Roster { members: contacts(words)? },
    })
}

fn notice(words: &mut Unstructured<'_>) -> Result<Notice> {
    Ok(match words.arbitrary()? {
        true => Notice::Leaving { predecessor: some(words, some_peer)?, successors: contacts(words)? },
        false => Notice::OtherRing { through: some_peer(words)? },
    })
}
