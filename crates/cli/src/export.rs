//! `apoidea export`: archived pages of a domain or a time, as a WARC file of their own.

use crate::arguments::{ExportOptions, Place};
use anyhow::{Context, bail};
use apoidea_model::{Domain, Time};
use apoidea_peer::ARCHIVE_FOLDER;
use apoidea_store::archive::{Encoder, ExportFilter, Exported, Reader, parse_time};
use std::{
    fs,
    io::{self, BufWriter, Write},
    path::Path,
    process::ExitCode,
    time::SystemTime,
};

pub fn export(place: &Place, options: &ExportOptions) -> anyhow::Result<ExitCode> {
    let archive = place.data()?.join(ARCHIVE_FOLDER);
    if !archive.is_dir() {
        bail!("there is no archive in {}", archive.display());
    }
    let filter = ExportFilter {
        domain: options
            .domain
            .as_deref()
            .map(str::parse::<Domain>)
            .transpose()?,
        from: options.from.as_deref().map(moment).transpose()?,
        to: options.to.as_deref().map(moment).transpose()?,
    };
    let exported = write_new(&options.file, |out, name| {
        let software = concat!("Apoidea/", env!("CARGO_PKG_VERSION"));
        let mut encoder = Encoder::new(rand::random());
        Ok(Reader::new(&archive).export(
            &filter,
            (name, software),
            Time::from(SystemTime::now()),
            &mut encoder,
            out,
        )?)
    })?;
    let Exported {
        captures,
        records,
        bytes,
    } = exported;
    println!(
        "{captures} pages ({records} records, {})",
        indicatif::HumanBytes(bytes)
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes a file under another name first, so that it is whole or not there. An existing file is
/// left alone.
fn write_new<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<fs::File>, &str) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    if path.exists() {
        bail!("{} exists already; choose another name", path.display());
    }
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .context("the file needs a name")?;
    let partial = path.with_file_name(format!("{name}.part"));
    let cannot_write = || format!("cannot write {}", partial.display());
    let mut out = BufWriter::new(fs::File::create(&partial).with_context(cannot_write)?);
    let written = write(&mut out, name).and_then(|value| {
        out.flush()
            .and_then(|()| out.get_ref().sync_all())
            .with_context(cannot_write)?;
        Ok(value)
    });
    match written {
        Ok(value) => {
            fs::rename(&partial, path)
                .with_context(|| format!("cannot write {}", path.display()))?;
            Ok(value)
        }
        Err(error) => {
            let _: io::Result<()> = fs::remove_file(&partial);
            Err(error)
        }
    }
}

fn moment(text: &str) -> anyhow::Result<Time> {
    let day = format!("{text}T00:00:00Z");
    let found = parse_time(text).or_else(|| parse_time(&day));
    found.with_context(|| {
        format!("{text:?} is no time; it should look like 2026-11-16 or 2026-11-16T08:00:00Z")
    })
}
