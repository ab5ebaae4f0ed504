//! Part of the archive as one new WARC file, to give away.

use super::{ArchiveError, Encoder, Reader, Record, file_name::FileState};
use apoidea_model::{Domain, Time};
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::Path,
};

/// The records to export; a part that is `None` selects all.
#[derive(Debug, Clone, Default)]
pub struct ExportFilter {
    /// Pages of this domain.
    pub domain: Option<Domain>,
    /// Fetched at this moment or later.
    pub from: Option<Time>,
    /// Fetched before this moment.
    pub to: Option<Time>,
}

/// The text as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Exported {
    /// Captures: response and revisit records.
    pub captures: u64,
    /// Records of all kinds, without the one at the head.
    pub records: u64,
    /// Bytes, compressed.
    pub bytes: u64,
}

impl ExportFilter {
    fn selects(&self, record: &Record) -> bool {
        let Some(url) = &record.url else { return false };
        self.domain
            .as_ref()
            .is_none_or(|domain| domain.as_str() == url.host())
            && self.from.is_none_or(|from| record.time >= from)
            && self.to.is_none_or(|to| record.time < to)
    }
}

impl Reader {
    /// Writes the selected records, byte for byte, behind a new head. `name` is what the result
    /// will be called, `now` goes into its head; errors of `out` are reported for that name.
    pub fn export(
        &self,
        filter: &ExportFilter,
        (name, software): (&str, &str),
        now: Time,
        encoder: &mut Encoder,
        out: &mut impl Write,
    ) -> Result<Exported, ArchiveError> {
        let head = encoder.warcinfo(name, software, now);
        out.write_all(&head)
            .map_err(ArchiveError::at(Path::new(name)))?;
        let mut exported = Exported {
            bytes: head.len() as u64,
            ..Exported::default()
        };
        for (file, state) in self.names()? {
            let path = file.warc_in(&self.folder, state);
            match export_file(&path, filter, name, out, &mut exported) {
                // Closed or given up since it was listed.
                Err(ArchiveError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound =>
                {
                    let closed = file.warc_in(&self.folder, FileState::Closed);
                    if state == FileState::Open && closed.exists() {
                        export_file(&closed, filter, name, out, &mut exported)?;
                    }
                }
                result => result?,
            }
        }
        out.flush().map_err(ArchiveError::at(Path::new(name)))?;
        Ok(exported)
    }
}

fn export_file(
    path: &Path,
    filter: &ExportFilter,
    name: &str,
    out: &mut impl Write,
    exported: &mut Exported,
) -> Result<(), ArchiveError> {
    let mut file = File::open(path).map_err(ArchiveError::at(path))?;
    for record in Reader::records(path)? {
        let record = record?;
        if !filter.selects(&record) {
            continue;
        }
        let mut member = vec![0; usize::try_from(record.length).unwrap_or(usize::MAX)];
        let read = file
            .seek(SeekFrom::Start(record.offset))
            .and_then(|_| file.read_exact(&mut member));
        read.map_err(ArchiveError::at(path))?;
        out.write_all(&member)
            .map_err(ArchiveError::at(Path::new(name)))?;
        exported.records += 1;
        exported.bytes += record.length;
        exported.captures += u64::from(matches!(record.kind.as_str(), "response" | "revisit"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{
        capture::tests::{encoder, page},
        encoder::tests::check,
        folder::tests::open,
    };
    use std::fs;

    #[test]
    fn an_export_is_a_valid_file_with_the_selected_pages() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = open(folder.path(), None, 4000);
        let mut encoder = encoder();
        let captures: Vec<_> = (0..12u64)
            .map(|n| {
                page(
                    &format!("http://{}.example/{n}", n % 3),
                    n,
                    &format!("body {n}"),
                )
            })
            .collect();
        for capture in &captures {
            archive.append(&capture.encode(&mut encoder)).unwrap();
        }
        archive.sync().unwrap();
        let export = |filter: &ExportFilter| {
            let mut bytes = Vec::new();
            let reader = Reader::new(folder.path());
            let now = captures[0].time;
            let exported = reader.export(
                filter,
                ("out.warc.gz", "test"),
                now,
                &mut Encoder::new([1; 32]),
                &mut bytes,
            );
            assert_eq!(exported.unwrap().bytes, bytes.len() as u64);
            let file = folder.path().join("out.warc.gz");
            fs::write(&file, bytes).unwrap();
            let responses = check(&file)
                .into_iter()
                .filter(|record| record.kind == "response");
            responses
                .map(|record| record.url.unwrap().path()[1..].parse().unwrap())
                .collect::<Vec<u64>>()
        };
        assert_eq!(
            export(&ExportFilter::default()),
            (0..12).collect::<Vec<_>>()
        );
        let domain = Some("1.example".parse().unwrap());
        assert_eq!(
            export(&ExportFilter {
                domain: domain.clone(),
                ..Default::default()
            }),
            [1, 4, 7, 10]
        );
        let (from, to) = (Some(captures[4].time), Some(captures[10].time));
        assert_eq!(export(&ExportFilter { domain, from, to }), [4, 7]);
    }
}
