//! A line that is down, and comes back.

use super::{MINUTE, in_an_internet, nft};
use crate::{namespace, toy::Toy};
use apoidea_peer::Missing;
use apoidea_toyweb::ToyWeb;
use std::{process::Command, time::Duration};

#[test]
fn without_a_line_it_says_so_and_goes_on_by_itself() {
    in_an_internet("line::a_line_comes_back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by without_a_line_it_says_so_and_goes_on_by_itself"]
async fn a_line_comes_back() {
    if !namespace::is_prepared() {
        return;
    }
    let toy = Toy::start(ToyWeb::builder(20).hosts(4).pages(20).https_percent(100.0)).await;
    let port = toy.web.dns_address().port();
    nft(&format!(
        "add table inet line; add chain inet line arriving {{ type filter hook input priority 0; }}; \
         add rule inet line arriving th dport {port} drop"
    ));
    let peer = toy.launch_with_seeds().start().await;
    let status = peer
        .wait("the name server is missed", MINUTE, |status| {
            status.door.missing == Some(Missing::NameServer)
        })
        .await;
    assert!(status.reason.contains("name servers"), "{}", status.reason);
    let unplugged = Command::new("ip")
        .args(["route", "del", "default"])
        .status();
    assert!(unplugged.unwrap().success());
    let status = peer
        .wait("the Internet is missed", MINUTE, |status| {
            status.door.missing == Some(Missing::Internet)
        })
        .await;
    assert!(status.reason.contains("No Internet"), "{}", status.reason);
    assert_eq!(status.totals.pages, 0);
    nft("delete table inet line");
    let status = peer
        .wait("it goes on by itself", Duration::from_secs(30), |status| {
            status.totals.pages > 0
        })
        .await;
    assert_eq!(status.door.missing, None);
    assert_eq!(
        status.totals.failures.values().sum::<u64>(),
        0,
        "no site is blamed: {:?}",
        status.totals.failures
    );
}
