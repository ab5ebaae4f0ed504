//! More than an honest peer would send: bytes that swell, and links without end.

use super::{
    Hostile, Part,
    messages::{self, LINKS, REPLICAS},
    victims::{Victim, Victims},
};
use crate::patience;
use apoidea_model::{CrawlId, Domain, Link, LinkBatch, PageUrl};
use apoidea_toyweb::{Builder, ToyWeb};
use futures::future::{join, join_all};
use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::time;

/// Messages that make no sense until a victim closes the connection, less one.
const BEFORE_BANISHMENT: usize = 7;

fn web() -> Builder {
    ToyWeb::builder(25).hosts(2).pages(2)
}

/// A list of half a million names, as large as a message may be, in a thousand bytes.
fn bomb() -> bytes::Bytes {
    const NAMES: usize = (1 << 19) - 8;
    let mut plain = postcard::to_stdvec(&NAMES).unwrap();
    plain.extend([1, b'a'].repeat(NAMES));
    messages::squeeze(&plain)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_swell_do_not_keep_a_peer_from_answering_others() {
    const FLOOD: Duration = Duration::from_secs(6);
    const KEYS: usize = 3;
    const MOST: Duration = Duration::from_millis(300);
    let victims = Victims::start(web(), &[0.1..0.12], &[]).await;
    let victim = &victims.peers[0];
    // Strangers may be turned away before they are read; a member is heard.
    let member = Hostile::member(0.5..0.52, &victims.addresses(), Part::careless()).await;
    victims.wait_for_ring(&[&member]).await;
    let bystander = Hostile::stranger(Part::Mute);
    bystander.meet(victim.address).await;
    let quiet = pings(&bystander, victim, Duration::from_secs(1)).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let sent = Arc::new(AtomicUsize::new(0));
    let floods: Vec<_> = (0..KEYS)
        .map(|_| tokio::spawn(flood(victim.address, is_over.clone(), sent.clone())))
        .collect();
    let before = processor_time(victim);
    let bombs = (0..BEFORE_BANISHMENT).map(|_| member.send(victim.id, REPLICAS, bomb()));
    let (during, _) = join(pings(&bystander, victim, FLOOD), join_all(bombs)).await;
    let spent = processor_time(victim) - before;
    is_over.store(true, Relaxed);
    join_all(floods).await;
    println!(
        "{} bombs of {} bytes, {spent:?} of the processor in {FLOOD:?}; 99 of 100 pings {:?}, before {:?}",
        sent.load(Relaxed) + BEFORE_BANISHMENT,
        bomb().len(),
        percentile(&during),
        percentile(&quiet)
    );
    assert!(percentile(&during) <= MOST.max(3 * percentile(&quiet)));
}

/// Sends bombs under one key after the other: a key that is banished is free to replace.
async fn flood(to: SocketAddr, is_over: Arc<AtomicBool>, sent: Arc<AtomicUsize>) {
    let bomb = bomb();
    while !is_over.load(Relaxed) {
        let stranger = Hostile::stranger(Part::Mute);
        let Ok(victim) = stranger.transport.meet(to).await else {
            time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let bombs = (0..BEFORE_BANISHMENT).map(|_| stranger.send(victim, REPLICAS, bomb.clone()));
        join_all(bombs).await;
        sent.fetch_add(BEFORE_BANISHMENT, Relaxed);
    }
}

/// Pings twenty times a second.
async fn pings(from: &Hostile, to: &Victim, within: Duration) -> Vec<Duration> {
    let (begun, mut times) = (Instant::now(), Vec::new());
    while begun.elapsed() < within {
        times.push(from.ping(to.id).await);
        time::sleep(Duration::from_millis(50)).await;
    }
    times
}

/// The time that 99 of 100 do not exceed.
fn percentile(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() * 99).div_ceil(100) - 1]
}

/// The processor time that a peer has used, to a hundredth of a second.
fn processor_time(victim: &Victim) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{}/stat", victim.process.id())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks: u64 = fields[11..13]
        .iter()
        .map(|field| field.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(10 * ticks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_floods_a_queue_keeps_out_no_honest_link() {
    const QUOTA: usize = 10_000;
    const HONEST: usize = 400;
    let settings = [("crawl.queue_total", QUOTA.to_string())];
    let victims = Victims::start(web(), &[0.9..0.91, 0.4..0.41], &settings).await;
    victims.pause().await;
    let place = super::beyond(victims.peers[0].id.key(), 0.001);
    let flooder = Hostile::member(place, &victims.addresses(), Part::careless()).await;
    victims.wait_for_ring(&[&flooder]).await;
    let victim = &victims.peers[0];
    let port = victims.toy.web.http_port();
    let mut urls = owned_urls("flood", port);
    let first = batch(urls.by_ref().take(1));
    let heard = patience::look(Duration::from_secs(10), async || {
        flooder.tell(victim.id, LINKS, &first).await.ok()
    });
    heard.await.expect("a member may send links");
    let (mut acknowledged, mut declined) = (0, 0);
    for _ in 0..QUOTA.div_ceil(LinkBatch::MAX_LINKS) + 2 {
        let batch = batch(urls.by_ref().take(LinkBatch::MAX_LINKS));
        let answer = flooder
            .ask::<messages::LinksAnswer>(victim.id, LINKS, &batch)
            .await;
        if let Ok(messages::LinksAnswer::Taken {
            declined: places, ..
        }) = answer
        {
            acknowledged += batch.links.len() - places.len();
            declined += places.len();
        }
    }
    let honest: Vec<String> = owned_urls("honest", port)
        .take(HONEST)
        .map(|url| url.to_string())
        .collect();
    victims.peers[1].process.seed(&honest).await;
    let queued = async |prefix: &str| -> u64 {
        let path = format!("/api/domains?limit=1000&prefix={prefix}");
        let request = victim.process.request(reqwest::Method::GET, &path);
        let rows: Vec<apoidea_peer::DomainRow> =
            request.send().await.unwrap().json().await.unwrap();
        rows.iter().map(|row| row.queued).sum()
    };
    let arrived = patience::look(Duration::from_secs(8), async || {
        (queued("honest").await == HONEST as u64).then_some(())
    });
    let _ = arrived.await;
    let (honest, flood) = (queued("honest").await, queued("flood").await);
    println!(
        "{acknowledged} links of the flooder acknowledged, {declined} declined, {flood} queued; \
         {honest} of {HONEST} honest ones queued"
    );
    assert!(honest * 100 >= HONEST as u64 * 99, "{honest} of {HONEST}");
    assert!(flood as usize * 20 <= QUOTA, "{flood} of {QUOTA}");
}

fn batch(urls: impl Iterator<Item = PageUrl>) -> LinkBatch {
    let link = |url| Link {
        url,
        depth: 1,
        target: Default::default(),
    };
    LinkBatch {
        crawl: CrawlId::OPEN,
        links: urls.map(link).collect(),
    }
}

/// URLs of the domains that the first victim owns, 32 for each.
fn owned_urls(name: &str, port: u16) -> impl Iterator<Item = PageUrl> + use<'_> {
    let names = (0..).map(move |number| format!("{name}{number}.test"));
    let is_owned = |name: &String| {
        let domain: Domain = name.parse().unwrap();
        (0.42..0.9).contains(&domain.key().fraction())
    };
    names.filter(is_owned).flat_map(move |name| {
        (0..32).map(move |page| PageUrl::parse(&format!("http://{name}:{port}/{page}")).unwrap())
    })
}
