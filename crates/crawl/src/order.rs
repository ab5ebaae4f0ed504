//! The order of a domain's URLs. It is a part that can be replaced (crawls as queries:
//! the Reorder operator).

use apoidea_model::{Link, Target};

/// Says how important a link is.
pub trait Order {
    /// The rank in the domain's queue; the smallest is fetched first, and the largest is dropped
    /// first when the queue is full.
    fn rank(&self, link: &Link) -> u16;
}

/// Nearest to the seeds first, which finds the important pages early (Najork and Wiener, 2001).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BreadthFirst;

impl Order for BreadthFirst {
    fn rank(&self, link: &Link) -> u16 {
        match link.target {
            Target::Page | Target::Sitemap => link.depth,
        }
    }
}
