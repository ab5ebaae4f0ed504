//! Lies about domains: replicas, changes and hand-overs that no owner made.

use super::{
    Hostile, Part, beyond,
    forgery::Forgery,
    messages::{
        self, Access, CENSUS, CensusAsk, CensusPage, Counters, DELTAS, Delta, DeltaAnswer, FETCH,
        KnownRobots, OFFER, OfferAnswer, Origin, Parcel, REPLICAS, Replica, State, Step, Stop,
        Versions,
    },
    now,
    victims::{Victim, Victims},
    whole_ring,
};
use crate::{patience, toy::Toy};
use apoidea_model::{Domain, Key, PageUrl, Slot};
use apoidea_peer::{DomainStatus, Role};
use apoidea_toyweb::{Builder, Fate, Quirk, ToyWeb};
use futures::future::{FutureExt, ready};
use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{sync::Notify, time};

const PATIENCE: Duration = Duration::from_secs(60);
/// For something that takes a moment, on a busy machine.
const SOON: Duration = Duration::from_secs(10);
/// A peer that stalls answers just before the request would count as lost.
const STALL: Duration = Duration::from_secs(9);

fn web() -> Builder {
    ToyWeb::builder(23)
        .hosts(20)
        .pages(300)
        .mean_bytes(3000)
        .skew(0.0)
}

/// So slow that the attack comes while most pages wait.
fn slowly() -> [(&'static str, String); 1] {
    [("crawl.private_delay_ms", "200".to_owned())]
}

/// Made-up domains between two places on the ring.
fn domains_within(places: Range<f64>, count: usize) -> Vec<Domain> {
    let names = (0..).map(|number| format!("d{number}-made-up.test").parse::<Domain>().unwrap());
    names
        .filter(|domain| places.contains(&domain.key().fraction()))
        .take(count)
        .collect()
}

/// Forges the state of all domains while they are crawled; none may change, and all are crawled.
async fn a_stranger_changes_nothing(state: State) {
    let victims = Victims::start(web(), &[0.1..0.12, 0.4..0.42, 0.7..0.72], &slowly()).await;
    victims.seed().await;
    let hosts = victims.hosts();
    let begun = patience::look(SOON, async || {
        (victims.rows().await.len() >= 2 * hosts.len()).then_some(())
    });
    begun.await.expect("the crawl begins");
    let before = victims.missed().len();
    let forgery = Forgery::default();
    let stranger = Hostile::stranger(forgery.part());
    let mut wanted = 0;
    for _ in 0..2 {
        for peer in &victims.peers {
            stranger.meet(peer.address).await;
            let known = census(&stranger, peer).await;
            for host in &hosts {
                let known = known.get(host).cloned().unwrap_or_default();
                forgery.forge(host, &known, state.clone(), Vec::new());
            }
            wanted += forgery.offer(&stranger, peer.id).await.unwrap_or(0);
        }
        time::sleep(Duration::from_millis(500)).await;
    }
    let missed = victims.crawl(PATIENCE).await;
    let rows = victims.rows().await;
    let is_stopped = |status| matches!(status, DomainStatus::Stopped { .. });
    let stopped: BTreeSet<&Domain> = rows
        .iter()
        .filter(|row| is_stopped(row.state))
        .map(|row| &row.domain)
        .collect();
    println!(
        "{wanted} offers wanted; {} domains stopped; {} pages missed of {before} that waited",
        stopped.len(),
        missed.len()
    );
    assert_eq!((wanted, stopped.len(), missed.len()), (0, 0, 0));
}

/// The replicas that a peer names to a stranger.
async fn census(hostile: &Hostile, peer: &Victim) -> BTreeMap<Domain, Versions> {
    let ask = CensusAsk {
        arc: whole_ring(),
        after: None,
    };
    let page = hostile.ask::<CensusPage>(peer.id, CENSUS, &ask).await;
    page.map_or_else(|_| BTreeMap::new(), |page| page.held.into_iter().collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_stops_no_domain() {
    let state = State {
        stopped: Some(Stop::Challenged),
        ..State::default()
    };
    a_stranger_changes_nothing(state).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_makes_no_domain_wait_for_ever() {
    let state = State {
        last_pause: Some(Duration::MAX),
        ..State::default()
    };
    a_stranger_changes_nothing(state).await;
}

/// The domains, versions and places in queues that a replica's holder was told.
type Told = Arc<Mutex<BTreeMap<Domain, (Versions, BTreeSet<Slot>)>>>;

fn note_deltas(told: &Told, deltas: Vec<Delta>) {
    let mut told = told.lock().unwrap();
    for delta in deltas {
        let (versions, slots) = told.entry(delta.domain).or_default();
        *versions = delta.versions;
        slots.extend(delta.puts.iter().map(|put| put.slot));
        delta.removes.iter().for_each(|slot| _ = slots.remove(slot));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_neighbour_that_is_not_the_owner_empties_no_queue() {
    let places = [0.0..0.01, 0.2..0.21, 0.4..0.41, 0.6..0.61];
    let victims = Victims::start(web(), &places, &slowly()).await;
    let told = Told::default();
    let noted = told.clone();
    let part = Part::careless_but(move |_, kind, body| {
        if kind == DELTAS
            && let Some(deltas) = messages::decode_deltas(body)
        {
            note_deltas(&noted, deltas);
        }
        // An owner that fetches the domain from here finds nothing in it.
        let empty = || {
            let domains: Vec<Domain> = messages::decode(body)?;
            Some(Ok(messages::encode(&empty_parcels(&noted, domains))))
        };
        ready((kind == REPLICAS).then(empty).flatten()).boxed()
    });
    // Right after the owner of the domains below, and so one of their holders.
    let near = Hostile::member(0.8..0.81, &victims.addresses(), part).await;
    victims.wait_for_ring(&[&near]).await;
    victims.pause().await;
    let domains = domains_within(0.42..0.6, 40);
    let urls: Vec<String> = domains
        .iter()
        .flat_map(|domain| (0..5).map(move |page| format!("http://{domain}:{{port}}/{page}")))
        .map(|url| url.replace("{port}", &victims.toy.web.http_port().to_string()))
        .collect();
    let (owner, holder) = (&victims.peers[3], &victims.peers[0]);
    victims.peers[1].process.seed(&urls).await;
    let queued = async |victim: &Victim, role| -> u64 {
        let rows = victim.process.domains().await.into_iter();
        let rows = rows.filter(|row| row.role == role && domains.contains(&row.domain));
        rows.map(|row| row.queued).sum()
    };
    let all = urls.len() as u64;
    let arrived = patience::look(SOON, async || {
        let here = queued(owner, Role::Owner).await == all;
        let there = queued(holder, Role::Holder).await == all;
        (here && there && told.lock().unwrap().len() == domains.len()).then_some(())
    });
    arrived.await.expect("owner and holder have all");
    let known = told.lock().unwrap().clone();
    let mut applied = 0;
    for tenure in [None, Some(messages::tenure(now()))] {
        let deltas: Vec<Delta> = known
            .iter()
            .map(|(domain, (versions, slots))| removal(domain, versions, slots, tenure))
            .collect();
        for victim in [holder, owner] {
            let answers = near
                .ask::<Vec<DeltaAnswer>>(victim.id, DELTAS, &near.sign(&deltas))
                .await;
            let answers = answers.unwrap_or_default().into_iter();
            applied += answers
                .filter(|answer| *answer == DeltaAnswer::Applied)
                .count();
        }
    }
    // Whoever is behind by these versions fetches the forged replicas.
    for victim in [owner, holder] {
        let fetch = near.tell(victim.id, FETCH, &domains);
        let _ = time::timeout(Duration::from_secs(2), fetch).await;
    }
    // A domain that is in memory is replaced when it leaves it.
    victims.resume().await;
    time::sleep(Duration::from_secs(2)).await;
    let here = queued(owner, Role::Owner).await;
    let there = queued(holder, Role::Holder).await;
    println!(
        "{applied} changes applied; of {all} URLs {here} wait at the owner, {there} at a holder"
    );
    assert_eq!((applied, here, there), (0, all, all));
}

/// A change that takes all URLs out of a queue, under the owner's tenure or another one.
fn removal(
    domain: &Domain,
    versions: &Versions,
    slots: &BTreeSet<Slot>,
    tenure: Option<u128>,
) -> Delta {
    let (latest, count) = *versions.last().expect("it was changed");
    let (tenure, base) = match tenure {
        Some(tenure) => (tenure, 0),
        None => (latest, count),
    };
    let step = Step {
        tenure,
        base,
        version: base + 1,
    };
    Delta {
        domain: domain.clone(),
        step,
        versions: messages::with_change(versions, tenure),
        puts: Vec::new(),
        removes: slots.iter().copied().collect(),
        errands: Vec::new(),
        delivered: Vec::new(),
        visits: Vec::new(),
        state: None,
    }
}

fn empty_parcels(told: &Told, domains: Vec<Domain>) -> Vec<Parcel> {
    let told = told.lock().unwrap();
    let parcel = |domain: Domain| {
        let known = told.get(&domain).map(|(versions, _)| versions.clone());
        let tenure = messages::tenure(now() + Duration::from_secs(60));
        let versions = messages::with_change(&known.unwrap_or_default(), tenure);
        Parcel::Whole(
            domain,
            Replica::forged(versions, State::default(), Vec::new()),
        )
    };
    domains.into_iter().map(parcel).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_acts_although_one_of_its_sources_stalls() {
    const ACTS_WITHIN: Duration = Duration::from_secs(30);
    let toy = Toy::start(web()).await;
    let hosts: Vec<Domain> = toy
        .web
        .truth()
        .hosts()
        .map(|(name, _)| name.parse().unwrap())
        .collect();
    // The newcomer comes right after a host, then its last owner, the one that stalls, and another.
    let host = hosts[0].clone();
    let places = [0.2, 0.6].map(|distance| beyond(host.key(), distance));
    let mut victims = Victims::on(toy, &places, &slowly()).await;
    let claimed = domains_near(&host, 200);
    let part = Part::careless_but(move |_, kind, body| match kind {
        CENSUS => {
            let versions: Versions = vec![(messages::tenure(now()), 9)];
            let held = claimed.iter().map(|name| (name.clone(), versions.clone()));
            let page = CensusPage {
                held: held.collect(),
                after: None,
            };
            ready(Some(Ok(messages::encode(&page)))).boxed()
        }
        REPLICAS => {
            let domains: Vec<Domain> = messages::decode(body).unwrap_or_default();
            let one: Vec<Parcel> = domains.into_iter().take(1).map(Parcel::Unknown).collect();
            time::sleep(STALL)
                .map(move |()| Some(Ok(messages::encode(&one))))
                .boxed()
        }
        _ => ready(None).boxed(),
    });
    let slow = Hostile::member(beyond(host.key(), 0.4), &victims.addresses(), part).await;
    victims.wait_for_ring(&[&slow]).await;
    let joined = Instant::now();
    victims.join(beyond(host.key(), 0.002)).await;
    let page = victims.pages_of(&host).remove(0);
    victims.peers[0].process.seed(&[page.as_str()]).await;
    let acted = patience::look(ACTS_WITHIN, async || {
        (!victims.visits_to(&host).is_empty()).then(|| joined.elapsed())
    });
    let acted = acted.await;
    println!("the newcomer acts after {acted:?}");
    assert!(acted.is_some(), "not within {ACTS_WITHIN:?}");
}

/// Made-up domains in the last part of the ring before a place right after this domain.
fn domains_near(domain: &Domain, count: usize) -> Vec<Domain> {
    let end = domain.key().fraction();
    let names = (0..).map(|number| format!("n{number}-made-up.test").parse::<Domain>().unwrap());
    let is_near = |name: &Domain| (end - name.key().fraction()).rem_euclid(1.0) < 0.1;
    names.filter(is_near).take(count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_stalls_holds_up_no_other_replica() {
    const WITHIN: Duration = Duration::from_secs(2);
    let victims = Victims::start(web(), &[0.5..0.51, 0.75..0.76], &slowly()).await;
    victims.pause().await;
    let stalling = || {
        Part::careless_but(|_, kind, _| match kind {
            REPLICAS => time::sleep(STALL)
                .map(|()| Some(Ok(messages::encode(&Vec::<Parcel>::new()))))
                .boxed(),
            _ => ready(None).boxed(),
        })
    };
    let fetched = Arc::new(Notify::new());
    let bell = fetched.clone();
    let part = Part::careless_but(move |_, kind, _| {
        if kind == REPLICAS {
            bell.notify_one();
        }
        ready(None).boxed()
    });
    let slow = Hostile::member(0.1..0.11, &victims.addresses(), stalling()).await;
    let bystander = Hostile::member(0.3..0.31, &victims.addresses(), part).await;
    victims.wait_for_ring(&[&slow, &bystander]).await;
    let stranger = Hostile::stranger(stalling());
    let victim = &victims.peers[0];
    stranger.meet(victim.address).await;
    let offer = |domains: &[Domain]| -> Vec<(Domain, Versions)> {
        let versions: Versions = vec![(messages::tenure(now()), 1)];
        let offers = domains.iter();
        offers
            .map(|domain| (domain.clone(), versions.clone()))
            .collect()
    };
    // Each member offers what it owns to a peer that should hold it.
    let own = domains_within(0.8..1.0, 64);
    let foreign = domains_within(0.11..0.3, 66);
    offered(&bystander, victim, &offer(&foreign[..1])).await;
    fetched.notified().await;
    let _ = stranger.tell(victim.id, OFFER, &offer(&foreign[2..])).await;
    offered(&slow, victim, &offer(&own)).await;
    time::sleep(Duration::from_millis(300)).await;
    let begun = Instant::now();
    offered(&bystander, victim, &offer(&foreign[1..2])).await;
    let waited = time::timeout(Duration::from_secs(12), fetched.notified()).await;
    println!("{waited:?} after {:?}", begun.elapsed());
    assert!(begun.elapsed() < WITHIN, "{:?}", begun.elapsed());
}

/// Offers domains until they are wanted: a victim may have to notice its new neighbour first.
async fn offered(member: &Hostile, victim: &Victim, offers: &[(Domain, Versions)]) {
    let wanted = patience::look(SOON, async || {
        let answer = member
            .ask::<Vec<OfferAnswer>>(victim.id, OFFER, &offers)
            .await;
        answer.ok()?.contains(&OfferAnswer::Wanted).then_some(())
    });
    wanted.await.expect("an owner may offer what is its own");
}

/// A hostile member hands what it owns over to the next peer and leaves. The peers are at these
/// distances after `key`, the hostile one right after it.
async fn hand_over(
    toy: Toy,
    key: Key,
    settings: &[(&'static str, String)],
    forgery: &Forgery,
) -> Victims {
    let places = [0.3, 0.6, 0.9].map(|distance| beyond(key, distance));
    let victims = Victims::on(toy, &places, settings).await;
    let owner = Hostile::member(beyond(key, 0.01), &victims.addresses(), forgery.part()).await;
    victims.wait_for_ring(&[&owner]).await;
    let next = &victims.peers[0];
    let taken = patience::look(SOON, async || {
        let wanted = forgery.offer(&owner, next.id).await.ok()?;
        (wanted == 0).then_some(())
    });
    taken
        .await
        .expect("an owner may give what is its own to the next peer");
    // Others need not want it.
    for peer in &victims.peers[1..] {
        let _ = forgery.offer(&owner, peer.id).await;
    }
    owner.leave().await;
    for peer in &victims.peers {
        peer.sees(victims.peers.len() - 1).await;
    }
    victims
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_claims_many_urls_takes_no_memory() {
    const MOST: u64 = 64 << 20;
    let key = Key::hash("a place of its own");
    let toy = Toy::start(web()).await;
    let forgery = Forgery::default();
    let state = State {
        counters: Counters {
            admitted: 1 << 22,
            ..Counters::default()
        },
        // Nobody asks these hosts meanwhile.
        rests_until: now() + Duration::from_secs(3600),
        ..State::default()
    };
    let mut domains = domains_near_key(key, 13);
    let control = domains.remove(0);
    let mut known = Vec::new();
    for domain in &domains {
        let page = |number| format!("http://{domain}:{}/{number}", toy.web.http_port());
        let pages: Vec<PageUrl> = (0..80).map(|n| PageUrl::parse(&page(n)).unwrap()).collect();
        forgery.forge_queue(domain, state.clone(), &pages);
        known.push(page(0));
    }
    let victims = hand_over(toy, key, &slowly(), &forgery).await;
    let owner = &victims.peers[0];
    let rows = owner.process.domains().await;
    let is_owned = |domain: &&Domain| {
        let mut rows = rows.iter();
        rows.any(|row| row.domain == **domain && row.role == Role::Owner && row.queued == 80)
    };
    let owned = domains.iter().filter(is_owned).count();
    assert_eq!(owned, domains.len(), "the hand-over itself is in order");
    let before = owner.memory_bytes();
    // The peer acts on the arc when it takes in a link of another domain there.
    let page = format!("http://{control}:{}/", victims.toy.web.http_port());
    owner.process.seed(&[page]).await;
    let acts = patience::look(SOON, async || {
        let rows = owner.process.domains().await;
        rows.iter().any(|row| row.domain == control).then_some(())
    });
    acts.await.expect("it acts on the arc");
    // A URL that is known already makes its filter, and adds nothing to it.
    owner.process.seed(&known).await;
    let grown = owner.memory_bytes().saturating_sub(before) >> 20;
    println!("{} domains: {grown} MiB more", domains.len());
    assert!(grown < MOST >> 20, "{grown} MiB");
}

/// Made-up domains in the tenth of the ring before a key.
fn domains_near_key(key: Key, count: usize) -> Vec<Domain> {
    let end = key.fraction();
    let names = (0..).map(|number| format!("k{number}-made-up.test").parse::<Domain>().unwrap());
    let is_near = |name: &Domain| (end - name.key().fraction()).rem_euclid(1.0) < 0.05;
    names.filter(is_near).take(count).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_that_the_volunteers_refuse_is_not_asked_after_a_hand_over() {
    let toy = Toy::start(web()).await;
    let (refused, control) = two_near_hosts(&toy);
    let forgery = Forgery::default();
    for host in [&refused, &control] {
        let pages: Vec<PageUrl> = toy
            .web
            .truth()
            .must_fetch()
            .filter(|url| url.domain() == *host)
            .take(3)
            .collect();
        forgery.forge_queue(host, State::default(), &pages);
    }
    let settings = [
        ("crawl.private_delay_ms", "60".to_owned()),
        ("crawl.refuse", format!("[\"{refused}\"]")),
    ];
    let last = latest(&refused, &control);
    let mut victims = hand_over(toy, last, &settings, &forgery).await;
    let asked = patience::look(SOON, async || {
        (victims.visits_to(&control).len() >= 4).then_some(())
    });
    asked.await.expect("the other domain is crawled");
    let stranger = Hostile::stranger(forgery.part());
    for peer in &victims.peers {
        stranger.meet(peer.address).await;
        let _ = forgery.offer(&stranger, peer.id).await;
    }
    let owner = victims.peers.remove(0);
    victims.peers.insert(0, owner.restart().await);
    victims.peers[0].sees(victims.peers.len() - 1).await;
    time::sleep(Duration::from_secs(2)).await;
    let visits = victims.visits_to(&refused).len();
    println!("{visits} requests to a domain that all refuse");
    assert_eq!(visits, 0);
}

/// Two hosts of the web that are next to each other on the ring.
fn two_near_hosts(toy: &Toy) -> (Domain, Domain) {
    let hosts = toy.web.truth().hosts();
    let mut hosts: Vec<Domain> = hosts.map(|(name, _)| name.parse().unwrap()).collect();
    hosts.sort_by_key(Domain::key);
    // Hosts of one site have one place; a refusal of the one holds for the others.
    hosts.dedup_by_key(|host| host.key());
    let distance = |pair: &&[Domain]| pair[0].key().distance_to(pair[1].key());
    let pair = hosts.windows(2).min_by_key(distance).unwrap();
    (pair[0].clone(), pair[1].clone())
}

fn latest(one: &Domain, other: &Domain) -> Key {
    one.key().max(other.key())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forged_robots_txt_opens_nothing() {
    let toy = Toy::start(web().quirks([Quirk::RobotsRules])).await;
    let truth = toy.web.truth();
    let site: Domain = "robots-rules.test".parse().unwrap();
    let forbidden: Vec<PageUrl> = truth
        .special(Fate::Never)
        .filter(|url| url.domain() == site)
        .collect();
    let open: Vec<PageUrl> = truth
        .special(Fate::Keep)
        .filter(|url| url.domain() == site)
        .collect();
    assert!(!forbidden.is_empty() && !open.is_empty());
    let forgery = Forgery::default();
    let robots = KnownRobots {
        origin: Origin::Http(toy.web.http_port()),
        access: Access::Open,
        until: now() + Duration::from_secs(3600),
        tries: 0,
    };
    let state = State {
        robots: vec![robots],
        ..State::default()
    };
    let pages = [forbidden.clone(), open.clone()].concat();
    forgery.forge_queue(&site, state, &pages);
    let victims = hand_over(toy, site.key(), &slowly(), &forgery).await;
    let urls_asked = || -> BTreeSet<String> {
        let visits = victims.visits_to(&site);
        visits.iter().map(|visit| visit.url()).collect()
    };
    let asked = patience::look(SOON, async || {
        let asked = urls_asked();
        let is_done = open.iter().all(|url| asked.contains(url.as_str()));
        is_done.then_some(asked)
    });
    let asked = asked.await.unwrap_or_else(urls_asked);
    let wrong: Vec<&PageUrl> = forbidden
        .iter()
        .filter(|url| asked.contains(url.as_str()))
        .collect();
    let knows = asked.iter().any(|url| url.ends_with("/robots.txt"));
    println!(
        "{} of {} forbidden pages asked for; robots.txt asked for: {knows}",
        wrong.len(),
        forbidden.len()
    );
    assert_eq!(wrong, Vec::<&PageUrl>::new());
    assert!(knows && open.iter().all(|url| asked.contains(url.as_str())));
}
