//! What a toy web looks like, in numbers.

use serde::{Deserialize, Serialize};

/// The numbers that, with a seed, decide every page of a web.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shape {
    /// Ordinary hosts; hosts with quirks come on top.
    pub hosts: u32,
    /// Pages on all ordinary hosts together; each host has at least one.
    pub pages: u32,
    /// Mean size of a page in bytes. 30 KB is the median HTML response of the HTTP Archive.
    pub mean_bytes: u32,
    /// How unequal hosts are: host number k has a share proportional to 1 / k^skew; 0 makes all
    /// equal. Hosts of the real web follow a power law with an exponent somewhat below 1.
    pub skew: f64,
    /// Leaf pages, in percent, that are a copy of a document found elsewhere too. A quarter to a
    /// third of the real web is (Fetterly, Manasse & Najork 2003); the default keeps most pages
    /// distinct.
    pub copies_percent: f64,
    /// Ordinary hosts, in percent, that are served over HTTPS only.
    pub https_percent: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Shape {
            hosts: 300,
            pages: 30_000,
            mean_bytes: 30_000,
            skew: 0.8,
            copies_percent: 5.0,
            https_percent: 0.0,
        }
    }
}

impl Shape {
    /// Fewer pages than this cannot be asked for: a web has a host, and a host has a page.
    pub(crate) fn checked(mut self) -> Self {
        self.hosts = self.hosts.max(1);
        self.pages = self.pages.max(self.hosts);
        self
    }

    /// Pages of each host; they sum up to `pages`.
    pub(crate) fn host_sizes(&self) -> Vec<u32> {
        let weights: Vec<f64> = (1..=self.hosts)
            .map(|k| f64::from(k).powf(-self.skew))
            .collect();
        let total: f64 = weights.iter().sum();
        let spare = f64::from(self.pages - self.hosts);
        let mut sizes: Vec<u32> = weights
            .iter()
            .map(|weight| 1 + (spare * weight / total) as u32)
            .collect();
        let missing = self.pages - sizes.iter().sum::<u32>();
        (0..missing).for_each(|n| sizes[(n % self.hosts) as usize] += 1);
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_sizes_follow_a_power_law_and_sum_up() {
        let sizes = Shape {
            hosts: 100,
            pages: 5000,
            skew: 1.0,
            ..Shape::default()
        }
        .host_sizes();
        assert_eq!(sizes.iter().sum::<u32>(), 5000);
        assert!(
            sizes.is_sorted_by(|a, b| a >= b) && sizes[0] > 40 * sizes[99],
            "{sizes:?}"
        );
        let equal = Shape {
            hosts: 100,
            pages: 5000,
            skew: 0.0,
            ..Shape::default()
        }
        .host_sizes();
        assert!(equal.iter().all(|&size| size == 50));
    }

    #[test]
    fn every_host_has_a_page() {
        let shape = Shape {
            hosts: 10,
            pages: 3,
            ..Shape::default()
        }
        .checked();
        assert!(shape.host_sizes().iter().all(|&size| size == 1));
    }
}
