//! Group commits: everything that is to become durable goes through one thread, a few times a
//! second.
//!
//! The order is what makes a crash harmless: archive records are appended and synced first, then
//! one commit of the database takes the pages out of their queues and notes how far the archive
//! counts. Whatever a crash interrupts is still in its queue, and what the archive holds beyond the
//! note is cut off at the next start.

use crate::crawler::Finding;
use apoidea_governor::Allowance;
use apoidea_model::{Domain, Slot};
use apoidea_store::{
    Commit, CommitError, Store,
    archive::{Archive, ArchiveError, EncodedRecords, Room},
};
use std::{
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot, watch};

/// Least time between two commits: a disk that spins can sync about this often without being heard.
const PERIOD: Duration = Duration::from_millis(100);
/// Most orders in one commit.
const MAX_GROUP: usize = 1024;
/// After a failed write (a full disk, say) the same group is tried again after this.
const RETRY_AFTER: Duration = Duration::from_secs(2);

/// How often the free space is looked at. At 10 MB/s an archive grows by 50 MB in between.
const ROOM_PERIOD: Duration = Duration::from_secs(5);

/// Something that is to become durable.
#[derive(Debug, Default)]
pub(crate) struct Order {
    /// Changes of the database.
    pub commit: Commit,
    /// Archive records that must be durable before them.
    pub records: Option<EncodedRecords>,
    /// The page this settles; reported back.
    pub settled: Option<(Domain, Slot)>,
    /// Told when it is durable.
    pub reply: Option<oneshot::Sender<()>>,
}

/// Sends orders to the writing thread; it ends when all senders are gone.
#[derive(Clone)]
pub(crate) struct Writer(mpsc::Sender<Order>);

impl Writer {
    /// Starts the thread. What became durable, and trouble on the way, is reported as findings.
    pub(crate) fn start(
        store: Store,
        archive: Option<(PathBuf, Archive)>,
        findings: mpsc::UnboundedSender<Finding>,
        allowance: watch::Receiver<Allowance>,
    ) -> std::io::Result<(Self, thread::JoinHandle<()>)> {
        let (orders, inbox) = mpsc::channel(MAX_GROUP);
        let room = RoomCheck {
            folder: archive
                .as_ref()
                .map(|(folder, _)| folder.clone())
                .unwrap_or_default(),
            last: None,
            allowance,
        };
        let desk = Desk {
            store,
            archive: archive.map(|(_, archive)| archive),
            findings,
            room,
        };
        let thread = thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || desk.run(inbox))?;
        Ok((Writer(orders), thread))
    }

    /// Hands in an order; waits while the disk is behind. `false` if the thread is gone.
    pub(crate) async fn send(&self, order: Order) -> bool {
        self.0.send(order).await.is_ok()
    }
}

struct Desk {
    store: Store,
    archive: Option<Archive>,
    findings: mpsc::UnboundedSender<Finding>,
    room: RoomCheck,
}

/// Looks now and then whether the archive still has room, and lets its oldest files go if not.
struct RoomCheck {
    folder: PathBuf,
    last: Option<Instant>,
    allowance: watch::Receiver<Allowance>,
}

impl RoomCheck {
    fn ensure(&mut self, archive: &mut Archive) -> Result<(), WriteError> {
        if self.last.is_some_and(|last| last.elapsed() < ROOM_PERIOD) {
            return Ok(());
        }
        let Allowance {
            disk_bytes,
            keep_free_bytes,
            ..
        } = *self.allowance.borrow();
        archive.limit(disk_bytes, keep_free_bytes);
        // Where the system does not tell, only the quota counts.
        let free_bytes = fs4::available_space(&self.folder).unwrap_or(u64::MAX);
        let (room, removed) = archive.make_room(free_bytes)?;
        for file in removed {
            tracing::info!(
                file = file.file,
                bytes = file.bytes,
                "the oldest pages made room for new ones"
            );
        }
        match room {
            Room::Enough => self.last = Some(Instant::now()),
            Room::None => return Err(WriteError::NoRoom),
        }
        Ok(())
    }
}

#[derive(Debug, thiserror::Error)]
enum WriteError {
    #[error(
        "the disk has less free space than archive.keep_free_mib asks for, and no old pages are left to give up"
    )]
    NoRoom,
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    #[error(transparent)]
    Database(#[from] CommitError),
}

impl Desk {
    fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut group = Vec::new();
        let mut last = Instant::now();
        while let Some(first) = inbox.blocking_recv() {
            thread::sleep(PERIOD.saturating_sub(last.elapsed()));
            group.push(first);
            while group.len() < MAX_GROUP {
                let Ok(order) = inbox.try_recv() else { break };
                group.push(order);
            }
            last = Instant::now();
            if !self.write_until_done(&mut group, &inbox) {
                return;
            }
            self.report(group.drain(..));
        }
        if let Some(archive) = &mut self.archive
            && let Err(error) = archive.close()
        {
            tracing::warn!(%error, "the archive file was left open; the next start goes on with it");
        }
    }

    /// Tries until the group is on the disk. Gives up, which loses nothing, when nobody waits for
    /// it any more.
    fn write_until_done(&mut self, group: &mut [Order], inbox: &mpsc::Receiver<Order>) -> bool {
        let mut commit = Commit::new();
        group
            .iter_mut()
            .for_each(|order| commit.absorb(std::mem::take(&mut order.commit)));
        while let Err(error) = self.write(group, &mut commit) {
            tracing::warn!(%error, "cannot write; trying again");
            let told = format!(
                "Cannot write: {error}. Nothing is lost; crawling goes on when it works again."
            );
            let _ = self.findings.send(Finding::Trouble(told));
            if inbox.is_closed() {
                return false;
            }
            wait_to_retry(inbox);
        }
        true
    }

    fn write(&mut self, group: &mut [Order], commit: &mut Commit) -> Result<(), WriteError> {
        if let Some(archive) = &mut self.archive {
            self.room.ensure(archive)?;
            for order in group.iter_mut() {
                // Taken out once it is appended, so that a second try does not append it twice.
                if let Some(records) = &order.records {
                    archive.append(records)?;
                    order.records = None;
                }
            }
            commit.set_archive_mark(&archive.sync()?);
        }
        Ok(self.store.commit(commit)?)
    }

    fn report(&mut self, group: impl Iterator<Item = Order>) {
        let mut settled = Vec::new();
        for order in group {
            settled.extend(order.settled);
            if let Some(reply) = order.reply {
                let _ = reply.send(());
            }
        }
        let archive_bytes = self.archive.as_ref().map_or(0, Archive::bytes);
        let _ = self.findings.send(Finding::Durable {
            settled,
            archive_bytes,
        });
    }
}

/// Lets the disk recover, but not for nobody.
fn wait_to_retry(inbox: &mpsc::Receiver<Order>) {
    let failed = Instant::now();
    while failed.elapsed() < RETRY_AFTER && !inbox.is_closed() {
        thread::sleep(PERIOD);
    }
}
