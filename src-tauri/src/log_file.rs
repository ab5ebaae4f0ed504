//! What the app writes down for when something goes wrong: warnings and panics, a week of them.

use anyhow::Context;
use std::{fs, path::Path};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;

/// Files kept, one a day.
const DAYS: usize = 7;

/// Begins to write into the folder.
pub fn start(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot use {}", folder.display()))?;
    let files = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("desktop")
        .filename_suffix("log")
        .max_log_files(DAYS)
        .build(folder)
        .with_context(|| format!("cannot write to {}", folder.display()))?;
    let filter = EnvFilter::try_from_env("APOIDEA_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(files)
        .try_init();
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!("{panic}");
        before(panic);
    }));
    Ok(())
}
