//! Group commits: everything that is to become durable goes through one thread, a few times a
//! second.
//!
//! The order is what makes a crash harmless: archive records are appended and synced first, then
//! one commit of the database takes the pages out of their queues and notes how far the archive
//! counts. Whatever a crash interrupts is still in its queue, and what the archive holds beyond the
//! note is cut off at the next start.

use crate::{page::visited::VisitedPage, report::status::Attention, sink::Sink};
use apoidea_governor::Allowance;
use apoidea_model::PageId;
use apoidea_store::{
    Commit, CommitError, Store,
    archive::{Archive, ArchiveError, ArchiveRoom, EncodedRecords, Span},
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

/// News of the writing thread.
#[derive(Debug)]
pub(crate) enum WriterNews {
    /// The records of these pages are on the disk.
    Durable {
        pages: Vec<PageId>,
        archive_bytes: u64,
    },
    /// The disk cannot be written; the next [`WriterNews::Durable`] says that it can again.
    Trouble(Attention),
}

/// Something that is to become durable.
#[derive(Debug, Default)]
pub(crate) struct WriteOrder {
    /// Changes of the database.
    pub commit: Commit,
    /// Archive records that must be durable before them.
    pub records: Option<EncodedRecords>,
    /// The page that was visited; remembered with the place of its records.
    pub visited: Option<VisitedPage>,
    /// The page whose records these are; reported back.
    pub page: Option<PageId>,
    /// Told when it is durable.
    pub reply: Option<oneshot::Sender<()>>,
}

/// Sends orders to the writing thread; it ends when all senders are gone.
#[derive(Clone)]
pub(crate) struct Writer(mpsc::Sender<WriteOrder>);

impl Writer {
    /// Starts the thread. It reports what became durable, and trouble; the committed
    /// part of the archive goes to the feed.
    pub(crate) fn start(
        store: Store,
        archive: Option<(PathBuf, Archive)>,
        news: Sink<WriterNews>,
        allowance: watch::Receiver<Allowance>,
        feed: watch::Sender<Span>,
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
        let writer = WriterThread {
            store,
            archive: archive.map(|(_, archive)| archive),
            news,
            room,
            feed,
        };
        let thread = thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || writer.run(inbox))?;
        Ok((Writer(orders), thread))
    }

    /// Hands in an order; waits while the disk is behind. `false` if the thread is gone.
    pub(crate) async fn send(&self, order: WriteOrder) -> bool {
        self.0.send(order).await.is_ok()
    }
}

struct WriterThread {
    store: Store,
    archive: Option<Archive>,
    news: Sink<WriterNews>,
    room: RoomCheck,
    /// The part of the archive that is committed, for those who follow it: one value, so that a
    /// slow follower costs nothing and misses nothing.
    feed: watch::Sender<Span>,
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
            ArchiveRoom::Enough => self.last = Some(Instant::now()),
            ArchiveRoom::None => return Err(WriteError::NoRoom),
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

impl WriterThread {
    fn run(mut self, mut inbox: mpsc::Receiver<WriteOrder>) {
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
    fn write_until_done(
        &mut self,
        group: &mut [WriteOrder],
        inbox: &mpsc::Receiver<WriteOrder>,
    ) -> bool {
        let mut commit = Commit::new();
        group
            .iter_mut()
            .for_each(|order| commit.absorb(std::mem::take(&mut order.commit)));
        while let Err(error) = self.write(group, &mut commit) {
            tracing::warn!(%error, "cannot write; trying again");
            let error = error.to_string();
            self.news
                .tell(WriterNews::Trouble(Attention::Archive { error }));
            if inbox.is_closed() {
                return false;
            }
            wait_to_retry(inbox);
        }
        true
    }

    fn write(&mut self, group: &mut [WriteOrder], commit: &mut Commit) -> Result<(), WriteError> {
        if let Some(archive) = &mut self.archive {
            self.room.ensure(archive)?;
            for order in group.iter_mut() {
                // Taken out once it is appended, so that a second try does not append it twice.
                if let Some(records) = &order.records {
                    let position = archive.append(records)?;
                    order.records = None;
                    let visited = order.visited.iter_mut();
                    visited.for_each(|page| page.archived_at(position));
                }
            }
            commit.set_archive_mark(&archive.sync()?);
        }
        let visited = group.iter().filter_map(|order| order.visited.as_ref());
        visited.for_each(|page| commit.put_page(&page.domain, &page.record));
        self.store.commit(commit)?;
        if let Some(archive) = &self.archive {
            self.feed.send_replace(archive.span());
        }
        Ok(())
    }

    fn report(&mut self, group: impl Iterator<Item = WriteOrder>) {
        let mut pages = Vec::new();
        for order in group {
            pages.extend(order.page);
            if let Some(reply) = order.reply {
                let _ = reply.send(());
            }
        }
        let archive_bytes = self.archive.as_ref().map_or(0, Archive::bytes);
        self.news.tell(WriterNews::Durable {
            pages,
            archive_bytes,
        });
    }
}

/// Lets the disk recover, but not for nobody.
fn wait_to_retry(inbox: &mpsc::Receiver<WriteOrder>) {
    let failed = Instant::now();
    while failed.elapsed() < RETRY_AFTER && !inbox.is_closed() {
        thread::sleep(PERIOD);
    }
}

/// A writer without its thread, for unit tests: nothing is on the disk before it is told to write.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) struct WriterByHand {
    thread: WriterThread,
    inbox: mpsc::Receiver<WriteOrder>,
}

#[cfg(any(test, feature = "fuzzing"))]
impl WriterByHand {
    pub(crate) fn new(
        store: Store,
        archive: Option<(PathBuf, Archive)>,
        news: Sink<WriterNews>,
        allowance: watch::Receiver<Allowance>,
    ) -> (Writer, Self) {
        let (orders, inbox) = mpsc::channel(MAX_GROUP);
        let (folder, archive) = archive.unzip();
        let thread = WriterThread {
            store,
            archive,
            news,
            room: RoomCheck {
                folder: folder.unwrap_or_default(),
                last: None,
                allowance,
            },
            feed: watch::Sender::new(Span::default()),
        };
        (Writer(orders), WriterByHand { thread, inbox })
    }

    /// Takes no more orders.
    pub(crate) fn stop(&mut self) {
        self.inbox.close();
    }

    /// Writes everything that was handed in; gives the number of orders.
    pub(crate) fn write(&mut self) -> usize {
        let mut group: Vec<WriteOrder> =
            std::iter::from_fn(|| self.inbox.try_recv().ok()).collect();
        let count = group.len();
        if count > 0 && self.thread.write_until_done(&mut group, &self.inbox) {
            self.thread.report(group.into_iter());
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apoidea_model::{CrawlId, Domain, Link, PageUrl, Pending, Slot, Target, Time};
    use apoidea_store::archive::{ArchiveOptions, Capture, CaptureKind, Encoder, Head, Reader};
    use bytes::Bytes;
    use std::sync::{Arc, Mutex};

    struct Bench {
        folder: tempfile::TempDir,
        store: Store,
        news: Arc<Mutex<Vec<WriterNews>>>,
        writer: Writer,
        by_hand: WriterByHand,
    }

    impl Bench {
        /// A writer whose disk has to keep so many bytes free.
        fn new(keep_free: u64) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(&folder.path().join("store"), Default::default()).unwrap();
            let place = folder.path().join("archive");
            let options = ArchiveOptions {
                software: "test".to_owned(),
                file_bytes: 1 << 20,
                quota_bytes: 1 << 30,
                min_free_bytes: keep_free,
            };
            let archive = Archive::open(&place, None, options, [7; 32]).unwrap();
            let news: Arc<Mutex<Vec<WriterNews>>> = Arc::default();
            let told = news.clone();
            let sink = Sink::new(move |news| told.lock().unwrap().push(news));
            let allowance = watch::Sender::new(Allowance {
                keep_free_bytes: Some(keep_free),
                ..Allowance::default()
            });
            let archive = Some((place, archive));
            let (writer, by_hand) =
                WriterByHand::new(store.clone(), archive, sink, allowance.subscribe());
            Bench {
                folder,
                store,
                news,
                writer,
                by_hand,
            }
        }

        /// Hands in a page with its records; it leaves its queue.
        async fn hand_in(&self, page: &PageId, url: &PageUrl) -> oneshot::Receiver<()> {
            let mut commit = Commit::new();
            commit.remove_pending(&page.domain, page.slot);
            let (reply, durable) = oneshot::channel();
            let order = WriteOrder {
                commit,
                records: Some(records(url)),
                page: Some(page.clone()),
                reply: Some(reply),
                ..WriteOrder::default()
            };
            assert!(self.writer.send(order).await);
            durable
        }

        fn captures(&self, url: &PageUrl) -> usize {
            let reader = Reader::new(&self.folder.path().join("archive"));
            reader.find(url).unwrap().len()
        }
    }

    fn records(url: &PageUrl) -> EncodedRecords {
        let capture = Capture {
            url: url.clone(),
            time: Time::from_millis(1_700_000_000_000),
            address: None,
            request: Head::default(),
            response: Head {
                first_line: "HTTP/1.1 200 OK".to_owned(),
                headers: Vec::new(),
            },
            body: Bytes::from_static(b"hello"),
            digest: None,
            kind: CaptureKind::Response,
            truncation: None,
            outlinks: Vec::new(),
            metadata: Vec::new(),
        };
        capture.encode(&mut Encoder::new([1; 32]))
    }

    /// A page that waits in the queue of its domain.
    fn queued(store: &Store) -> (PageId, PageUrl) {
        let url = PageUrl::parse("http://a.test/").unwrap();
        let domain: Domain = url.domain();
        let slot = Slot {
            rank: 0,
            sequence: 1,
        };
        let link = Link {
            url: url.clone(),
            depth: 0,
            target: Target::Page,
        };
        let mut commit = Commit::new();
        commit.put_pending(&domain, &Pending::admitted(link, slot, CrawlId::OPEN));
        store.commit(&commit).unwrap();
        (PageId::new(domain, slot), url)
    }

    #[tokio::test]
    async fn a_page_leaves_its_queue_together_with_its_records() {
        let mut bench = Bench::new(0);
        let (page, url) = queued(&bench.store);
        let mut durable = bench.hand_in(&page, &url).await;
        assert_eq!(bench.store.queue_length(&page.domain).unwrap(), 1);
        assert_eq!(bench.by_hand.write(), 1);
        assert!(durable.try_recv().is_ok());
        assert_eq!(bench.store.queue_length(&page.domain).unwrap(), 0);
        assert_eq!(bench.captures(&url), 1);
        let news = bench.news.lock().unwrap();
        let [WriterNews::Durable { pages, .. }] = &news[..] else {
            panic!("it tells once: {news:?}");
        };
        assert_eq!(pages, &[page]);
        let mark = bench.store.archive_mark().unwrap();
        assert!(mark.is_some(), "so far the archive counts");
    }

    #[tokio::test]
    async fn on_a_full_disk_a_page_stays_in_its_queue_and_the_trouble_is_told() {
        let mut bench = Bench::new(u64::MAX);
        let (page, url) = queued(&bench.store);
        let mut durable = bench.hand_in(&page, &url).await;
        // With nobody left to wait for the disk, it is tried once.
        bench.by_hand.stop();
        bench.by_hand.write();
        assert!(durable.try_recv().is_err());
        assert_eq!(bench.store.queue_length(&page.domain).unwrap(), 1);
        let news = bench.news.lock().unwrap();
        assert!(matches!(&news[..], [WriterNews::Trouble(_)]));
    }

    #[tokio::test]
    async fn a_thread_writes_what_was_handed_in_before_it_ends() {
        let bench = Bench::new(0);
        let (page, _) = queued(&bench.store);
        let allowance = watch::Sender::new(Allowance::default());
        let (writer, thread) = Writer::start(
            bench.store.clone(),
            None,
            Sink::new(|_| {}),
            allowance.subscribe(),
            watch::Sender::new(Span::default()),
        )
        .unwrap();
        let mut commit = Commit::new();
        commit.remove_pending(&page.domain, page.slot);
        let order = WriteOrder {
            commit,
            ..WriteOrder::default()
        };
        assert!(writer.send(order).await);
        drop(writer);
        thread.join().unwrap();
        assert_eq!(bench.store.queue_length(&page.domain).unwrap(), 0);
    }
}
