//! The toy web as a process of its own, until interrupted.

use anyhow::Context;
use apoidea_toyweb::{Quirk, Shape, ToyWeb};
use clap::{Parser, ValueEnum};
use std::{net::IpAddr, path::PathBuf, time::Duration};

/// Serves a deterministic web on loopback for testing a crawler.
#[derive(Parser)]
struct Arguments {
    /// The same seed and numbers give the same web.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Ordinary hosts.
    #[arg(long)]
    hosts: Option<u32>,
    /// Pages on all ordinary hosts together.
    #[arg(long)]
    pages: Option<u32>,
    /// Mean size of a page in bytes.
    #[arg(long)]
    mean_bytes: Option<u32>,
    /// Milliseconds that each answer takes to begin.
    #[arg(long, default_value_t = 0)]
    answers_after_ms: u64,
    /// What to begin with; the numbers above replace its own.
    #[arg(long, value_enum, default_value_t = Preset::Plain)]
    preset: Preset,
    /// A quirk to add, such as `gzip-bomb`; may be repeated.
    #[arg(long, value_parser = quirk)]
    quirk: Vec<Quirk>,
    /// Loopback addresses to spread hosts over.
    #[arg(long, default_value_t = 8)]
    addresses: u8,
    /// An address of this machine to serve hosts and names at, instead of at loopback ones; may be
    /// repeated.
    #[arg(long)]
    listening_at: Vec<IpAddr>,
    /// Percent of the hosts that speak HTTPS.
    #[arg(long)]
    https_percent: Option<f64>,
    /// Ports for HTTP, HTTPS, DNS and control; 0 for any that is free.
    #[arg(long, num_args = 4, default_values_t = [0, 0, 0, 0])]
    ports: Vec<u16>,
    /// Also write the access log to this file, one JSON object per line.
    #[arg(long)]
    log: Option<PathBuf>,
    /// Print where everything is as one line of JSON instead of text.
    #[arg(long)]
    print_config: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Ordinary hosts only.
    Plain,
    /// A small web that is pleasant to look at.
    Demo,
    /// A small web with every quirk.
    Everything,
}

fn quirk(name: &str) -> Result<Quirk, String> {
    serde_json::from_value(name.into()).map_err(|error| error.to_string())
}

async fn start(arguments: Arguments) -> std::io::Result<ToyWeb> {
    let mut web = ToyWeb::builder(arguments.seed);
    web = match arguments.preset {
        Preset::Plain => web.shape(Shape::default()),
        Preset::Demo => web.demo(),
        Preset::Everything => web.everything(),
    };
    web = arguments
        .hosts
        .into_iter()
        .fold(web, |web, hosts| web.hosts(hosts));
    web = arguments
        .pages
        .into_iter()
        .fold(web, |web, pages| web.pages(pages));
    web = arguments
        .mean_bytes
        .into_iter()
        .fold(web, |web, bytes| web.mean_bytes(bytes));
    web = arguments
        .log
        .into_iter()
        .fold(web, |web, path| web.log_file(path));
    web = arguments
        .https_percent
        .into_iter()
        .fold(web, |web, percent| web.https_percent(percent));
    web = web.answers_after(Duration::from_millis(arguments.answers_after_ms));
    let ports = arguments.ports;
    web = web.ports(ports[0], ports[1], ports[2]).control(ports[3]);
    web.addresses(arguments.addresses)
        .listening_at(arguments.listening_at)
        .quirks(arguments.quirk)
        .start()
        .await
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let print_config = arguments.print_config;
    let web = start(arguments)
        .await
        .context("the toy web did not start")?;
    if print_config {
        println!("{}", serde_json::to_string(web.description())?);
    } else {
        println!("name server  {}", web.dns_address());
        println!(
            "ports        http {}, https {}",
            web.http_port(),
            web.https_port()
        );
        web.control_address()
            .into_iter()
            .for_each(|address| println!("control      http://{address}/.toyweb/config"));
        println!("to fetch     {} URLs", web.truth().expected_total());
        web.seeds()
            .iter()
            .for_each(|seed| println!("seed         {seed}"));
    }
    tokio::signal::ctrl_c()
        .await
        .context("no signal can be waited for")?;
    web.stop()
        .await
        .context("the access log could not be written")
}
