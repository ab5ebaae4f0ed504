//! Orders of a crawl, compared on a real graph of pages: which of them meets the important pages
//! early?
//!
//! Importance is PageRank of the whole graph, which no order but the omniscient one knows. A crawl
//! begins at some pages and takes the first page that waits, at each peer in turn. Peers own blocks
//! of pages, as they own hosts: the pages of a graph are in the order of their URLs.

mod crawl;
mod graph;

pub use crawl::Rule;
pub use graph::{InvalidGraph, PageGraph};

use serde::Serialize;
use std::fmt::{self, Display};

/// Parts of the graph after which the shares are told.
pub const PARTS: [f64; 4] = [0.05, 0.1, 0.2, 0.3];
/// Numbers of peers that are compared.
const PEERS: [usize; 2] = [1, 16];
/// Pages where a crawl begins.
const SEEDS: usize = 20;
/// Hosts that a graph without URLs is divided into.
const HOSTS: usize = 400;
/// The damping of PageRank, and rounds until nothing moves any more.
const DAMPING: f64 = 0.85;
const ROUNDS: usize = 50;

/// The outcome of all orders.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderingReport {
    /// Pages of the graph.
    pub pages: usize,
    /// Links between them.
    pub links: usize,
    /// One line for each order and number of peers.
    pub rows: Vec<OrderingRow>,
}

/// One order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OrderingRow {
    /// Its name.
    pub rule: &'static str,
    /// Peers.
    pub peers: usize,
    /// Pages that were reached.
    pub reached: usize,
    /// The share of the most important tenth of all pages that is among the first [`PARTS`].
    pub top_tenth: [f64; 4],
    /// The share of the most important hundredth that is among the first tenth.
    pub top_hundredth: f64,
}

/// Compares the orders, with beginnings drawn from `seed`.
pub fn compare(graph: &PageGraph, seed: u64) -> OrderingReport {
    let importance = page_rank(graph);
    let mut best: Vec<usize> = (0..graph.len()).collect();
    best.sort_by(|a, b| importance[*b].total_cmp(&importance[*a]).then(a.cmp(b)));
    let mut place = vec![0; graph.len()];
    for (rank, page) in best.into_iter().enumerate() {
        place[page] = rank;
    }
    let seeds = seeds(graph.len(), seed);
    let rules = [
        Rule::Breadth,
        Rule::Opic,
        Rule::Importance,
        Rule::Omniscient,
    ];
    let rows = PEERS.into_iter().flat_map(|peers| {
        let (seeds, place) = (&seeds, &place);
        rules.into_iter().map(move |rule| {
            let owner = |page: usize| owner_of(page, graph.len(), peers);
            let order = crawl::crawl(graph, rule, place, seeds, peers, owner);
            row(rule, peers, &order, place)
        })
    });
    OrderingReport {
        pages: graph.len(),
        links: graph.links(),
        rows: rows.collect(),
    }
}

fn row(rule: Rule, peers: usize, order: &[usize], place: &[usize]) -> OrderingRow {
    let share = |top: usize, part: f64| {
        let first = order.len().min((place.len() as f64 * part) as usize);
        let met = order[..first].iter().filter(|page| place[**page] < top);
        met.count() as f64 / top.max(1) as f64
    };
    OrderingRow {
        rule: rule.name(),
        peers,
        reached: order.len(),
        top_tenth: PARTS.map(|part| share(place.len() / 10, part)),
        top_hundredth: share(place.len() / 100, 0.1),
    }
}

fn page_rank(graph: &PageGraph) -> Vec<f64> {
    let even = 1.0 / graph.len().max(1) as f64;
    let mut rank = vec![even; graph.len()];
    for _ in 0..ROUNDS {
        let mut next = vec![0.0; graph.len()];
        let mut left = 0.0;
        for (page, rank) in rank.iter().enumerate() {
            let targets = graph.targets(page);
            if targets.is_empty() {
                left += rank;
            }
            for target in targets {
                next[*target as usize] += rank / targets.len() as f64;
            }
        }
        for value in &mut next {
            *value = DAMPING * (*value + left * even) + (1.0 - DAMPING) * even;
        }
        rank = next;
    }
    rank
}

/// The peer that owns a page: all pages of a block have one.
fn owner_of(page: usize, pages: usize, peers: usize) -> usize {
    let host = page * HOSTS / pages.max(1);
    (mixed(host as u64) % peers as u64) as usize
}

fn seeds(pages: usize, seed: u64) -> Vec<usize> {
    let draw = |number| mixed(mixed(seed) ^ number) % pages.max(1) as u64;
    let count = SEEDS.min(pages) as u64;
    (0..count).map(|number| draw(number) as usize).collect()
}

/// A number that looks drawn (Steele, Lea and Flood's SplitMix64).
fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Display for OrderingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} pages, {} links", self.pages, self.links)?;
        writeln!(
            f,
            "| order | peers | top tenth in the first 5 % | 10 % | 20 % | 30 % | top hundredth in \
             the first 10 % |"
        )?;
        write!(f, "|---|---|---|---|---|---|---|")?;
        for row in &self.rows {
            let [first, second, third, fourth] = row.top_tenth;
            write!(
                f,
                "\n| {} | {} | {first:.2} | {second:.2} | {third:.2} | {fourth:.2} | {:.2} |",
                row.rule, row.peers, row.top_hundredth
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages with six links each, most of them to pages with small numbers.
    fn skewed() -> PageGraph {
        let pages = 5000u64;
        let target = |page: u64, link: u64| {
            let drawn = mixed(page * 8 + link) % pages;
            (drawn * drawn / pages * drawn / pages) as u32
        };
        let targets = |page: u64| {
            let mut targets: Vec<u32> = (0..6).map(|link| target(page, link)).collect();
            // So that all are reached.
            targets.push(((page + 1) % pages) as u32);
            targets.sort_unstable();
            targets.dedup();
            targets
        };
        PageGraph::new((0..pages).map(targets).collect())
    }

    #[test]
    fn importance_is_better_than_breadth_and_the_omniscient_order_better_than_both() {
        let graph = skewed();
        let report = compare(&graph, 1);
        assert_eq!((report.pages, report.rows.len()), (5000, 8));
        assert!(
            report.rows.iter().all(|row| row.reached == 5000),
            "{report}"
        );
        for rows in report.rows.chunks(4) {
            let [breadth, _, importance, omniscient] = rows else {
                panic!("four orders");
            };
            let early = |row: &OrderingRow| row.top_tenth[1];
            assert!(early(importance) > early(breadth), "{report}");
            assert!(early(omniscient) >= early(importance), "{report}");
        }
        assert_eq!(compare(&graph, 1), report, "the same from the same seed");
    }

    #[test]
    fn a_graph_of_nothing_is_compared_all_the_same() {
        let report = compare(&PageGraph::new(Vec::new()), 1);
        assert!(report.rows.iter().all(|row| row.reached == 0));
    }
}
