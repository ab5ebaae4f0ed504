//! The door for messages of other peers, opened to the fuzzer by the feature `fuzzing`: each message
//! passes rights and answers, and the crawler does what it says to a real store.

use crate::crawler::door;
use apoidea_overlay::Kind;
use tokio::runtime::{Builder, Runtime};

/// A peer that waits for messages, and one other peer that lends and borrows with it.
pub struct Door {
    door: door::Door,
    runtime: Runtime,
}

impl Door {
    /// Starts the peer, with an empty store.
    pub fn open() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime of one thread starts");
        let door = runtime.block_on(door::Door::new());
        Door { door, runtime }
    }

    /// A message of every kind as an honest peer would send it: the number of the kind, and the
    /// bytes without their form.
    pub fn samples(&self) -> Vec<(u8, Vec<u8>)> {
        let samples = self.door.samples().into_iter();
        samples
            .map(|(kind, bytes)| (kind.as_byte(), bytes))
            .collect()
    }

    /// Replicas as an honest peer would give them.
    pub fn replicas(&self) -> Vec<u8> {
        self.door.replicas()
    }

    /// The other peer answers with these bytes when it is asked for its replicas.
    pub fn give(&self, parcels: &[u8]) {
        self.door.give(parcels.to_vec());
    }

    /// Brings a message of one of the possible senders, and gives whether it was taken.
    pub fn bring(&mut self, from: u8, kind: u8, body: &[u8]) -> bool {
        let senders = door::senders();
        let from = senders[usize::from(from) % senders.len()];
        let body = body.to_vec().into();
        let brought = self.door.bring(from, Kind::from_byte(kind), body);
        self.runtime.block_on(brought)
    }

    /// Everything that was taken is used, stored, and read again by the next process.
    pub fn close(self) {
        let Door { door, runtime } = self;
        runtime.block_on(door.use_all());
    }
}
