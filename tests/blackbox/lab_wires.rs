//! The lab itself: set distances give the times that a socket sees, and losses, cuts and heals
//! work.

use crate::namespace;
use apoidea_tests::lab::{self, Lab, Place};
use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};
use tokio::{
    net::{TcpListener, UdpSocket},
    time::timeout,
};

/// What a busy machine adds to a round trip, and what the system's own work takes.
const ERROR: Duration = Duration::from_millis(12);
/// So long nothing comes through a cut wire.
const SILENCE: Duration = Duration::from_millis(400);
/// Connections over one wire, if all come late: other tests use the processors, too.
const MOST_CONNECTIONS: usize = 50;
/// Packets sent through a wire that loses some.
const PACKETS: usize = 400;

#[test]
fn a_lab_has_the_distances_that_were_set() {
    if !namespace::allows(lab::PROBE) {
        eprintln!("note: no namespaces or no TUN devices here; there is no lab");
        return;
    }
    namespace::run("lab_wires::wires_are_as_they_were_set", lab::PREPARE, &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by a_lab_has_the_distances_that_were_set"]
async fn wires_are_as_they_were_set() {
    if !namespace::is_prepared() {
        return;
    }
    let lab = Lab::build(2);
    for millis in [20, 80, 150, 300] {
        let round_trip = Duration::from_millis(millis);
        lab.set_round_trip(Place::Peer(0), Place::Site(3), round_trip);
        let times = connect_times(&lab, Place::Site(3), round_trip + ERROR).await;
        // A packet is never early, and one of many connections is hardly late on any machine.
        let best = *times.iter().min().unwrap();
        println!("{round_trip:?}: connected after {times:?}");
        assert!(best >= round_trip, "{best:?} < {round_trip:?}");
        let late = lab.lateness();
        if late.late * 20 > late.packets {
            eprintln!("INCONCLUSIVE: this machine is too busy to measure: {late:?}");
        } else {
            assert!(best < round_trip + ERROR, "{times:?}, {late:?}");
        }
    }
    cuts_and_losses(&lab).await;
}

/// The times in which peer 0 connects to a site, by its own clock, until one is below the bound.
async fn connect_times(lab: &Lab, site: Place, bound: Duration) -> Vec<Duration> {
    let listener = TcpListener::bind((site.address(), 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            open.push(socket);
        }
    });
    let mut times = Vec::new();
    while times.len() < MOST_CONNECTIONS && times.iter().all(|time| *time >= bound) {
        times.push(connect_time(lab, SocketAddr::new(site.address().into(), port)).await);
    }
    accepting.abort();
    times
}

/// Python measures: it starts quickly and is there wherever the other tools of the tests are.
async fn connect_time(lab: &Lab, to: SocketAddr) -> Duration {
    let script = format!(
        "import socket, time\nbegun = time.monotonic()\n\
         socket.create_connection(('{}', {}), 5)\nprint(time.monotonic() - begun)",
        to.ip(),
        to.port()
    );
    let mut command = lab.command(0, Path::new("python3"));
    command.arg("-c").arg(script).stderr(Stdio::inherit());
    let output = tokio::task::spawn_blocking(move || command.output()).await;
    let said = String::from_utf8(output.unwrap().unwrap().stdout).unwrap();
    Duration::from_secs_f64(said.trim().parse().expect("it connects"))
}

/// Datagrams from here to peer 1, which sends each back.
async fn cuts_and_losses(lab: &Lab) {
    let (site, peer) = (Place::Site(8), Place::Peer(1));
    let mut echo = echo(lab);
    let here = UdpSocket::bind((IpAddr::from(site.address()), 0))
        .await
        .unwrap();
    here.connect((peer.address(), 7)).await.unwrap();
    assert!(
        echoes_soon(&here).await,
        "an echo comes once the peer is up"
    );
    lab.cut(site, peer);
    // What was under way may still arrive.
    tokio::time::sleep(Duration::from_millis(50)).await;
    while timeout(Duration::ZERO, here.recv(&mut [0; 8]))
        .await
        .is_ok()
    {}
    here.send(b"?").await.unwrap();
    let silence = timeout(SILENCE, here.recv(&mut [0; 8])).await;
    assert!(silence.is_err(), "a cut wire is silent");
    lab.heal(site, peer);
    assert!(echoes_soon(&here).await, "a healed wire is not");
    lab.set_loss(site, peer, 0.3);
    let mut back = 0;
    for _ in 0..PACKETS {
        here.send(b"?").await.unwrap();
        let answer = timeout(Duration::from_millis(30), here.recv(&mut [0; 8])).await;
        back += usize::from(answer.is_ok());
    }
    println!(
        "{back} of {PACKETS} came back with a loss of 30 % each way: {:?}",
        lab.lateness()
    );
    // Seven of ten there, and of those seven of ten back.
    assert!((140..250).contains(&back), "{back} of {PACKETS} came back");
    let _ = echo.kill();
    let _ = echo.wait();
}

async fn echoes_soon(socket: &UdpSocket) -> bool {
    for _ in 0..100 {
        // Refused while nobody listens.
        let _ = socket.send(b"?").await;
        let answer = timeout(Duration::from_millis(100), socket.recv(&mut [0; 8])).await;
        if matches!(answer, Ok(Ok(_))) {
            return true;
        }
    }
    false
}

fn echo(lab: &Lab) -> std::process::Child {
    let script = "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                  s.bind(('', 7))\nwhile True:\n    d, a = s.recvfrom(99)\n    s.sendto(d, a)";
    let mut command: Command = lab.command(1, Path::new("python3"));
    command.arg("-c").arg(script).spawn().unwrap()
}
