//! The cost of a request: the transport against a bare QUIC echo, between two processes on
//! loopback, in one run.
//!
//! Run with `cargo run --release -p apoidea-overlay --example echo_cost [seconds per row]`. The
//! processes' CPU time is read from `/proc`, so the figures need Linux.

mod bare;
mod stopwatch;

use apoidea_overlay::{
    AddressBook, AddressPolicy, Identity, Kind, Limits, Rate, Refusal, Request, Service, Source,
    Transport, TransportSettings,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};
use stopwatch::{Row, measure};

const ECHO: Kind = Kind::free(0);
/// Requests under way at a time.
const PARALLEL: usize = 16;
/// Runs per row, alternating between the two contenders so that a busy machine hits both.
const RUNS: usize = 3;

struct Echo;

impl Service for Echo {
    fn answer(
        &self,
        _: apoidea_model::PeerId,
        request: Request,
    ) -> BoxFuture<'_, Result<Bytes, Refusal>> {
        Box::pin(std::future::ready(Ok(request.body)))
    }
}

/// A transport that throttles nobody.
fn transport() -> Transport {
    let open = Rate {
        per_second: 1e9,
        burst: 1e9,
    };
    let limits = Limits {
        peer_rate: open,
        origin_rate: open,
        newcomer_rate: open,
        ..Limits::default()
    };
    let settings = TransportSettings {
        listen: vec![(std::net::Ipv4Addr::LOCALHOST, 0).into()],
        addresses: AddressPolicy::Private,
        limits,
        ..TransportSettings::default()
    };
    let identity = Identity::ephemeral().expect("the system has randomness");
    Transport::start(identity, settings, AddressBook::default(), Arc::new(Echo))
        .expect("loopback can be listened on")
}

/// The answering process.
async fn serve(contender: &str) {
    match contender {
        "transport" => {
            let transport = transport();
            println!("{} {}", transport.local_addresses()[0], transport.me());
            std::future::pending::<()>().await;
        }
        _ => {
            let endpoint = bare::server();
            println!("{} -", endpoint.local_addr().expect("it is bound"));
            bare::echo(endpoint).await;
        }
    }
}

fn start_server(contender: &str) -> (Child, SocketAddr, String) {
    let me = std::env::current_exe().expect("this program has a path");
    let mut child = Command::new(me)
        .args(["serve", contender])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut line = String::new();
    let output = child.stdout.take().expect("it is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it says where it is");
    let (address, id) = line.trim().split_once(' ').expect("an address and an id");
    (child, address.parse().expect("an address"), id.to_owned())
}

async fn run(contender: &'static str, size: usize, lasting: Duration) -> Row {
    let (mut child, address, id) = start_server(contender);
    let body = Bytes::from(vec![7; size]);
    let row = match contender {
        "transport" => {
            let (client, id) = (transport(), id.parse().expect("an id"));
            client.learn(id, [address], Source::Configured);
            let ask = || {
                let (client, body) = (client.clone(), body.clone());
                async move {
                    client
                        .request(id, ECHO, body)
                        .await
                        .expect("an answer")
                        .len()
                }
            };
            measure(ask, PARALLEL, lasting, child.id()).await
        }
        _ => {
            let connection = bare::connect(address).await;
            let ask = || {
                let (connection, body) = (connection.clone(), body.clone());
                async move { bare::ask(&connection, &body).await }
            };
            measure(ask, PARALLEL, lasting, child.id()).await
        }
    };
    let _ = child.kill();
    let _ = child.wait();
    row
}

async fn compare(lasting: Duration) {
    println!(
        "{:>6} {:<10} {:>9} {:>8} {:>8} {:>8} {:>12}",
        "body", "", "req/s", "MiB/s", "p50 ms", "p99 ms", "CPU µs/req"
    );
    for size in [1024, 60 * 1024] {
        let (mut ours, mut theirs) = (Row::default(), Row::default());
        for _ in 0..RUNS {
            theirs.add(run("bare", size, lasting).await);
            ours.add(run("transport", size, lasting).await);
        }
        println!("{size:>6} {:<10} {}", "bare quinn", theirs.show(size));
        println!("{size:>6} {:<10} {}", "transport", ours.show(size));
        println!(
            "{:>6} {:<10} CPU ×{:.2}",
            "",
            "",
            ours.cpu_per_request() / theirs.cpu_per_request()
        );
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = runtime.expect("threads can be started");
    match &arguments[..] {
        [serve_word, contender] if serve_word == "serve" => runtime.block_on(serve(contender)),
        [seconds] => runtime.block_on(compare(Duration::from_secs(
            seconds.parse().expect("seconds"),
        ))),
        _ => runtime.block_on(compare(Duration::from_secs(3))),
    }
}
