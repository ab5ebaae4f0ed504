//! Arbitrary conversations with a ring: no panic, no growth, and its own invariants hold after
//! every step.

#![no_main]

use apoidea_chord::{
    Action, Contact, Contacts, Event, Freshness, LookupId, Message, Notice, Predecessor, Request, RequestId,
    Response, Ring, Scale, Settings, Successors, Version,
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
                Action::Send(to, Message::Request(id, _)) => Some((to.id, *id)),
                _ => None,
            }));
            self.open.drain(..self.open.len().saturating_sub(MOST_OPEN));
        }
        Ok(())
    }

    fn event(&mut self, words: &mut Unstructured<'_>) -> Result<Event> {
        Ok(match words.int_in_range(0..=11)? {
            0..=2 => self.answer(words)?,
            3 | 4 => {
                self.now = self.now + Duration::from_millis(u64::from(words.arbitrary::<u16>()?));
                Event::Timeout
            }
            5 => Event::Received(
                some_peer(words)?.id,
                Message::Request(RequestId(words.arbitrary()?), request(words)?),
            ),
            6 => Event::Received(some_peer(words)?.id, Message::Notice(notice(words)?)),
            7 => Event::Unreachable(some_peer(words)?.id),
            8 => Event::Lookup {
                id: LookupId(words.arbitrary()?),
                key: some_peer(words)?.key(),
                count: usize::from(words.arbitrary::<u8>()?),
                freshness: if words.arbitrary()? { Freshness::Cached } else { Freshness::Fresh },
            },
            9 => match words.int_in_range(0..=3)? {
                0 => Event::Leave,
                1 => Event::Learned(contacts(words)?.into_vec()),
                2 => Event::Redirected { key: some_peer(words)?.key(), by: some_peer(words)?.id },
                _ => Event::Join(contacts(words)?.into_vec()),
            },
            10 => Event::Received(
                some_peer(words)?.id,
                Message::Response(RequestId(words.arbitrary()?), response(words)?),
            ),
            _ => self.raw(words)?,
        })
    }

    /// Something is said to a question that the ring has asked.
    fn answer(&mut self, words: &mut Unstructured<'_>) -> Result<Event> {
        if self.open.is_empty() {
            return Ok(Event::Timeout);
        }
        let (from, id) = self.open.swap_remove(words.choose_index(self.open.len())?);
        Ok(Event::Received(from, Message::Response(id, response(words)?)))
    }

    /// A message as it comes from the wire.
    fn raw(&mut self, words: &mut Unstructured<'_>) -> Result<Event> {
        let (from, length) = (some_peer(words)?.id, words.arbitrary::<u8>()?);
        let length = usize::from(length).min(words.len());
        let message = postcard::from_bytes(words.bytes(length)?);
        Ok(message.map_or(Event::Timeout, |message| Event::Received(from, message)))
    }

    fn check(&self, actions: &[Action]) {
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
            if let Action::Send(to, message) = action {
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

fn request(words: &mut Unstructured<'_>) -> Result<Request> {
    let addresses = peer(0).addresses;
    Ok(match words.int_in_range(0..=5)? {
        0 => Request::Ping,
        1 => Request::Neighbours,
        2 => Request::Find { key: some_peer(words)?.key(), successors: words.arbitrary()? },
        3 => Request::Roster { addresses, digest: words.arbitrary()? },
        4 => Request::Hello { addresses },
        _ => Request::Stabilize {
            addresses,
            known: some(words, |words| words.arbitrary().map(Version))?,
            predecessors: some(words, contacts)?,
        },
    })
}

fn response(words: &mut Unstructured<'_>) -> Result<Response> {
    Ok(match words.int_in_range(0..=6)? {
        0 => Response::Alive,
        1 => Response::Busy,
        2 => Response::Absent,
        3 => Response::Neighbours {
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
        4 => Response::Owner { from: some_peer(words)?.key(), successors: contacts(words)? },
        5 => Response::Closer { before: contacts(words)?, after: contacts(words)? },
        _ => Response::Roster { members: contacts(words)? },
    })
}

fn notice(words: &mut Unstructured<'_>) -> Result<Notice> {
    Ok(match words.arbitrary()? {
        true => Notice::Leaving { predecessor: some(words, some_peer)?, successors: contacts(words)? },
        false => Notice::OtherRing { through: some_peer(words)? },
    })
}
