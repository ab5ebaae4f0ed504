//! The peer inside the app: started, followed, and ended with a goodbye to the ring.

use crate::{launch::Place, local_api::LocalApi};
use anyhow::Context;
use apoidea_peer::{Config, Consent, Handle, Peer};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::sync::Mutex;

/// A volunteer who quits waits 10 s at most; what is not written by then is recovered at the next
/// start.
const LEAVE_WITHIN: Duration = Duration::from_secs(8);
/// By then the process is over even if its clock hangs together with the disk.
pub const GONE_WITHIN: Duration = Duration::from_millis(9500);
/// The file in the data folder that says that the volunteer has agreed.
const WELCOMED_FILE: &str = "welcomed";

/// The peer inside the app.
pub struct Engine {
    peer: Mutex<Option<Peer>>,
    handle: Handle,
    api: LocalApi,
    folder: PathBuf,
}

impl Engine {
    /// Starts the peer. One whose volunteer has not agreed yet starts paused and outside the ring.
    pub async fn start(place: &Place) -> anyhow::Result<Self> {
        let folder = data_folder(place)?;
        let mut config = Config::load(&config_file(place)?, &place.settings)?.with_a_user();
        if !folder.join(WELCOMED_FILE).exists() {
            config.consent = Consent::Awaited;
        }
        let peer = Peer::start(config, &folder).await?;
        let handle = peer.handle().clone();
        let api = LocalApi::of(&folder)?;
        Ok(Engine {
            peer: Mutex::new(Some(peer)),
            handle,
            api,
            folder,
        })
    }

    /// Asks the peer what every face may ask.
    pub fn api(&self) -> &LocalApi {
        &self.api
    }

    /// Follows the peer.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// A link that opens a page of the dashboard, once; none while the peer leaves.
    pub async fn link(&self, page: &str) -> Option<String> {
        let peer = self.peer.lock().await;
        peer.as_ref()
            .map(|peer| format!("{}&page={page}", peer.dashboard_link()))
    }

    /// Has the volunteer agreed to crawl?
    pub fn is_welcomed(&self) -> bool {
        self.folder.join(WELCOMED_FILE).exists()
    }

    /// Notes that the volunteer has agreed: they let the peer go on.
    pub fn welcome(&self) {
        if let Err(error) = fs::write(self.folder.join(WELCOMED_FILE), "") {
            tracing::warn!(%error, "the consent was not written down; it is asked for again");
        }
    }

    /// Leaves the ring and makes everything durable, or gives up in time.
    pub async fn leave(&self) {
        let Some(peer) = self.peer.lock().await.take() else {
            return;
        };
        if tokio::time::timeout(LEAVE_WITHIN, peer.stop())
            .await
            .is_err()
        {
            tracing::warn!(
                "not everything could be written in time; the next start recovers the rest"
            );
        }
    }
}

/// Where the peer keeps what it remembers: the same folder as that of `apoidea`.
pub fn data_folder(place: &Place) -> anyhow::Result<PathBuf> {
    let default = || {
        Some(
            directories::ProjectDirs::from("", "", "apoidea")?
                .data_local_dir()
                .to_owned(),
        )
    };
    place
        .data
        .clone()
        .or_else(default)
        .context("this system names no home folder: use --data FOLDER")
}

fn config_file(place: &Place) -> anyhow::Result<PathBuf> {
    let default = || {
        Some(
            directories::ProjectDirs::from("", "", "apoidea")?
                .config_dir()
                .join("apoidea.toml"),
        )
    };
    place
        .config
        .clone()
        .or_else(default)
        .context("this system names no home folder: use --config FILE")
}

/// The folder's log, beside what the peer remembers.
pub fn log_folder(folder: &Path) -> PathBuf {
    folder.join("log")
}
