//! The access log: every connection, request and name look-up, in the order in which they arrived.
//!
//! A request is written down when it arrives and completed when it was answered, so that one which
//! never ends is seen too. Questions are asked of a snapshot, see [`crate::AccessLog`].

use crate::access_log::{AccessLog, Connection, Lookup, Visit};
use apoidea_model::Time;
use serde::Serialize;
use std::{
    fs::File,
    io::{self, BufWriter, Write},
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

/// Requests remembered, about 250 bytes each; later ones are only counted. Far above what a test or
/// benchmark makes.
const MAX_VISITS: usize = 4_000_000;
/// Connections and look-ups remembered.
const MAX_EVENTS: usize = 1_000_000;

/// The log as it is being written, shared by every task of the web.
pub(crate) struct Log {
    start: Instant,
    inner: Mutex<Inner>,
}

struct Inner {
    log: AccessLog,
    file: Option<BufWriter<File>>,
}

/// A remembered request, to be completed when it was answered; `None` if the log is full.
#[derive(Clone, Copy)]
pub(crate) struct Ticket(Option<usize>);

/// One line of the log file.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Line<'a> {
    Visit(&'a Visit),
    Lookup(&'a Lookup),
}

impl Log {
    pub(crate) fn new(file: Option<&Path>) -> io::Result<Self> {
        let file = file.map(File::create).transpose()?.map(BufWriter::new);
        Ok(Log {
            start: Instant::now(),
            inner: Mutex::new(Inner {
                log: AccessLog::default(),
                file,
            }),
        })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the web started.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn connected(&self, server: SocketAddr, client: SocketAddr) -> usize {
        let opened = self.now();
        let mut inner = self.inner();
        let id = inner.log.connections.len();
        if id >= MAX_EVENTS {
            inner.log.dropped += 1;
            return id;
        }
        inner.log.connections.push(Connection {
            id,
            server,
            client,
            opened,
            closed: None,
        });
        id
    }

    pub(crate) fn disconnected(&self, connection: usize) {
        let closed = self.now();
        if let Some(connection) = self.inner().log.connections.get_mut(connection) {
            connection.closed = Some(closed);
        }
    }

    /// Notes a request that has just arrived; its times are filled in here.
    pub(crate) fn arrived(&self, mut visit: Visit) -> Ticket {
        visit.received = self.now();
        visit.wall = Time::from(SystemTime::now());
        let mut inner = self.inner();
        if inner.log.visits.len() >= MAX_VISITS {
            inner.log.dropped += 1;
            return Ticket(None);
        }
        inner.log.visits.push(visit);
        Ticket(Some(inner.log.visits.len() - 1))
    }

    pub(crate) fn answered(&self, ticket: Ticket, status: u16, bytes: u64) {
        let now = self.now();
        let inner = &mut *self.inner();
        let Some(visit) = ticket.0.and_then(|index| inner.log.visits.get_mut(index)) else {
            return;
        };
        (visit.answered, visit.status, visit.bytes) = (Some(now), status, bytes);
        write_line(&mut inner.file, &Line::Visit(visit));
    }

    pub(crate) fn looked_up(&self, name: Arc<str>, kind: String, answer: String) {
        let wall = Time::from(SystemTime::now());
        let lookup = Lookup {
            received: self.now(),
            wall,
            name,
            kind,
            answer,
        };
        let inner = &mut *self.inner();
        write_line(&mut inner.file, &Line::Lookup(&lookup));
        if inner.log.lookups.len() < MAX_EVENTS {
            inner.log.lookups.push(lookup);
        } else {
            inner.log.dropped += 1;
        }
    }

    /// What happened so far.
    pub(crate) fn snapshot(&self) -> AccessLog {
        self.inner().log.clone()
    }

    /// Writes out what the log file still lacks.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.inner()
            .file
            .as_mut()
            .map_or(Ok(()), |file| file.flush())
    }
}

fn write_line(file: &mut Option<BufWriter<File>>, line: &Line<'_>) {
    let Some(out) = file else { return };
    let written = serde_json::to_writer(&mut *out, line)
        .map_err(io::Error::from)
        .and_then(|()| out.write_all(b"\n"));
    if let Err(error) = written {
        tracing::warn!(%error, "the access log's file is given up");
        *file = None;
    }
}
