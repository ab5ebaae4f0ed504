//! A web in another process is asked over its control port.

use crate::client::client;
use apoidea_model::PageUrl;
use apoidea_toyweb::{AccessLog, Description, ToyWeb};

#[tokio::test]
async fn the_control_port_tells_what_the_web_itself_tells() {
    let web = ToyWeb::builder(4)
        .hosts(2)
        .pages(20)
        .control(0)
        .start()
        .await
        .unwrap();
    let client = client(&web);
    let seed = web.seeds().remove(0);
    client.get(seed.as_str()).send().await.unwrap();
    let ask = async |question: &str| {
        let url = format!(
            "http://{}/.toyweb/{question}",
            web.control_address().unwrap()
        );
        client
            .get(url)
            .send()
            .await
            .unwrap()
            .error_for_status()
            .unwrap()
            .text()
            .await
            .unwrap()
    };
    let description: Description = serde_json::from_str(&ask("config").await).unwrap();
    assert_eq!(&description, web.description());
    let log: AccessLog = serde_json::from_str(&ask("log").await).unwrap();
    assert_eq!(log.visits, web.log().visits);
    assert_eq!(log.visits.len(), 1, "questions are no part of the log");
    let listed: Vec<PageUrl> = ask("must-fetch")
        .await
        .lines()
        .map(|line| PageUrl::parse(line).unwrap())
        .collect();
    assert_eq!(listed, web.truth().must_fetch().collect::<Vec<_>>());
    assert!(ask(&format!("truth?url={seed}")).await.contains("\"keep\""));
    assert_eq!(ask("intruders").await, "[]");
}

#[tokio::test]
async fn the_log_is_written_to_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("access.jsonl");
    let web = ToyWeb::builder(4)
        .hosts(1)
        .pages(2)
        .log_file(&path)
        .start()
        .await
        .unwrap();
    client(&web)
        .get(web.seeds()[0].as_str())
        .send()
        .await
        .unwrap();
    web.stop().await.unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(
        text.lines()
            .all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok())
    );
    assert!(
        text.contains("\"lookup\"") && text.contains("\"visit\""),
        "{text}"
    );
}
