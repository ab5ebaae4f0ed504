//! A network with distances: each peer has a network namespace of its own, the web has one, and a
//! router in this process holds every packet for half of its pair's round trip.
//!
//! It needs no rights outside. A test runs in a new user namespace (see `blackbox/namespace.rs`),
//! whose own network is the web's. Wires can be cut, healed and made lossy while peers run. The
//! program under test is unchanged: its handshakes, time-outs and slow starts are real.

mod line;
mod place;
mod relay;
mod router;

pub use line::Line;
pub use place::Place;
pub use router::Lateness;

use apoidea_chord::sim::RoundTripMatrix;
use router::Router;
use std::{
    collections::BTreeSet,
    io::Write,
    net::IpAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Makes a new namespace ready for a lab, as `sh` commands.
pub const PREPARE: &str = "mount -t tmpfs lab /run && ip link set lo up";
/// Succeeds where the system allows all that a lab needs.
pub const PROBE: &str = "mount -t tmpfs lab /run && ip netns add probe \
    && ip tuntap add dev probe mode tun && ip link set probe netns probe";
/// The shortest and the longest round trip of [`Lab::measured`].
const MEASURED: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(400)];
/// The API of the first peer is at this port, of the next at the next, here as in its namespace.
const API_PORT: u16 = 7100;
/// Packets that wait in a device for the router.
const DEVICE_QUEUE: u32 = 10_000;
/// Peers are this much nicer than the router: a packet must not wait for a busy peer.
const NICENESS: &str = "5";

/// The network and its router. There is one in a process.
pub struct Lab {
    router: Router,
    peers: usize,
}

impl Lab {
    /// Lays the wires for so many peers, in a namespace that [`PREPARE`] has made ready. All places
    /// are at the same point at first.
    pub fn build(peers: usize) -> Self {
        let mut devices = vec![device("web")];
        shell(
            "ip",
            "link set web up\nroute add local 10.200.0.0/16 dev lo\nroute add 10.0.0.0/8 dev web\n",
        );
        for peer in 0..peers {
            let name = namespace(peer);
            run(Command::new("ip").args(["netns", "add", &name]));
            devices.push(device(&name));
            run(Command::new("ip").args(["link", "set", &name, "netns", &name]));
            let address = Place::Peer(peer).address();
            let wires = format!(
                "link set lo up\naddr add {address}/32 dev {name}\n\
                 link set {name} up txqueuelen {DEVICE_QUEUE}\nroute add default dev {name}\n"
            );
            shell_in(&name, &wires);
            relay::start(&path(&name), API_PORT + number(peer));
        }
        Lab {
            router: Router::start(devices),
            peers,
        }
    }

    /// Places all peers, and so many sites, by measured round trips between PlanetLab's sites, of
    /// 20 to 400 ms. Peers and web sites are different sites of these.
    pub fn measured(self, sites: usize) -> Self {
        let matrix = RoundTripMatrix::planetlab();
        let here = |place| match place {
            Place::Peer(peer) => (peer * 7 + 3) % 240,
            Place::Site(site) => 240 + (site * 11 + 5) % 250,
        };
        let places: Vec<Place> = (0..self.peers)
            .map(Place::Peer)
            .chain((0..sites).map(Place::Site))
            .collect();
        for (index, &one) in places[..self.peers].iter().enumerate() {
            for &other in &places[index + 1..] {
                let [least, most] = MEASURED;
                let measured = matrix.round_trip(here(one), here(other));
                self.set_round_trip(one, other, measured.clamp(least, most));
            }
        }
        self
    }

    /// From now on packets between these two take so long there and back.
    pub fn set_round_trip(&self, one: Place, other: Place, round_trip: Duration) {
        self.router
            .change(one, other, |line| line.round_trip = round_trip);
    }

    /// From now on this share of the packets between these two is lost.
    pub fn set_loss(&self, one: Place, other: Place, share: f64) {
        self.router.change(one, other, |line| line.loss = share);
    }

    /// These two do not hear each other any more.
    pub fn cut(&self, one: Place, other: Place) {
        self.router.change(one, other, |line| line.is_cut = true);
    }

    /// They hear each other again.
    pub fn heal(&self, one: Place, other: Place) {
        self.router.change(one, other, |line| line.is_cut = false);
    }

    /// Peers of different groups do not hear each other any more; those of one group do. Peers
    /// without a group hear nobody. All reach the web.
    pub fn divide(&self, groups: &[&[usize]]) {
        let group = |peer: usize| groups.iter().position(|group| group.contains(&peer));
        for one in 0..self.peers {
            for other in 0..one {
                let is_together = group(one).is_some() && group(one) == group(other);
                let (one, other) = (Place::Peer(one), Place::Peer(other));
                match is_together {
                    true => self.heal(one, other),
                    false => self.cut(one, other),
                }
            }
        }
    }

    /// All peers hear each other again.
    pub fn unite(&self) {
        let everybody: Vec<usize> = (0..self.peers).collect();
        self.divide(&[&everybody]);
    }

    /// The addresses of so many sites of the web.
    pub fn sites(&self, count: usize) -> Vec<IpAddr> {
        let mut sites = BTreeSet::new();
        sites.extend((0..count).map(|site| IpAddr::from(Place::Site(site).address())));
        sites.into_iter().collect()
    }

    /// A command that runs a program as this peer, to be completed by arguments. Its process is the
    /// program's.
    pub fn command(&self, peer: usize, program: &Path) -> Command {
        assert!(peer < self.peers, "the lab has {} peers", self.peers);
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net={}", path(&namespace(peer))))
            .args(["--", "nice", "-n", NICENESS])
            .arg(program);
        command
    }

    /// The port of a peer's API, here as in its namespace.
    pub fn api_port(&self, peer: usize) -> u16 {
        API_PORT + number(peer)
    }

    /// How punctual the router was so far.
    pub fn lateness(&self) -> Lateness {
        self.router.lateness()
    }
}

fn namespace(peer: usize) -> String {
    format!("peer-{peer}")
}

fn path(namespace: &str) -> String {
    format!("/run/netns/{namespace}")
}

fn number(peer: usize) -> u16 {
    u16::try_from(peer).expect("a lab has few peers")
}

fn device(name: &str) -> SyncDevice {
    let device = DeviceBuilder::new().name(name).mtu(1500).build_sync();
    device.unwrap_or_else(|error| panic!("no TUN device {name}: {error}"))
}

fn shell_in(namespace: &str, commands: &str) {
    let mut ip = Command::new("nsenter");
    ip.arg(format!("--net={}", path(namespace))).arg("ip");
    batch(&mut ip, commands);
}

fn shell(program: &str, commands: &str) {
    batch(&mut Command::new(program), commands);
}

/// Gives `ip` several commands at once.
fn batch(ip: &mut Command, commands: &str) {
    let mut child = ip
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(commands.as_bytes()).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success(), "{commands}");
}

fn run(command: &mut Command) {
    assert!(command.status().unwrap().success(), "{command:?}");
}
