//! A peer that pauses for long hands its domains on, and has them back when it may run again.

use crate::{
    patience,
    swarm_trial::{QUICK, Trial, view},
};
use apoidea_model::Domain;
use apoidea_peer::NetworkState;
use apoidea_toyweb::ToyWeb;
use reqwest::Method;
use serde_json::json;
use std::{collections::BTreeSet, time::Duration};

const PATIENCE: Duration = Duration::from_secs(120);

impl Trial {
    /// The running peer with the largest part of the ring, and the hosts that are its own.
    async fn largest_owner(&self) -> (usize, BTreeSet<String>) {
        let mut largest = (0.0, 0, None);
        for (number, peer) in &self.peers {
            let view = view(peer).await.unwrap();
            if view.share > largest.0 {
                largest = (
                    view.share,
                    *number,
                    view.predecessor.map(|before| (before.key(), view.me.key())),
                );
            }
        }
        let (_, number, arc) = largest;
        let (from, to) = arc.expect("among others everybody has a predecessor");
        let is_theirs = |domain: &Domain| domain.key().in_arc(from, to);
        let hosts = self
            .toy
            .web
            .truth()
            .must_fetch()
            .map(|url| url.domain())
            .filter(is_theirs);
        (
            number,
            hosts.map(|domain| domain.as_str().to_owned()).collect(),
        )
    }

    /// Waits until the web has seen so many requests, of these hosts if any are named.
    async fn wait_for_visits(&self, count: usize, since: usize, hosts: Option<&BTreeSet<String>>) {
        let seen = patience::look(PATIENCE, async || {
            let log = self.toy.web.log();
            let visits = log.visits.iter().skip(since);
            let of_hosts =
                visits.filter(|visit| hosts.is_none_or(|hosts| hosts.contains(&*visit.host)));
            (of_hosts.count() >= count).then_some(())
        });
        seen.await.expect("the crawl goes on");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_pause_hands_domains_on_and_its_end_brings_them_back() {
    let plan = ToyWeb::builder(5)
        .hosts(60)
        .pages(4000)
        .mean_bytes(2000)
        .skew(0.2)
        .addresses(32);
    let trial = Trial::start(plan, 3, QUICK).await;
    trial.wait_for_visits(400, 0, None).await;
    let (number, hosts) = trial.largest_owner().await;
    let peer = &trial.peers[&number];
    peer.prefer(json!({ "leave_after_seconds": 1 }))
        .await
        .unwrap();
    peer.request(Method::POST, "/api/pause")
        .send()
        .await
        .unwrap();
    let left = peer
        .wait("it leaves", PATIENCE, |status| {
            status.network == NetworkState::Outside
        })
        .await;

    let then = trial.toy.web.log().visits.len();
    trial.wait_for_visits(50, then, Some(&hosts)).await;
    let still = peer.status().await;
    assert_eq!(
        still.totals.pages, left.totals.pages,
        "others crawl its domains"
    );

    peer.request(Method::POST, "/api/resume")
        .send()
        .await
        .unwrap();
    peer.wait("it is back and has domains", PATIENCE, |status| {
        matches!(status.network, NetworkState::Member { .. }) && status.owned_domains > 0
    })
    .await;
    trial.finish().await;
    let log = trial.toy.web.log();
    assert_eq!(trial.missed(&log), []);
    assert_eq!(trial.repeats(&log), []);
    assert_eq!(trial.breaches(&log), [""; 0]);
}
