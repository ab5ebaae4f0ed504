//! A toy web together with a folder for the peer that crawls it.

use crate::peer_process::Launch;
use apoidea_toyweb::{Builder, ToyWeb};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A web, and room for one peer.
pub struct Toy {
    pub web: ToyWeb,
    folder: TempDir,
}

impl Toy {
    /// Starts the web.
    pub async fn start(plan: Builder) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("apoidea-test-")
            .tempdir()
            .unwrap();
        let web = plan.start().await.unwrap();
        fs::write(folder.path().join("ca.pem"), web.ca_pem()).unwrap();
        Toy { web, folder }
    }

    /// The folder that is gone afterwards.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the peer keeps its memory.
    pub fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// A peer that may visit this web, at a quick pace, and nothing else on this machine.
    pub fn launch(&self) -> Launch {
        let networks: Vec<String> = self
            .web
            .addresses()
            .iter()
            .map(|address| format!("\"{address}\""))
            .collect();
        Launch::new(&self.data())
            .set(
                "crawl.ports",
                format!("[{},{}]", self.web.http_port(), self.web.https_port()),
            )
            .set(
                "crawl.private_networks",
                format!("[{}]", networks.join(",")),
            )
            .set("crawl.private_delay_ms", 20)
            .set("crawl.private_address_delay_ms", 0)
            .set("crawl.private_backoff_ms", 1000)
            .set("crawl.dns", format!("[\"{}\"]", self.web.dns_address()))
            .set(
                "crawl.trusted_certificates",
                format!("[{:?}]", self.folder().join("ca.pem")),
            )
    }

    /// The same, beginning at the web's seeds.
    pub fn launch_with_seeds(&self) -> Launch {
        self.web.seeds().iter().fold(self.launch(), |launch, seed| {
            launch.option(format!("--seed={seed}"))
        })
    }
}
