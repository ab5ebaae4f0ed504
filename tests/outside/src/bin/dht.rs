//! Nodes of BitTorrent's DHT for tests, by the hand of others: `dht ADDRESS` prints where they
//! listen and serves until its standard input ends.

use mainline::Testnet;
use std::{env, io, net::Ipv4Addr};

/// As many as keep one announcement, and some more.
const NODES: usize = 12;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address: Ipv4Addr = env::args().nth(1).ok_or("which address?")?.parse()?;
    let net = Testnet::builder(NODES).bind_address(address).build()?;
    println!("{}", net.bootstrap.join(" "));
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}
