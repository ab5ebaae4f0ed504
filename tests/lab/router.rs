//! The router: reads packets from all devices, holds each for its delay, and writes it to the
//! device of its destination.
//!
//! A thread reads each device, and one thread sends. It notes how late it sends, since a busy
//! machine would otherwise look like a slow network.

use super::{line::Line, place::Place};
use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap},
    net::Ipv4Addr,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock},
    thread,
    time::{Duration, Instant},
};
use tun_rs::SyncDevice;

/// Packets held at a time; more than that are lost, as in a router on the Internet.
const MAX_HELD: usize = 100_000;
/// The largest packet.
const PACKET: usize = 65_536;
/// Later than this counts.
const LATE: Duration = Duration::from_millis(5);
/// Later than this and a peer may notice.
const VERY_LATE: Duration = Duration::from_millis(50);
/// With a larger share of packets so late, a run says nothing about the peers.
const MOST_VERY_LATE: f64 = 0.05;

/// A running router. Its threads end with the process.
pub(super) struct Router(Arc<Shared>);

struct Shared {
    /// That of the web, then those of the peers.
    devices: Vec<SyncDevice>,
    lines: RwLock<HashMap<(Place, Place), Line>>,
    held: Mutex<Held>,
    is_due: Condvar,
}

#[derive(Default)]
struct Held {
    packets: BinaryHeap<Reverse<Packet>>,
    /// The number of packets that ever came.
    count: u64,
    lateness: Lateness,
}

/// A packet on its way; the one that is due first is the least.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    due: Instant,
    number: u64,
    device: usize,
    bytes: Vec<u8>,
}

/// How punctual a router was.
#[derive(Debug, Clone, Copy, Default)]
pub struct Lateness {
    /// Packets sent.
    pub packets: u64,
    /// Those sent more than 5 ms late.
    pub late: u64,
    /// Those sent more than 50 ms late.
    pub very_late: u64,
    /// The latest of all.
    pub worst: Duration,
}

impl Lateness {
    /// Whether the machine was so busy that the run says nothing about the peers.
    pub fn is_inconclusive(&self) -> bool {
        self.very_late as f64 > MOST_VERY_LATE * self.packets as f64
    }

    fn note(&mut self, late: Duration) {
        self.packets += 1;
        self.late += u64::from(late > LATE);
        self.very_late += u64::from(late > VERY_LATE);
        self.worst = self.worst.max(late);
    }
}

impl Router {
    pub(super) fn start(devices: Vec<SyncDevice>) -> Self {
        let count = devices.len();
        let shared = Arc::new(Shared {
            devices,
            lines: RwLock::default(),
            held: Mutex::default(),
            is_due: Condvar::new(),
        });
        for device in 0..count {
            let shared = shared.clone();
            thread::spawn(move || shared.read(device));
        }
        let sending = shared.clone();
        thread::spawn(move || sending.send());
        Router(shared)
    }

    pub(super) fn change(&self, one: Place, other: Place, change: impl FnOnce(&mut Line)) {
        let mut lines = self.0.lines.write().unwrap_or_else(PoisonError::into_inner);
        change(lines.entry(pair(one, other)).or_default());
    }

    pub(super) fn lateness(&self) -> Lateness {
        self.0.held().lateness
    }
}

impl Shared {
    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in all packets of one device.
    fn read(&self, device: usize) {
        let mut buffer = vec![0; PACKET];
        // A device that is gone ends its thread.
        while let Ok(length) = self.devices[device].recv(&mut buffer) {
            let came = Instant::now();
            let Some((delay, device)) = self.route(&buffer[..length]) else {
                continue;
            };
            let due = came + delay;
            let mut held = self.held();
            if held.packets.len() >= MAX_HELD {
                continue;
            }
            held.count += 1;
            let is_next = held
                .packets
                .peek()
                .is_none_or(|Reverse(next)| due < next.due);
            let packet = Packet {
                due,
                number: held.count,
                device,
                bytes: buffer[..length].to_vec(),
            };
            held.packets.push(Reverse(packet));
            drop(held);
            if is_next {
                self.is_due.notify_one();
            }
        }
    }

    /// The delay of a packet and the device it leaves by; none if it is lost or leads nowhere.
    fn route(&self, packet: &[u8]) -> Option<(Duration, usize)> {
        let (from, to) = ends(packet)?;
        let device = match to {
            Place::Site(_) => 0,
            Place::Peer(peer) => peer + 1,
        };
        let lines = self.lines.read().unwrap_or_else(PoisonError::into_inner);
        let line = lines.get(&pair(from, to)).copied().unwrap_or_default();
        let delay = line.delay(rand::random())?;
        (device < self.devices.len()).then_some((delay, device))
    }

    /// Sends each packet when it is due.
    fn send(&self) {
        loop {
            let packet = self.next();
            let late = packet.due.elapsed();
            // An interface that is down loses packets, as everywhere.
            let _ = self.devices[packet.device].send(&packet.bytes);
            self.held().lateness.note(late);
        }
    }

    fn next(&self) -> Packet {
        let mut held = self.held();
        loop {
            let now = Instant::now();
            let due = held.packets.peek().map(|Reverse(packet)| packet.due);
            let wait = match due {
                Some(due) if due <= now => {
                    let Reverse(packet) = held.packets.pop().expect("it was just there");
                    return packet;
                }
                Some(due) => due - now,
                None => Duration::from_secs(1),
            };
            let waited = self.is_due.wait_timeout(held, wait);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The places at both ends of an IPv4 packet.
fn ends(packet: &[u8]) -> Option<(Place, Place)> {
    if packet.len() < 20 || packet[0] >> 4 != 4 {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 4] = packet[at..at + 4].try_into().expect("four bytes");
        Place::of(Ipv4Addr::from(bytes))
    };
    Some((address(12)?, address(16)?))
}

fn pair(one: Place, other: Place) -> (Place, Place) {
    (one.min(other), one.max(other))
}
