//! A graph of pages, read from the form in which web graphs are published (Boldi and Vigna's
//! BVGraph).
//!
//! The successors of a page are written as parts copied from a page before it, intervals, and what
//! is left. A file is a stranger's: every number is checked before it is used.

use std::collections::HashMap;

/// Most pages of a graph that is read: what fits into memory with ten links each.
const MAX_PAGES: usize = 20_000_000;
/// Most links of a page.
const MAX_TARGETS: u64 = 1_000_000;

/// Pages by number, and the pages that each links to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageGraph {
    targets: Vec<Vec<u32>>,
}

/// The file is no such graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidGraph {
    /// The properties do not say this.
    #[error("the properties lack {0}, or it is no number that can be right")]
    Property(&'static str),
    /// The properties ask for codes that are not read.
    #[error("the graph is written with {0}; only the usual codes are read (no compressionflags)")]
    Codes(String),
    /// The bytes do not continue as the properties say.
    #[error("page {page} of the graph cannot be read; is it the file that the properties are of?")]
    Page {
        /// The number of the page.
        page: usize,
    },
}

impl PageGraph {
    /// A graph of the given links. Links to pages that are not there are left out.
    pub fn new(mut targets: Vec<Vec<u32>>) -> Self {
        let pages = targets.len();
        for list in &mut targets {
            list.retain(|target| (*target as usize) < pages);
        }
        PageGraph { targets }
    }

    /// Reads a graph and the text of its properties.
    pub fn read(bytes: &[u8], properties: &str) -> Result<Self, InvalidGraph> {
        let properties = Properties::read(properties)?;
        let mut bits = Bits { bytes, at: 0 };
        let mut targets: Vec<Vec<u32>> = Vec::new();
        for page in 0..properties.pages {
            let list = successors(&mut bits, &properties, &targets);
            targets.push(list.ok_or(InvalidGraph::Page { page })?);
        }
        Ok(PageGraph { targets })
    }

    /// Pages.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// Whether there is no page.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Links.
    pub fn links(&self) -> usize {
        self.targets.iter().map(Vec::len).sum()
    }

    /// The pages that a page links to.
    pub fn targets(&self, page: usize) -> &[u32] {
        &self.targets[page]
    }
}

struct Properties {
    pages: usize,
    window: usize,
    min_interval: u64,
    zeta: u32,
}

impl Properties {
    fn read(text: &str) -> Result<Self, InvalidGraph> {
        let lines = text.lines().filter_map(|line| line.split_once('='));
        let values: HashMap<&str, &str> = lines
            .map(|(name, value)| (name.trim(), value.trim()))
            .collect();
        if let Some(flags) = values.get("compressionflags")
            && !flags.is_empty()
        {
            return Err(InvalidGraph::Codes((*flags).chars().take(80).collect()));
        }
        let number = |name: &'static str, most: usize| {
            let value = values.get(name).and_then(|value| value.parse().ok());
            let value = value.filter(|value: &usize| *value <= most);
            value.ok_or(InvalidGraph::Property(name))
        };
        Ok(Properties {
            pages: number("nodes", MAX_PAGES)?,
            window: number("windowsize", 1000)?,
            min_interval: number("minintervallength", 1000)? as u64,
            zeta: number("zetak", 16)? as u32,
        })
    }
}

/// The successors of the page after those that are read already.
fn successors(bits: &mut Bits<'_>, properties: &Properties, read: &[Vec<u32>]) -> Option<Vec<u32>> {
    let page = i64::try_from(read.len()).ok()?;
    let degree = bits.gamma().filter(|degree| *degree <= MAX_TARGETS)? as usize;
    let mut found: Vec<u32> = Vec::with_capacity(degree);
    if degree == 0 {
        return Some(found);
    }
    let reference = match properties.window {
        0 => 0,
        _ => bits.unary()? as usize,
    };
    if reference > 0 {
        let copied = read.get(read.len().checked_sub(reference)?)?;
        copy_blocks(bits, copied, degree, &mut found)?;
    }
    let push = |found: &mut Vec<u32>, target: i64| {
        let is_page = (0..properties.pages as i64).contains(&target);
        let is_room = found.len() < degree;
        (is_page && is_room).then(|| found.push(target as u32))
    };
    if found.len() < degree && properties.min_interval > 0 {
        let count = bits.gamma()?;
        let mut end: Option<i64> = None;
        for _ in 0..count {
            let start = match end {
                None => page.checked_add(signed(bits.gamma()?))?,
                Some(end) => end
                    .checked_add(i64::try_from(bits.gamma()?).ok()?)?
                    .checked_add(1)?,
            };
            let length = bits.gamma()?.checked_add(properties.min_interval)?;
            for offset in 0..i64::try_from(length).ok()? {
                push(&mut found, start.checked_add(offset)?)?;
            }
            end = Some(start + length as i64);
        }
    }
    let mut last: Option<i64> = None;
    while found.len() < degree {
        let code = bits.zeta(properties.zeta)?;
        let target = match last {
            None => page.checked_add(signed(code))?,
            Some(last) => last
                .checked_add(i64::try_from(code).ok()?)?
                .checked_add(1)?,
        };
        push(&mut found, target)?;
        last = Some(target);
    }
    found.sort_unstable();
    Some(found)
}

/// Every other block of the page that is copied from; the rest of it after an even number of them.
fn copy_blocks(
    bits: &mut Bits<'_>,
    copied: &[u32],
    degree: usize,
    found: &mut Vec<u32>,
) -> Option<()> {
    let count = bits.gamma()?;
    let mut at = 0usize;
    for block in 0..count {
        let length = usize::try_from(bits.gamma()?).ok()?;
        let end = at
            .checked_add(length)?
            .checked_add(usize::from(block > 0))?;
        let part = copied.get(at..end)?;
        if block % 2 == 0 {
            found.extend_from_slice(part);
        }
        at = end;
    }
    if count % 2 == 0 {
        found.extend_from_slice(copied.get(at..)?);
    }
    (found.len() <= degree).then_some(())
}

/// A number whose sign is its lowest bit.
fn signed(code: u64) -> i64 {
    let half = (code / 2) as i64;
    if code.is_multiple_of(2) {
        half
    } else {
        -half - 1
    }
}

/// Reads from the highest bit of each byte.
struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> Option<u64> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit.into())
    }

    /// Zeros up to a one; more than 63 are in no code that fits.
    fn unary(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while self.bit()? == 0 {
            zeros += 1;
            if zeros > 63 {
                return None;
            }
        }
        Some(zeros)
    }

    fn bits(&mut self, count: u32) -> Option<u64> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | self.bit()?;
        }
        Some(value)
    }

    fn gamma(&mut self) -> Option<u64> {
        let length = self.unary()?;
        let low = self.bits(length)?;
        ((1u64 << length) | low).checked_sub(1)
    }

    fn zeta(&mut self, k: u32) -> Option<u64> {
        let length = self.unary()?.checked_mul(k)?;
        let width = (length + k).checked_sub(1).filter(|width| *width < 63)?;
        let left = 1u64 << length;
        let value = self.bits(width)?;
        if value < left {
            (value + left).checked_sub(1)
        } else {
            (value << 1 | self.bit()?).checked_sub(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROPERTIES: &str = "nodes=3\nwindowsize=7\nminintervallength=4\nzetak=3\n";

    /// Bytes of bits as they are written here; spaces are for the reader.
    fn packed(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text
            .bytes()
            .filter(|c| *c != b' ')
            .map(|c| c - b'0')
            .collect();
        let byte = |part: &[u8]| (0..8).fold(0, |b, i| b << 1 | part.get(i).copied().unwrap_or(0));
        bits.chunks(8).map(byte).collect()
    }

    #[test]
    fn a_graph_is_read_as_it_was_written() {
        // Page 0: two links (gamma 2), no reference, no intervals, then 0 + 1 and one further.
        // zeta(3) of 2 is 1 011; of 0 is 1 00.
        // Page 1: two links, the reference one page back, no blocks: all of it.
        // Page 2: none.
        let bytes = packed("011 1 1 1011 100  011 01 1  1");
        let graph = PageGraph::read(&bytes, PROPERTIES).unwrap();
        assert_eq!(graph.len(), 3);
        assert_eq!(graph.targets(0), [1, 2]);
        assert_eq!(graph.targets(1), [1, 2]);
        assert_eq!(graph.links(), 4);
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        let bytes = packed("011 1 1 1011 100  011 01 1  1");
        let more = PROPERTIES.replace("nodes=3", "nodes=30");
        let end = PageGraph::read(&bytes, &more);
        assert!(matches!(end, Err(InvalidGraph::Page { .. })));
        let flags = format!("{PROPERTIES}compressionflags=REFERENCES_GAMMA\n");
        assert!(matches!(
            PageGraph::read(&bytes, &flags),
            Err(InvalidGraph::Codes(_))
        ));
        let error = PageGraph::read(&bytes, "nodes=3").unwrap_err();
        assert_eq!(error, InvalidGraph::Property("windowsize"));
        for seed in 0..2000u64 {
            let noise: Vec<u8> = (0..40u64)
                .map(|at| (super::super::mixed(seed * 41 + at) >> 9) as u8)
                .collect();
            let _ = PageGraph::read(&noise, &PROPERTIES.replace("nodes=3", "nodes=50"));
        }
    }
}
