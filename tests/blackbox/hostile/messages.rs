//! The crawl's messages as a stranger writes them: own types that happen to have the same bytes.
//!
//! The peer's types are private and refuse to be built wrongly. These can say anything.

use apoidea_model::{
    ChangeHistory, ContentHash, ContentMark, CrawlId, Domain, Key, Link, LinkBatch, PageUrl,
    PeerId, Pending, Slot, Target, Time, Validators,
};
use apoidea_overlay::{Arc as RingArc, Kind, Purpose, Signed, Signer};
use bytes::Bytes;
use libdeflater::{CompressionLvl, Compressor, Decompressor};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub const LINKS: Kind = Kind::free(0);
pub const CONTENT: Kind = Kind::free(1);
pub const FACTS: Kind = Kind::free(2);
pub const DELTAS: Kind = Kind::free(3);
pub const CENSUS: Kind = Kind::free(4);
pub const OFFER: Kind = Kind::free(5);
pub const REPLICAS: Kind = Kind::free(6);
pub const FACTS_IN: Kind = Kind::free(8);
pub const FETCH: Kind = Kind::free(9);
pub const LOAN: Kind = Kind::free(10);
pub const RESULT: Kind = Kind::free(11);
pub const CHECK: Kind = Kind::free(24);
pub const EVIDENCE: Kind = Kind::free(25);

/// The purpose under which an owner signs its changes.
pub const ROUND: Purpose = Purpose::new("round");

/// The first byte of a message.
const PLAIN: u8 = 0;
const DEFLATED: u8 = 1;
/// Bits of a tenure below its time.
const TAG_BITS: u32 = 64;

/// A message that is not compressed.
pub fn encode(message: &impl Serialize) -> Bytes {
    let mut bytes = vec![PLAIN];
    bytes.extend(postcard::to_stdvec(message).unwrap());
    bytes.into()
}

/// A message that is compressed as far as possible.
pub fn squeeze(plain: &[u8]) -> Bytes {
    let mut compressor = Compressor::new(CompressionLvl::best());
    let mut deflated = vec![0; compressor.deflate_compress_bound(plain.len())];
    let length = compressor.deflate_compress(plain, &mut deflated).unwrap();
    let mut bytes = vec![DEFLATED];
    bytes.extend(u32::try_from(plain.len()).unwrap().to_le_bytes());
    bytes.extend(&deflated[..length]);
    bytes.into()
}

/// Reads what an honest peer wrote.
pub fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (form, rest) = bytes.split_first()?;
    if *form == PLAIN {
        return postcard::from_bytes(rest).ok();
    }
    let (length, deflated) = rest.split_first_chunk()?;
    let mut plain = vec![0; usize::try_from(u32::from_le_bytes(*length)).ok()?];
    Decompressor::new()
        .deflate_decompress(deflated, &mut plain)
        .ok()?;
    postcard::from_bytes(&plain).ok()
}

/// Reads the changes that an honest owner signed.
pub fn decode_deltas(bytes: &[u8]) -> Option<Vec<Delta>> {
    decode::<Signed>(bytes)?.peek()
}

/// Changes of each tenure.
pub type Versions = Vec<(u128, u32)>;

/// A tenure that begins at this time.
pub fn tenure(begun: Time) -> u128 {
    u128::from(begun.as_millis()) << TAG_BITS | 7
}

/// These versions with one more change, under a tenure.
pub fn with_change(versions: &Versions, tenure: u128) -> Versions {
    let mut changed: Versions = versions.clone();
    match changed.iter_mut().find(|(known, _)| *known == tenure) {
        Some((_, count)) => *count += 1,
        None => changed.push((tenure, 1)),
    }
    changed.sort_unstable();
    changed
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ContentAsk {
    pub content: ContentHash,
    pub page: PageUrl,
    pub time: Time,
    pub standing: Standing,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Standing {
    Open,
    /// The keeper that was named has no proof, it says.
    Unproven,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Fact {
    pub page: PageUrl,
    pub time: Time,
    pub keeper: PeerId,
}

pub type Facts = Vec<(ContentHash, Fact)>;

#[derive(Debug, Serialize, Deserialize)]
pub struct FactsAsk {
    pub arc: RingArc,
    pub after: Option<Key>,
}

#[derive(Debug, Serialize, Deserialize)]
pub enum LinksAnswer {
    Taken {
        declined: Vec<u16>,
        dropped: Vec<u16>,
        seal: Option<Seal>,
    },
    UnknownCrawl,
}

/// A signature under links that were taken.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seal(Signed);

impl Seal {
    /// Signs for all links of a batch, as an honest owner does.
    pub fn set(signer: &Signer, sender: PeerId, batch: &LinkBatch) -> Self {
        let mut links: BTreeMap<Domain, BTreeSet<u64>> = BTreeMap::new();
        for link in &batch.links {
            let hash = link.url.hash().0;
            links.entry(link.url.domain()).or_default().insert(hash);
        }
        let digest = Key::hash(postcard::to_stdvec(&(sender, links)).unwrap());
        let words = (super::now(), digest);
        Seal(signer.sign(Purpose::new("links taken"), &words))
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CensusAsk {
    pub arc: RingArc,
    pub after: Option<Domain>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CensusPage {
    pub held: Vec<(Domain, Versions)>,
    pub after: Option<Domain>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfferAnswer {
    Held,
    Wanted,
    Newer,
    Stranger,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Step {
    pub tenure: u128,
    pub base: u32,
    pub version: u32,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageLinks {
    pub slot: Slot,
    pub crawl: CrawlId,
    pub links: Vec<Link>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Delta {
    pub domain: Domain,
    pub step: Step,
    pub versions: Versions,
    pub puts: Vec<Pending>,
    pub removes: Vec<Slot>,
    pub errands: Vec<PageLinks>,
    pub delivered: Vec<Slot>,
    pub visits: Vec<PageNote>,
    pub state: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PageNote {
    pub place: u32,
    pub known: Option<KnownPage>,
}

/// What is known of a page.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownPage {
    pub visited: Time,
    pub due_after: Option<u32>,
    pub standing: u8,
    pub validators: Validators,
    pub content: ContentMark,
    pub history: ChangeHistory,
    pub captured: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SentPage {
    pub url: PageUrl,
    pub depth: u16,
    pub target: Target,
    pub known: KnownPage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeltaAnswer {
    Applied,
    Behind,
    Ahead,
    Apart,
    Stranger,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Parcel {
    Whole(Domain, Replica),
    Large { domain: Domain, id: u64, bytes: u32 },
    Unknown(Domain),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replica {
    pub versions: Versions,
    pub heard: Versions,
    pub state: Vec<u8>,
    pub seen: Seen,
    pub queue: Vec<Pending>,
    pub errands: Vec<PageLinks>,
    pub pages: Vec<SentPage>,
    pub pages_apart: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Seen {
    Reduced(ReducedSeen),
    Whole(Vec<u64>),
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReducedSeen {
    count: u32,
    range: u64,
    bits: Vec<u8>,
}

/// A domain's state, which travels as bytes within a replica.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct State {
    pub versions: Versions,
    pub reductions: Vec<Vec<u64>>,
    pub counters: Counters,
    pub freshness: Freshness,
    /// None is ever sent by these tests.
    pub watches: Vec<()>,
    pub robots: Vec<KnownRobots>,
    pub last_asked: Time,
    pub next: Time,
    pub last_pause: Option<Duration>,
    pub rests_until: Time,
    pub doubled_until: Time,
    pub doublings: u8,
    pub failures: u8,
    pub forbidden: u8,
    pub rests: u8,
    pub stopped: Option<Stop>,
}

/// What visits have taught about a host.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Freshness {
    pub changes: (u64, u64),
    pub hints: (u32, u32, u32),
    pub conditional: u32,
    pub distrusted_until: Time,
    pub quiet: u32,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Stop {
    Forbidden,
    Challenged,
    Unreachable,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Counters {
    pub queued: u64,
    pub admitted: u64,
    pub fetched: u64,
    pub bytes: u64,
    pub failed: u64,
    pub disallowed: u64,
    pub dropped: u64,
    pub overflowed: u64,
    pub combined: u64,
}

/// A robots.txt as a domain's state remembers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KnownRobots {
    pub origin: Origin,
    pub access: Access,
    pub until: Time,
    pub tries: u8,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Origin {
    Http(u16),
    Https(u16),
}

/// Rules are never sent by these tests.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum Access {
    Rules,
    Open,
    Closed,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum LoanAsk {
    Robots(PageUrl),
    Page(Box<Pending>),
}

impl Replica {
    /// A replica with this state, these URLs waiting, and nothing else.
    pub fn forged(versions: Versions, mut state: State, queue: Vec<Pending>) -> Self {
        state.versions = versions.clone();
        let seen = queue.iter().map(|pending| pending.url.hash().0).collect();
        Replica {
            versions,
            heard: Versions::new(),
            state: postcard::to_stdvec(&state).unwrap(),
            seen: Seen::Whole(seen),
            queue,
            errands: Vec::new(),
            pages: Vec::new(),
            pages_apart: false,
        }
    }
}

impl Replica {
    /// A replica in which all of these pages are done.
    pub fn finished(versions: Versions, pages: &[PageUrl]) -> Self {
        let seen = pages.iter().map(|page| page.hash().0).collect();
        Replica {
            seen: Seen::Whole(seen),
            ..Self::forged(versions, State::default(), Vec::new())
        }
    }
}

/// A URL as it waits in a queue.
pub fn waiting(url: &PageUrl, sequence: u64) -> Pending {
    let link = Link {
        url: url.clone(),
        depth: 1,
        target: Default::default(),
    };
    Pending::admitted(link, Slot { rank: 1, sequence }, CrawlId::OPEN)
}
