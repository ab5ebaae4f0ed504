//! The behaviour of every overlay, whichever lookup system is underneath.

use crate::{
    networks::{Kin, Network, Node, keys, settle},
    peers::{ECHO, PATIENCE, WHO},
};
use apoidea_model::{Key, PeerId};
use apoidea_overlay::ArcChange;
use bytes::Bytes;
use std::time::{Duration, Instant};
use tokio::{sync::broadcast, time};

async fn a_single_member_owns_everything(kin: Kin) {
    let network = Network::new(kin, 1);
    let nodes = network.grow(1).await;
    assert!(keys().into_iter().all(|key| nodes[0].overlay.owns(key)));
    let owners = nodes[0].overlay.owners(Key::hash("x"), 3).await.unwrap();
    assert_eq!(owners, [nodes[0].me()]);
}

async fn all_members_agree_on_distinct_owners(kin: Kin) {
    let network = Network::new(kin, 8);
    let nodes = network.grow(8).await;
    let owners = nodes[0].overlay.owners(Key::hash("x"), 100).await.unwrap();
    assert!(
        owners.len() >= 7,
        "as many as there are, or as a successor list holds: {}",
        owners.len()
    );
}

async fn a_request_by_id_reaches_the_owner_from_everywhere(kin: Kin) {
    let network = Network::new(kin, 5);
    let nodes = network.grow(5).await;
    for key in keys().into_iter().take(10) {
        for node in &nodes {
            let owner = node.overlay.owners(key, 1).await.unwrap()[0];
            let answer = node
                .overlay
                .request(owner, WHO, Bytes::new())
                .await
                .unwrap();
            assert_eq!(
                answer[..32],
                *owner.key().as_bytes(),
                "the right process answers"
            );
            assert_eq!(
                answer[32..],
                *node.me().key().as_bytes(),
                "and knows who asks"
            );
        }
    }
}

async fn round_trips_are_known_to_peers_that_were_asked(kin: Kin) {
    let network = Network::new(kin, 3);
    let nodes = network.grow(3).await;
    let (asker, other) = (&nodes[0], nodes[1].me());
    let asked = asker.overlay.request(other, ECHO, Bytes::new()).await;
    asked.unwrap();
    let round_trip = asker.overlay.round_trip(other).expect("it was asked");
    assert!(round_trip > Duration::ZERO && round_trip < PATIENCE);
    assert_eq!(asker.overlay.round_trip(asker.me()), Some(Duration::ZERO));
    let stranger = PeerId::at(Key::hash("stranger"));
    assert_eq!(asker.overlay.round_trip(stranger), None);
}

/// Waits for news of an arc with this key.
async fn news(changes: &mut broadcast::Receiver<ArcChange>, key: Key) -> ArcChange {
    let next = async {
        loop {
            let change = changes.recv().await.unwrap();
            let (ArcChange::Gained { arc, .. } | ArcChange::Lost { arc, .. }) = change;
            if arc.contains(key) {
                return change;
            }
        }
    };
    time::timeout(PATIENCE, next)
        .await
        .expect("the change is reported")
}

fn find(nodes: &[Node], wanted: impl Fn(&Node) -> bool) -> usize {
    nodes.iter().position(wanted).unwrap()
}

async fn when_an_owner_crashes_the_next_takes_over_and_says_so(kin: Kin) {
    let network = Network::new(kin, 5);
    let mut nodes = network.grow(5).await;
    let key = Key::hash("some key");
    let owners = nodes[0].overlay.owners(key, 2).await.unwrap();
    let heir = find(&nodes, |node| node.me() == owners[1]);
    let mut changes = nodes[heir].overlay.arc_changes();
    let at = find(&nodes, |node| node.me() == owners[0]);
    let victim = nodes.remove(at);
    victim.crash().await;
    let start = Instant::now();
    let error = nodes[0]
        .overlay
        .request(owners[0], ECHO, Bytes::new())
        .await
        .unwrap_err();
    assert!(error.is_absence(), "{error}");
    assert!(
        start.elapsed() < Duration::from_secs(6),
        "{:?}",
        start.elapsed()
    );
    let change = news(&mut changes, key).await;
    assert!(
        matches!(change, ArcChange::Gained { from, .. } if from == Some(owners[0])),
        "{change:?}"
    );
    settle(&nodes).await;
    assert_eq!(nodes[0].overlay.owners(key, 1).await.unwrap(), owners[1..]);
}

async fn a_member_that_starts_late_takes_keys_from_others_who_say_so(kin: Kin) {
    let network = Network::new(kin, 4);
    let mut nodes = network.grow(3).await;
    let mut changes: Vec<_> = nodes
        .iter()
        .map(|node| node.overlay.arc_changes())
        .collect();
    let late = network.start(3);
    let me = late.me();
    nodes.push(late);
    settle(&nodes).await;
    // Its own position is the end of an arc of its own on the ring; in a fixed network any of its
    // keys will do.
    let key = match kin {
        Kin::Chord => me.key(),
        Kin::Fixed => (0..)
            .map(|n| Key::hash(format!("late {n}")))
            .find(|key| nodes[3].overlay.owns(*key))
            .unwrap(),
    };
    let loss = futures::future::select_all(
        changes
            .iter_mut()
            .map(|changes| Box::pin(news(changes, key))),
    )
    .await
    .0;
    assert!(
        matches!(loss, ArcChange::Lost { to, .. } if to == Some(me)),
        "{loss:?}"
    );
}

async fn owners_stay_reachable_while_members_come_and_go(kin: Kin) {
    let network = Network::new(kin, 6);
    let mut nodes = network.grow(5).await;
    nodes.pop().unwrap().crash().await;
    nodes.push(network.start(5));
    settle(&nodes).await;
    for key in keys().into_iter().take(10) {
        let owner = nodes[0].overlay.owners(key, 1).await.unwrap()[0];
        assert!(
            nodes[0]
                .overlay
                .request(owner, ECHO, Bytes::new())
                .await
                .is_ok()
        );
    }
}

/// Every behaviour, once for every lookup system.
macro_rules! conformance {
    ($($behaviour:ident)*) => {
        mod fixed {
            $(#[tokio::test] async fn $behaviour() { super::$behaviour(super::Kin::Fixed).await })*
        }
        mod chord {
            $(#[tokio::test] async fn $behaviour() { super::$behaviour(super::Kin::Chord).await })*
        }
    };
}

conformance! {
    a_single_member_owns_everything
    all_members_agree_on_distinct_owners
    a_request_by_id_reaches_the_owner_from_everywhere
    when_an_owner_crashes_the_next_takes_over_and_says_so
    a_member_that_starts_late_takes_keys_from_others_who_say_so
    owners_stay_reachable_while_members_come_and_go
    round_trips_are_known_to_peers_that_were_asked
}
