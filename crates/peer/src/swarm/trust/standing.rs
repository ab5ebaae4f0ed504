//! A peer's standing with this one, as it is shown to the volunteer.

use apoidea_crawl::{Lie, Matter, Record};
use apoidea_model::{PeerId, Time};
use serde::{Deserialize, Serialize};

/// What this peer found when it checked another one's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct Standing {
    /// The other peer.
    pub peer: PeerId,
    /// How often something of its work was checked.
    pub checked: u64,
    /// How often nothing was wrong.
    pub right: u64,
    /// It is distrusted until then.
    pub distrusted_until: Option<Time>,
    /// What was wrong, oldest first.
    pub lies: Vec<FoundLie>,
}

/// Something that a peer said and that was not so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
pub struct FoundLie {
    /// About which work.
    pub kind: LieKind,
    /// How many things were wrong.
    pub count: u32,
    /// When it was found.
    pub at: Time,
}

/// A kind of lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ts_rs::TS)]
#[serde(rename_all = "snake_case")]
pub enum LieKind {
    /// It acknowledged links and dropped them.
    DroppedLinks,
    /// It said that it keeps pages, and could not show them.
    LostPages,
}

impl Standing {
    pub(crate) fn of(peer: PeerId, record: &Record, now: Time) -> Self {
        Standing {
            peer,
            checked: record.checked,
            right: record.right,
            distrusted_until: (now < record.until).then_some(record.until),
            lies: record.lies.iter().map(FoundLie::from).collect(),
        }
    }
}

impl From<&Lie> for FoundLie {
    fn from(lie: &Lie) -> Self {
        FoundLie {
            kind: match lie.matter {
                Matter::Links => LieKind::DroppedLinks,
                Matter::Pages => LieKind::LostPages,
            },
            count: lie.count,
            at: lie.at,
        }
    }
}
