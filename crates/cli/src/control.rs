//! Commands for the running peer.

use crate::{
    arguments::{Output, Place},
    client::Client,
    limits,
};
use apoidea_model::{PeerId, Time};
use apoidea_peer::{
    DomainRow, NetworkStatus, OpenLink, PageEvent, Role, SeedAnswer, SeedRequest, Status, words,
};
use std::{
    io::{self, BufRead},
    process::ExitCode,
    time::SystemTime,
};

pub fn status(place: &Place, output: Output) -> anyhow::Result<ExitCode> {
    let client = Client::connect(place)?;
    let status: Status = client.get("/api/status")?;
    if output.json {
        return print_json(&status);
    }
    let totals = &status.totals;
    println!("{}", status.reason);
    if let Some(attention) = &status.attention {
        println!("Attention: {}", words::attention(attention));
    }
    let rows = [
        (
            "pages",
            format!(
                "{} ({:.1} a second)",
                totals.pages, status.usage.pages_per_second
            ),
        ),
        ("duplicates", totals.duplicates.to_string()),
        ("received", indicatif::HumanBytes(totals.bytes).to_string()),
        (
            "waiting",
            format!("{} URLs of {} domains", status.queued, status.domains),
        ),
        (
            "under way",
            format!(
                "{} fetches, {} pages being kept",
                status.fetching, status.processing
            ),
        ),
        ("ready", format!("{} hosts wait for a fetch", status.ready)),
        (
            "neighbours",
            format!(
                "fetched {} URLs for this peer, which fetched {} for them",
                totals.lent, totals.borrowed
            ),
        ),
        (
            "archive",
            indicatif::HumanBytes(status.usage.archive_bytes).to_string(),
        ),
        (
            "memory",
            indicatif::HumanBytes(status.usage.memory_bytes).to_string(),
        ),
        ("fresh", freshness(&status)),
        ("network", words::network(&status.network)),
        (
            "disallowed",
            format!("{} URLs by robots.txt", totals.disallowed),
        ),
        ("allowed", limits::allowed(&status.allowance)),
        ("uses", limits::used(&status)),
        ("sees", limits::seen(&status.readings)),
    ];
    for (name, value) in rows {
        println!("  {name:<11} {value}");
    }
    for entry in &status.door.entry {
        let way = words::entry_way(entry.way);
        println!("  {:<11} {way}: {}", "entry", words::entry(entry));
    }
    for missing in &status.readings.missing {
        println!("  {:<11} {missing}", "missing");
    }
    for (outcome, count) in &totals.failures {
        println!(
            "  {:<11} {count} × {}",
            "failures",
            words::outcome(*outcome)
        );
    }
    for (reason, count) in &totals.dropped {
        println!("  {:<11} {count} × {}", "dropped", words::dropped(*reason));
    }
    Ok(ExitCode::SUCCESS)
}

/// How current the known pages are, and the cost of that.
fn freshness(status: &Status) -> String {
    let totals = &status.totals;
    let current = status.usage.current_percent;
    let current = current.map_or("not counted yet".to_owned(), |percent| {
        format!("{percent:.0} % current")
    });
    format!(
        "{current}, {} pages known; {} visited again: {} changed, {} not modified ({} saved)",
        status.usage.known_pages,
        totals.revisits,
        totals.changed,
        totals.not_modified,
        indicatif::HumanBytes(totals.saved_bytes)
    )
}

pub fn seed(place: &Place, urls: Vec<String>, output: Output) -> anyhow::Result<ExitCode> {
    let mut all = Vec::new();
    for url in urls {
        if url == "-" {
            all.extend(io::stdin().lock().lines().collect::<Result<Vec<_>, _>>()?);
        } else {
            all.push(url);
        }
    }
    all.retain(|url| !url.trim().is_empty());
    let answer: SeedAnswer =
        Client::connect(place)?.post("/api/seeds", Some(&SeedRequest { urls: all }))?;
    if output.json {
        print_json(&answer)?;
    } else {
        println!("{} accepted", answer.accepted);
        for refused in &answer.refused {
            eprintln!("apoidea: {:?} refused: {}", refused.url, refused.why);
        }
    }
    Ok(if answer.refused.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

pub fn quit(place: &Place) -> anyhow::Result<ExitCode> {
    let _: Status = Client::connect(place)?.post("/api/quit", None::<&()>)?;
    println!("The peer finishes what is under way and leaves.");
    Ok(ExitCode::SUCCESS)
}

pub fn pause(place: &Place) -> anyhow::Result<ExitCode> {
    print_reason(Client::connect(place)?.post("/api/pause", None::<&()>)?)
}

pub fn resume(place: &Place) -> anyhow::Result<ExitCode> {
    print_reason(Client::connect(place)?.post("/api/resume", None::<&()>)?)
}

pub fn domains(
    place: &Place,
    prefix: &str,
    limit: usize,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let client = Client::connect(place)?;
    let prefix: String = url::form_urlencoded::byte_serialize(prefix.as_bytes()).collect();
    let query = format!("/api/domains?limit={limit}&prefix={prefix}");
    let rows: Vec<DomainRow> = client.get(&query)?;
    if output.json {
        return print_json(&rows);
    }
    println!(
        "{:<40} {:>8} {:>8} {:>7}  {:<24} {:<32} robots",
        "domain", "fetched", "waiting", "failed", "state", "whose"
    );
    let now = Time::from(SystemTime::now());
    for row in rows {
        let whose = whose(&row);
        let DomainRow {
            domain,
            fetched,
            queued,
            failed,
            state,
            robots,
            ..
        } = row;
        let name = domain.as_str();
        let (state, robots) = (words::domain(&state, now), words::robots(&robots, now));
        println!(
            "{name:<40} {fetched:>8} {queued:>8} {failed:>7}  {state:<24} {whose:<32} {robots}"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What the peer is to a domain, and how much it did for others.
fn whose(row: &DomainRow) -> String {
    let role = match row.role {
        Role::Owner => "own",
        Role::Holder => "copy",
        Role::Helper => "helped",
    };
    match &row.helped {
        Some(help) => format!("{role}, {} for {}", help.pages, short(help.owner)),
        None => role.to_owned(),
    }
}

pub fn pages(place: &Place, output: Output) -> anyhow::Result<ExitCode> {
    let pages: Vec<PageEvent> = Client::connect(place)?.get("/api/pages")?;
    if output.json {
        return print_json(&pages);
    }
    for page in pages {
        println!(
            "{:<12} {:>8} B {:>5} links {:>6} ms  {}",
            words::outcome(page.outcome),
            page.bytes,
            page.links,
            page.millis,
            page.url
        );
    }
    Ok(ExitCode::SUCCESS)
}

pub fn peers(place: &Place, output: Output) -> anyhow::Result<ExitCode> {
    let status: NetworkStatus = Client::connect(place)?.get("/api/peers")?;
    if output.json {
        return print_json(&status);
    }
    println!("{} ({})", status.me, words::network(&status.standing));
    println!(
        "owns {:.2} % of all keys, listens on {}",
        100.0 * status.share,
        list(&status.listens)
    );
    println!(
        "others see it at {}; {}",
        list(&status.seen_at),
        words::reachability(status.reachability)
    );
    if status.seat_refused > 0 {
        println!(
            "others refused its seat {} times: is the clock of this computer right?",
            status.seat_refused
        );
    }
    for (name, peers) in [
        ("predecessor", status.predecessor.as_slice()),
        ("successors", &status.successors),
        ("fingers", &status.fingers),
        ("leaves", &status.leaves),
    ] {
        println!(
            "  {name:<12} {}",
            list(&peers.iter().map(|peer| short(*peer)).collect::<Vec<_>>())
        );
    }
    println!(
        "  {:<16} {:<24} {:>8}  version",
        "connected", "route", "rtt"
    );
    for peer in &status.connected {
        let route = peer.route.to_string();
        println!(
            "  {:<16} {route:<24} {:>5.1} ms  {}",
            short(peer.id),
            peer.rtt_ms,
            peer.version
        );
    }
    if !status.standings.is_empty() {
        println!("  checked");
    }
    let now = Time::from(SystemTime::now());
    for standing in &status.standings {
        println!(
            "  {:<16} {}",
            short(standing.peer),
            words::standing(standing, now)
        );
    }
    let kinds = status.traffic.kinds.values();
    let (received, sent) = kinds.fold((0, 0), |(i, o), kind| {
        (i + kind.bytes_in, o + kind.bytes_out)
    });
    println!(
        "  received {}, sent {}",
        indicatif::HumanBytes(received),
        indicatif::HumanBytes(sent)
    );
    for (kind, sent, received) in &status.ring_messages {
        println!("  {kind:<16} {sent:>8} sent {received:>8} received");
    }
    Ok(ExitCode::SUCCESS)
}

pub fn owners(
    place: &Place,
    domain: &str,
    count: usize,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let domain: String = url::form_urlencoded::byte_serialize(domain.as_bytes()).collect();
    let query = format!("/api/owners?domain={domain}&count={count}");
    let owners: Vec<PeerId> = Client::connect(place)?.get(&query)?;
    if output.json {
        return print_json(&owners);
    }
    owners.iter().for_each(|owner| println!("{owner}"));
    Ok(ExitCode::SUCCESS)
}

fn short(peer: PeerId) -> String {
    peer.to_string()[..12].to_owned()
}

fn list(items: &[impl ToString]) -> String {
    if items.is_empty() {
        "none".to_owned()
    } else {
        items
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

pub fn dashboard(place: &Place) -> anyhow::Result<ExitCode> {
    let client = Client::connect(place)?;
    let link: OpenLink = client.post("/api/link", None::<&()>)?;
    println!("{}{}", client.address(), link.path);
    Ok(ExitCode::SUCCESS)
}

pub fn config(place: &Place) -> anyhow::Result<ExitCode> {
    let config = place.config()?;
    println!("# {}", place.config_file()?.display());
    print!("{}", config.to_toml());
    Ok(ExitCode::SUCCESS)
}

pub fn print_reason(status: Status) -> anyhow::Result<ExitCode> {
    println!("{}", status.reason);
    Ok(ExitCode::SUCCESS)
}

pub fn print_json(value: &impl serde::Serialize) -> anyhow::Result<ExitCode> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(ExitCode::SUCCESS)
}
