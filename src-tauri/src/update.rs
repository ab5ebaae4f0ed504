//! Updates: what is announced, fetched, and taken only with our signature on exactly that version.
//!
//! Only a copy that nobody else updates looks for them: on Windows, on macOS, and as an AppImage.
//! Packages are the package manager's, and a program that was built without the public half of the
//! release key trusts nobody.

use apoidea_governor::Switch;
use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tauri::{Manager, Runtime, plugin::TauriPlugin};
use tauri_plugin_updater::{Config, Update, UpdaterExt};
use tokio::sync::Notify;

/// The public half of the release key, in the form that `tauri signer generate` prints; given while
/// building a release.
pub const RELEASE_KEY: Option<&str> = option_env!("APOIDEA_UPDATE_KEY");
/// The start of a session has other things to do.
pub const FIRST_LOOK_AFTER: Duration = Duration::from_secs(10 * 60);
/// A release is no news of the hour.
pub const LOOK_EVERY: Duration = Duration::from_secs(24 * 3600);
/// Four times the largest download that we publish; whatever is longer is none of ours.
const LONGEST: usize = 100 << 20;
/// A slow line gets this done; one that is slower tries again tomorrow.
const FETCH_WITHIN: Duration = Duration::from_secs(3600);

/// Why there is no update to install.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// What is announced cannot be had, or is not signed by us.
    #[error(transparent)]
    Refused(#[from] tauri_plugin_updater::Error),
    /// It does not end.
    #[error("the update is longer than {LONGEST} bytes")]
    TooLong,
}

/// An update that carries our signature.
pub struct Signed {
    update: Update,
    bytes: Vec<u8>,
}

impl Signed {
    /// The version that it brings.
    pub fn version(&self) -> &str {
        &self.update.version
    }

    /// Puts it in the place of this copy. On Windows the installer takes over, and this program
    /// ends.
    pub fn install(self) -> Result<(), UpdateError> {
        Ok(self.update.install(self.bytes)?)
    }
}

/// Is it up to this copy to update itself?
pub fn is_ours() -> bool {
    RELEASE_KEY.is_some()
        && (cfg!(not(target_os = "linux")) || std::env::var_os("APPIMAGE").is_some())
}

/// What Tauri needs to know; a key that is none refuses every update.
pub fn plugin<R: Runtime>(key: &str) -> TauriPlugin<R, Config> {
    tauri_plugin_updater::Builder::new().pubkey(key).build()
}

/// Fetches what is newer than this copy, if anything is. A volunteer who wants no updates has
/// nobody asked.
pub async fn newer<R: Runtime>(
    app: &impl Manager<R>,
    wanted: Switch,
) -> Result<Option<Signed>, UpdateError> {
    if wanted == Switch::Off {
        return Ok(None);
    }
    let updater = app
        .updater_builder()
        .timeout(FETCH_WITHIN)
        .no_proxy()
        .build()?;
    let Some(update) = updater.check().await? else {
        return Ok(None);
    };
    let (length, too_long) = (AtomicUsize::new(0), Notify::new());
    let count = |more: usize, _| {
        if length.fetch_add(more, Ordering::Relaxed) + more > LONGEST {
            too_long.notify_one();
        }
    };
    let bytes = tokio::select! {
        bytes = update.download(count, || ()) => bytes?,
        () = too_long.notified() => return Err(UpdateError::TooLong),
    };
    Ok(Some(Signed { update, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::prelude::*;
    use minisign::KeyPair;
    use serde_json::json;
    use std::{
        io::{BufRead, BufReader, Write},
        net::{SocketAddr, TcpListener},
    };
    use tauri::{
        App,
        test::{MockRuntime, mock_builder, mock_context, noop_assets},
    };

    /// How the updater wants keys and signatures spelled: their text once more in Base64.
    fn spelled(text: &str) -> String {
        BASE64_STANDARD.encode(text)
    }

    fn key() -> KeyPair {
        KeyPair::generate_unencrypted_keypair().unwrap()
    }

    fn signature(key: &KeyPair, bytes: &[u8], comment: &str) -> String {
        let signed = minisign::sign(None, &key.sk, bytes, Some(comment), None).unwrap();
        spelled(&signed.into_string())
    }

    /// A server of releases, which announces a version and gives these bytes for it.
    fn releases(version: &str, signature: &str, bytes: &'static [u8]) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}/apoidea");
        let announcement =
            json!({ "version": version, "url": url, "signature": signature }).to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let head: Vec<String> = lines
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let is_file = head.first().is_some_and(|line| line.contains("/apoidea"));
                let body = if is_file {
                    bytes
                } else {
                    announcement.as_bytes()
                };
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    body.len()
                );
                let _ = stream
                    .write_all(head.as_bytes())
                    .and_then(|()| stream.write_all(body));
            }
        });
        address
    }

    /// A copy of version 0.1.0 that trusts this key.
    fn copy(key: &KeyPair, releases: SocketAddr) -> App<MockRuntime> {
        let mut context = mock_context(noop_assets());
        context.config_mut().version = Some("0.1.0".to_owned());
        let settings = json!({
            "pubkey": "",
            "endpoints": [format!("http://{releases}/latest.json")],
            "dangerousInsecureTransportProtocol": true,
            "requireSignedVersion": true,
        });
        context
            .config_mut()
            .plugins
            .0
            .insert("updater".to_owned(), settings);
        let key = spelled(&key.pk.to_box().unwrap().to_string());
        mock_builder().plugin(plugin(&key)).build(context).unwrap()
    }

    fn newer_of(app: &App<MockRuntime>) -> Result<Option<Signed>, UpdateError> {
        newer_if(app, Switch::On)
    }

    fn newer_if(app: &App<MockRuntime>, wanted: Switch) -> Result<Option<Signed>, UpdateError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(newer(app.handle(), wanted))
    }

    #[test]
    fn a_newer_version_with_our_signature_is_taken() {
        let ours = key();
        let from = releases(
            "0.2.0",
            &signature(&ours, b"bees", "version:0.2.0"),
            b"bees",
        );
        let found = newer_of(&copy(&ours, from)).unwrap().unwrap();
        assert_eq!((found.version(), &found.bytes[..]), ("0.2.0", &b"bees"[..]));
    }

    #[test]
    fn a_tampered_update_is_refused() {
        let ours = key();
        let from = releases(
            "0.2.0",
            &signature(&ours, b"bees", "version:0.2.0"),
            b"wasp",
        );
        assert!(matches!(
            newer_of(&copy(&ours, from)),
            Err(UpdateError::Refused(_))
        ));
    }

    #[test]
    fn an_update_of_somebody_else_is_refused() {
        let from = releases(
            "0.2.0",
            &signature(&key(), b"bees", "version:0.2.0"),
            b"bees",
        );
        assert!(matches!(
            newer_of(&copy(&key(), from)),
            Err(UpdateError::Refused(_))
        ));
    }

    #[test]
    fn an_old_release_under_a_new_number_is_refused() {
        let ours = key();
        for comment in ["version:0.0.9", "without a version"] {
            let from = releases("0.2.0", &signature(&ours, b"bees", comment), b"bees");
            assert!(
                matches!(newer_of(&copy(&ours, from)), Err(UpdateError::Refused(_))),
                "{comment}"
            );
        }
    }

    #[test]
    fn switched_off_nobody_is_asked() {
        let nobody = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let app = copy(&key(), nobody);
        assert!(newer_if(&app, Switch::On).is_err());
        assert!(newer_if(&app, Switch::Off).unwrap().is_none());
    }

    #[test]
    fn what_is_not_newer_is_left_alone() {
        let ours = key();
        for version in ["0.1.0", "0.0.9"] {
            let signed = signature(&ours, b"bees", &format!("version:{version}"));
            let from = releases(version, &signed, b"bees");
            assert!(newer_of(&copy(&ours, from)).unwrap().is_none(), "{version}");
        }
    }
}
