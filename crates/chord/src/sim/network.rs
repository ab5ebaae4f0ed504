//! The simulated network: delays, losses, and walls between peers.

use rand::{Rng, RngExt};
use std::time::Duration;

/// Delays between sites, loss, and a wall that may stand between two halves of the peers.
#[derive(Debug, Clone)]
pub struct Network {
    round_trips: RoundTripMatrix,
    loss: f64,
    wall: Wall,
}

/// The network in one piece, or in two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wall {
    /// Everyone reaches everyone.
    Down,
    /// Peers with an even number reach only each other, and so do the odd ones.
    Up,
}

/// Round trips between sites, in tenths of a millisecond.
#[derive(Debug, Clone)]
pub struct RoundTripMatrix {
    sites: usize,
    tenths: Vec<u16>,
}

/// The bytes are not the upper triangle of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} bytes are not the upper triangle of a matrix of 16-bit numbers")]
pub struct InvalidMatrix(usize);

const PLANETLAB: &[u8] = include_bytes!("../../../../assets/rtt/planetlab-490.u16le");

impl RoundTripMatrix {
    /// Reads the upper triangle of a matrix, row by row without the diagonal, little-endian.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, InvalidMatrix> {
        let tenths: Vec<u16> = bytes
            .chunks_exact(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair[1]]))
            .collect();
        let sites = (1 + (2 * tenths.len()).isqrt()).max(2);
        if sites * (sites - 1) != bytes.len() {
            return Err(InvalidMatrix(bytes.len()));
        }
        Ok(RoundTripMatrix { sites, tenths })
    }

    /// Round trips between 490 PlanetLab sites, 135 ms in the median.
    pub fn planetlab() -> Self {
        Self::from_bytes(PLANETLAB).expect("the embedded matrix is well-formed, as a test shows")
    }

    /// The round trip between two sites.
    pub fn round_trip(&self, a: usize, b: usize) -> Duration {
        Duration::from_micros(u64::from(self.round_trip_tenths(a, b)) * 100)
    }

    fn round_trip_tenths(&self, a: usize, b: usize) -> u32 {
        let (low, high) = (a.min(b), a.max(b));
        if low == high {
            return 10;
        }
        let row_start = low * (2 * self.sites - low - 1) / 2;
        u32::from(self.tenths[row_start + high - low - 1])
    }
}

impl Network {
    /// A network in one piece.
    pub fn new(round_trips: RoundTripMatrix, loss: f64) -> Self {
        Network {
            round_trips,
            loss,
            wall: Wall::Down,
        }
    }

    /// Raises or removes the wall.
    pub fn set_wall(&mut self, wall: Wall) {
        self.wall = wall;
    }

    /// The delay of a message from one peer to another, in milliseconds; none if it is lost.
    pub fn delay_ms(&self, from: u32, to: u32, rng: &mut impl Rng) -> Option<u64> {
        let is_walled = self.wall == Wall::Up && from % 2 != to % 2;
        if is_walled || (self.loss > 0.0 && rng.random_bool(self.loss)) {
            return None;
        }
        let site = |peer: u32| peer as usize % self.round_trips.sites;
        let one_way = f64::from(self.round_trips.round_trip_tenths(site(from), site(to))) / 20.0;
        // Queues make a message later, by up to a fifth, never earlier.
        Some((one_way * rng.random_range(1.0..1.2)).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_matrix_is_whole_and_symmetric() {
        let matrix = RoundTripMatrix::planetlab();
        assert_eq!(matrix.sites, 490);
        assert_eq!(
            matrix.round_trip_tenths(3, 400),
            matrix.round_trip_tenths(400, 3)
        );
        let mut all = matrix.tenths.clone();
        all.sort_unstable();
        assert_eq!(all[all.len() / 2] / 10, 135);
    }

    #[test]
    fn a_triangle_is_read_by_rows() {
        let bytes: Vec<u8> = [12u16, 13, 23]
            .iter()
            .flat_map(|tenths| tenths.to_le_bytes())
            .collect();
        let matrix = RoundTripMatrix::from_bytes(&bytes).unwrap();
        let trips = [(0, 1), (0, 2), (1, 2)].map(|(a, b)| matrix.round_trip_tenths(a, b));
        assert_eq!(trips, [12, 13, 23]);
        assert!(RoundTripMatrix::from_bytes(&bytes[..4]).is_err());
    }
}
