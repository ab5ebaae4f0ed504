//! `apoidea demo`: a peer that crawls a web made up on the spot, offline, in a folder that is gone
//! afterwards.

use crate::{arguments::DemoOptions, demo_swarm, pipe::say, run};
use anyhow::Context;
use apoidea_peer::governor::Switch;
use apoidea_peer::{Bounded, Config, LocalDiscovery, SeedSource};
use apoidea_toyweb::ToyWeb;
use std::{fs, process::ExitCode};

pub fn demo(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    if options.peers > 1 {
        return run::runtime()?.block_on(demo_swarm::show(options));
    }
    run::runtime()?.block_on(show(options))
}

async fn show(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let folder = tempfile::Builder::new()
        .prefix("apoidea-demo-")
        .tempdir()
        .context("no folder for the demo")?;
    let web = ToyWeb::builder(options.seed)
        .demo()
        .hosts(options.hosts)
        .pages(options.pages);
    let web = web.start().await.context("cannot start the made-up web")?;
    say(format_args!(
        "A web of {} hosts and {} pages, made up from the number {}.",
        options.hosts, options.pages, options.seed
    ));
    let certificate = folder.path().join("ca.pem");
    fs::write(&certificate, web.ca_pem())?;
    let mut config = Config::default();
    config.api.port = 0;
    config.network.port = 0;
    config.network.local_network = LocalDiscovery::Off;
    config.network.rendezvous = Switch::Off;
    config.archive.keep_free_mib = Bounded::new(0)?;
    let crawl = &mut config.crawl;
    crawl.seeds = SeedSource::List(web.seeds());
    crawl.ports = vec![web.http_port(), web.https_port()];
    crawl.private_networks = vec!["127.0.0.0/8".parse()?];
    crawl.private_delay_ms = Bounded::new(options.delay)?;
    crawl.private_address_delay_ms = Bounded::new(0)?;
    crawl.private_backoff_ms = Bounded::new(1000)?;
    crawl.dns = vec![web.dns_address()];
    crawl.trusted_certificates = vec![certificate];
    crawl.exit_when_done = options.exit_when_done;
    let code = run::crawl(config, &folder.path().join("data")).await;
    web.stop()
        .await
        .context("the made-up web did not stop cleanly")?;
    code
}
