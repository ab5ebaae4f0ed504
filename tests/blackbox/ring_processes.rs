//! A ring of real processes over QUIC: it forms through one entry point, heals after crashes, and
//! can be entered again without the entry point. An idle member is light.

use crate::{patience, peer_process::Launch, ring_swarm::Swarm};
use std::{collections::BTreeSet, fs, path::Path, time::Duration};

/// More than the 33 that keep a full roster, so that the ring goes over to successors and fingers
/// while they join.
const PEERS: usize = 36;
/// So many are killed at once; the ring is then small again.
const KILLED: usize = 8;
/// Rounds of stabilisation are 10 s apart; a machine with other work may need several.
const PATIENCE: Duration = Duration::from_secs(180);
/// An idle peer measured 22 MiB (built for debugging).
const MOST_RESIDENT_MIB: f64 = 40.0;
/// An idle peer measured 0.3 to 1.2 percent of one core.
const MOST_CPU_SHARE: f64 = 0.05;
/// How long CPU time is measured.
const IDLE: Duration = Duration::from_secs(15);

fn launch(folder: &Path, number: usize) -> Launch {
    Launch::new(&folder.join(format!("peer-{number}")))
        .set("network.is_private", true)
        .set("archive.keep", false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_processes_form_a_ring_that_heals_and_outlives_its_entry_point() {
    let folder = tempfile::tempdir().unwrap();
    let entry = Swarm::start(&[launch(folder.path(), 0)]).await;
    let at = format!("[\"{}\"]", entry.views().await.unwrap()[0].listens[0]);
    let launch = |number| launch(folder.path(), number).set("network.entry_points", &at);
    let launches: Vec<Launch> = (1..PEERS).map(launch).collect();

    let mut swarm = Swarm::start(&launches).await;
    swarm.peers.extend(entry.peers);
    let owners = swarm.form_a_ring("everyone joins at once", PATIENCE).await;
    let distinct: BTreeSet<_> = owners.iter().map(|owners| owners[0]).collect();
    assert!(distinct.len() > 5, "the domains are spread: {distinct:?}");
    is_light(&swarm).await;

    for peer in swarm.peers.drain(..KILLED) {
        peer.kill();
    }
    swarm
        .form_a_ring("the ring heals after a crash of many", PATIENCE)
        .await;

    swarm
        .peers
        .pop()
        .expect("the entry point is the last")
        .kill();
    swarm.peers.remove(0).stop().await;
    let newcomer = Swarm::start(&[launch(KILLED + 1)]).await;
    swarm.peers.extend(newcomer.peers);
    swarm
        .form_a_ring("a peer comes back through those it remembers", PATIENCE)
        .await;
}

/// Memory and CPU time of members of a ring that has nothing to crawl.
async fn is_light(swarm: &Swarm) {
    let Some(before) = usage(swarm) else {
        eprintln!("note: no /proc here; memory and CPU time are not measured");
        return;
    };
    let started = swarm.peers[0].status().await.at;
    let passed = patience::look(PATIENCE, async || {
        Some(swarm.peers[0].status().await.at.since(started)).filter(|passed| *passed >= IDLE)
    });
    let passed = passed.await.expect("time passes").as_secs_f64();
    let after = usage(swarm).expect("it could be measured before");
    let shares = before
        .iter()
        .zip(&after)
        .map(|(before, after)| (after.cpu_seconds - before.cpu_seconds) / passed);
    let share = shares.sum::<f64>() / after.len() as f64;
    let resident = after
        .iter()
        .map(|usage| usage.resident_mib)
        .fold(0.0, f64::max);
    eprintln!(
        "an idle peer: at most {resident:.1} MiB resident, {:.2} % of one core",
        100.0 * share
    );
    assert!(resident < MOST_RESIDENT_MIB, "{resident} MiB");
    assert!(share < MOST_CPU_SHARE, "{share} of one core");
}

struct Usage {
    resident_mib: f64,
    cpu_seconds: f64,
}

fn usage(swarm: &Swarm) -> Option<Vec<Usage>> {
    swarm
        .peers
        .iter()
        .map(|peer| Usage::of(peer.id()))
        .collect()
}

impl Usage {
    /// As the Linux kernel counts it (proc(5)): clock ticks are hundredths of a second there.
    fn of(process: u32) -> Option<Self> {
        let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let resident = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: f64 = resident.trim().strip_suffix(" kB")?.trim().parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let ticks = |field: usize| {
            fields
                .get(field)
                .and_then(|ticks| ticks.parse::<f64>().ok())
        };
        Some(Usage {
            resident_mib: kib / 1024.0,
            cpu_seconds: (ticks(11)? + ticks(12)?) / 100.0,
        })
    }
}
