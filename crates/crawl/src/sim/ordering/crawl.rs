//! One crawl of a graph in some order, by some peers.

use super::PageGraph;
use crate::importance::Cash;
use std::{cmp::Reverse, collections::BinaryHeap};

/// An order of the pages that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// Nearest to the seeds first.
    Breadth,
    /// By the cash of the seeds alone, as OPIC was published.
    Opic,
    /// By cash to which every page adds one unit: [`Cash`].
    Importance,
    /// By the importance that only the whole graph tells.
    Omniscient,
}

impl Rule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Breadth => "breadth",
            Rule::Opic => "OPIC",
            Rule::Importance => "importance",
            Rule::Omniscient => "omniscient",
        }
    }

    fn shared(self, cash: f64, links: usize) -> Cash {
        match self {
            Rule::Opic => Cash::of(cash / links.max(1) as f64),
            _ => Cash::of(cash).shared(links),
        }
    }
}

/// What is known of a page.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// Its cash so far, as its owner adds it up.
    cash: f64,
    /// The cash by which it stands in the queue.
    ranked: Cash,
    depth: u32,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unseen,
    Waiting,
    Fetched,
}

/// A place in a queue: rank, order of arrival, page.
type Place = Reverse<(u64, u64, usize)>;

/// The pages in the order in which they are fetched. `place` is the place of each page by its
/// importance, the most important first.
pub(super) fn crawl(
    graph: &PageGraph,
    rule: Rule,
    place: &[usize],
    seeds: &[usize],
    peers: usize,
    owner: impl Fn(usize) -> usize,
) -> Vec<usize> {
    let mut known = vec![Known::default(); graph.len()];
    let mut queues: Vec<BinaryHeap<Place>> = vec![BinaryHeap::new(); peers];
    let mut arrivals = 0;
    let rank = |page: usize, known: &Known| match rule {
        Rule::Breadth => known.depth.into(),
        Rule::Opic | Rule::Importance => known.ranked.rank().into(),
        Rule::Omniscient => place[page] as u64,
    };
    let mut give = |known: &mut [Known], queues: &mut [BinaryHeap<Place>], page, cash, depth| {
        let entry: &mut Known = &mut known[page];
        entry.cash += cash;
        let total = Cash::of(entry.cash);
        let is_new = entry.state == State::Unseen;
        let moves = matches!(rule, Rule::Opic | Rule::Importance)
            && entry.state == State::Waiting
            && total.is_twice(entry.ranked);
        if is_new {
            entry.state = State::Waiting;
            entry.depth = depth;
        }
        if is_new || moves {
            entry.ranked = total;
            arrivals += 1;
            queues[owner(page)].push(Reverse((rank(page, entry), arrivals, page)));
        }
    };
    for seed in seeds {
        give(&mut known, &mut queues, *seed, 1.0, 0);
    }
    let mut order = Vec::new();
    loop {
        let before = order.len();
        for peer in 0..peers {
            let Some(page) = next(&mut queues[peer], &known) else {
                continue;
            };
            known[page].state = State::Fetched;
            order.push(page);
            let targets = graph.targets(page);
            let share = rule.shared(known[page].cash, targets.len()).amount();
            let depth = known[page].depth + 1;
            for target in targets {
                give(&mut known, &mut queues, *target as usize, share, depth);
            }
        }
        if order.len() == before {
            return order;
        }
    }
}

/// The first page of a queue that was not fetched by an earlier place of it.
fn next(queue: &mut BinaryHeap<Place>, known: &[Known]) -> Option<usize> {
    while let Some(Reverse((_, _, page))) = queue.pop() {
        if known[page].state == State::Waiting {
            return Some(page);
        }
    }
    None
}
