//! The honeycomb of the screensaver, without the drawing: the ring laid around the middle of the
//! screen, clockwise from the top, in which every page that arrives is a light that swells, reaches
//! the cells around it, and fades.
//!
//! Knows what it has shown already, so that only cells whose shade has changed are drawn again.

use std::{cmp::Ordering, f32::consts::TAU};

/// Shades between dark and a page that arrived just now; a step of light that nobody sees as one.
pub const LEVELS: u16 = 64;
/// Half of its light is gone after so many seconds.
const HALF_LIFE: f32 = 1.6;
/// Seconds until a cell shines in full: a light that swells is calmer than one that flashes.
const RISE: f32 = 0.35;
/// What the cells around a page get of its light.
const GLOW: f32 = 0.3;
/// Darker than the first shade.
const DARK: f32 = 0.5 / LEVELS as f32;
/// Most cells: more are not seen, and cost.
const MAX_CELLS: f32 = 900.0;
/// Multiples of it are spread evenly, however many there are.
const GOLDEN_RATIO: f32 = 0.618_034;
/// The radius of a cell in pixels, before there are too many.
const RADIUS: std::ops::RangeInclusive<f32> = 7.0..=26.0;
/// Cells from top to bottom of a small window, about.
const CELLS_DOWN: f32 = 35.0;

/// What a cell stands for while it is dark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    /// A piece of the ring that other peers own.
    Others,
    /// A piece of this peer's own arc.
    Own,
    /// The place of a peer that this one knows.
    Peer,
    /// Nothing: something else is drawn there.
    Covered,
}

/// A cell that has to be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Its middle.
    pub x: i16,
    /// Its middle.
    pub y: i16,
    /// What it stands for.
    pub ground: Ground,
    /// Its light, less than [`LEVELS`].
    pub level: u16,
}

/// A part of the screen, in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Area {
    /// Its left edge.
    pub x: i16,
    /// Its upper edge.
    pub y: i16,
    /// How wide it is.
    pub width: u16,
    /// How high it is.
    pub height: u16,
}

/// Where peers are on the ring, as shares of it from 0 to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ring {
    /// This peer, if it is known.
    pub me: Option<f64>,
    /// The one before it; nobody, if it owns the whole ring.
    pub predecessor: Option<f64>,
    /// Those that it knows.
    pub peers: Vec<f64>,
}

impl Ring {
    fn owns(&self, at: f64) -> bool {
        match (self.predecessor, self.me) {
            (Some(from), Some(to)) if from < to => from < at && at <= to,
            (Some(from), Some(to)) => from < at || at <= to,
            _ => true,
        }
    }
}

#[derive(Debug)]
struct Cell {
    x: i16,
    y: i16,
    /// Between two shades, where it goes to the next one, from 0 to 1: each cell at another light
    /// than those around it, so that something changes in every picture even when pages arrive and
    /// fade together.
    threshold: f32,
    light: f32,
    /// More than its light while that rises.
    goal: f32,
    ground: Ground,
    is_covered: bool,
    /// As it was drawn last.
    shown: Option<(Ground, u16)>,
}

impl Cell {
    fn look(&self) -> (Ground, u16) {
        if self.is_covered {
            return (Ground::Covered, 0);
        }
        let level = (self.light * f32::from(LEVELS - 1) + self.threshold) as u16;
        (self.ground, level.min(LEVELS - 1))
    }

    fn shine(&mut self, goal: f32) {
        self.goal = self.goal.max(goal);
    }

    fn step(&mut self, seconds: f32) {
        if self.goal > self.light {
            self.light = (self.light + seconds / RISE).min(self.goal);
        } else if self.light > 0.0 {
            let left = self.light * 0.5_f32.powf(seconds / HALF_LIFE);
            self.light = if left < DARK { 0.0 } else { left };
        }
        if self.light >= self.goal {
            self.goal = 0.0;
        }
    }
}

/// Cells that cover a screen, in the order of the ring.
#[derive(Debug)]
pub struct Comb {
    cells: Vec<Cell>,
    radius: f32,
}

impl Comb {
    /// Covers a screen; the ring goes around this point of it.
    pub fn new(width: u16, height: u16, middle: (i16, i16)) -> Self {
        let (wide, high) = (f32::from(width), f32::from(height));
        let mut radius = (high / CELLS_DOWN).clamp(*RADIUS.start(), *RADIUS.end());
        while (wide / across(radius) + 1.0) * (high / down(radius) + 1.0) > MAX_CELLS {
            radius *= 1.05;
        }
        let rows = (0..)
            .map(|row| (row, row as f32 * down(radius)))
            .take_while(|(_, y)| *y < high + radius);
        let places = rows.flat_map(|(row, y)| {
            let first = if row % 2 == 0 {
                0.0
            } else {
                across(radius) / 2.0
            };
            let xs = (0..).map(move |column| first + column as f32 * across(radius));
            xs.take_while(move |x| *x < wide + radius)
                .map(move |x| (x, y))
        });
        let mut cells: Vec<Cell> = places.map(cell).collect();
        cells.sort_by(|a, b| by_angle(a, b, middle));
        for (index, cell) in cells.iter_mut().enumerate() {
            cell.threshold = (index as f32 * GOLDEN_RATIO).fract();
        }
        Comb { cells, radius }
    }

    /// From the middle of a cell to its corners, in pixels.
    pub fn radius(&self) -> f32 {
        self.radius
    }

    /// A page has arrived of a domain at this place of the ring.
    pub fn page(&mut self, at: f64) {
        let first = self.index(at);
        let Some(index) = (first..self.cells.len())
            .chain(0..first)
            .find(|i| !self.cells[*i].is_covered)
        else {
            return;
        };
        let (x, y, reach) = (
            self.cells[index].x,
            self.cells[index].y,
            across(self.radius) * 1.2,
        );
        for cell in &mut self.cells {
            let far = f32::from(cell.x - x).hypot(f32::from(cell.y - y));
            if far < reach {
                cell.shine(if far < 1.0 { 1.0 } else { GLOW });
            }
        }
    }

    /// Peers have come or gone.
    pub fn settle(&mut self, ring: &Ring) {
        let count = self.cells.len() as f64;
        for (index, cell) in self.cells.iter_mut().enumerate() {
            let is_own = ring.owns((index as f64 + 0.5) / count);
            cell.ground = if is_own { Ground::Own } else { Ground::Others };
        }
        for at in ring.peers.iter().chain(&ring.me) {
            let index = self.index(*at);
            self.cells[index].ground = Ground::Peer;
        }
    }

    /// Something else is drawn there.
    pub fn cover(&mut self, area: Area) {
        let reach = self.radius.ceil() as i32;
        let is_within = |at: i16, from: i16, length: u16| {
            let (at, from) = (i32::from(at), i32::from(from));
            at + reach > from && at - reach < from + i32::from(length)
        };
        for cell in &mut self.cells {
            cell.is_covered =
                is_within(cell.x, area.x, area.width) && is_within(cell.y, area.y, area.height);
        }
    }

    /// Time passes.
    pub fn step(&mut self, seconds: f32) {
        for cell in &mut self.cells {
            cell.step(seconds);
        }
    }

    /// Is there nothing that will change by itself?
    pub fn is_dark(&self) -> bool {
        self.cells
            .iter()
            .all(|cell| cell.light == 0.0 && cell.goal == 0.0)
    }

    /// The cells that look different from when they were last asked for.
    pub fn changes(&mut self) -> Vec<Stamp> {
        let changed = self.cells.iter_mut().filter_map(|cell| {
            let (ground, level) = cell.look();
            let before = cell.shown.replace((ground, level));
            (before != Some((ground, level))).then_some(Stamp {
                x: cell.x,
                y: cell.y,
                ground,
                level,
            })
        });
        changed.collect()
    }

    /// What was drawn is lost.
    pub fn forget_shown(&mut self) {
        for cell in &mut self.cells {
            cell.shown = None;
        }
    }

    fn index(&self, at: f64) -> usize {
        ((at * self.cells.len() as f64) as usize).min(self.cells.len() - 1)
    }
}

fn across(radius: f32) -> f32 {
    radius * 3.0_f32.sqrt()
}

fn down(radius: f32) -> f32 {
    radius * 1.5
}

fn cell((x, y): (f32, f32)) -> Cell {
    let (x, y) = (x.round() as i16, y.round() as i16);
    Cell {
        x,
        y,
        threshold: 0.0,
        light: 0.0,
        goal: 0.0,
        ground: Ground::Own,
        is_covered: false,
        shown: None,
    }
}

fn by_angle(a: &Cell, b: &Cell, (x, y): (i16, i16)) -> Ordering {
    // Clockwise from the top.
    let angle = |cell: &Cell| {
        let (right, down) = (f32::from(cell.x - x), f32::from(cell.y - y));
        right.atan2(-down).rem_euclid(TAU)
    };
    angle(a)
        .total_cmp(&angle(b))
        .then((a.y, a.x).cmp(&(b.y, b.x)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDDLE: (i16, i16) = (640, 450);

    fn comb() -> Comb {
        let mut comb = Comb::new(1280, 900, MIDDLE);
        comb.changes();
        comb
    }

    fn brightest(stamps: &[Stamp]) -> Stamp {
        *stamps.iter().max_by_key(|stamp| stamp.level).unwrap()
    }

    #[test]
    fn every_screen_is_covered_by_a_bounded_number_of_cells() {
        for (width, height) in [(160, 120), (1080, 1920), (1920, 1080), (7680, 4320)] {
            let mut comb = Comb::new(width, height, (0, 0));
            let all = comb.changes();
            assert!(
                (50..1100).contains(&all.len()),
                "{width} × {height}: {}",
                all.len()
            );
            let (right, low) = (
                all.iter().map(|cell| cell.x).max().unwrap(),
                all.iter().map(|cell| cell.y).max().unwrap(),
            );
            let reach = comb.radius() as i32;
            assert!(
                i32::from(right) + reach >= i32::from(width)
                    && i32::from(low) + reach >= i32::from(height)
            );
        }
    }

    #[test]
    fn only_what_looks_different_is_drawn_again() {
        let mut comb = comb();
        comb.step(1.0);
        assert_eq!(comb.changes(), []);
        comb.page(0.3);
        comb.step(0.1);
        let changed = comb.changes();
        assert!(
            (4..=7).contains(&changed.len()),
            "a cell and those around it: {changed:?}"
        );
        assert_eq!(comb.changes(), []);
        comb.forget_shown();
        assert!(comb.changes().len() > 100);
    }

    #[test]
    fn a_page_swells_and_fades_to_the_dark() {
        let mut comb = comb();
        comb.page(0.3);
        assert!(!comb.is_dark());
        comb.step(RISE / 2.0);
        let rising = brightest(&comb.changes()).level;
        assert!((20..50).contains(&rising), "{rising}");
        comb.step(RISE);
        assert_eq!(brightest(&comb.changes()).level, LEVELS - 1);
        comb.step(HALF_LIFE);
        let half = brightest(&comb.changes()).level;
        assert!((30..=33).contains(&half), "{half}");
        comb.step(60.0);
        assert!(comb.is_dark());
        assert!(comb.changes().iter().all(|stamp| stamp.level == 0));
    }

    #[test]
    fn something_changes_in_nearly_every_picture_while_pages_fade_together() {
        let mut comb = comb();
        for at in 0..20 {
            comb.page(f64::from(at) / 20.0);
        }
        let pictures = 4 * 30;
        let changed = (0..pictures).filter(|_| {
            comb.step(1.0 / 30.0);
            !comb.changes().is_empty()
        });
        let changed = changed.count();
        assert!(changed >= pictures - 2, "{changed} of {pictures}");
    }

    #[test]
    fn the_ring_goes_clockwise_from_the_top() {
        for (at, is_right, is_low) in [
            (0.1, true, false),
            (0.4, true, true),
            (0.6, false, true),
            (0.9, false, false),
        ] {
            let mut comb = comb();
            comb.page(at);
            comb.step(RISE);
            let Stamp { x, y, .. } = brightest(&comb.changes());
            assert_eq!(
                (x > MIDDLE.0, y > MIDDLE.1),
                (is_right, is_low),
                "{at} is at {x}, {y}"
            );
        }
    }

    #[test]
    fn nothing_is_drawn_where_something_else_is_and_no_page_is_lost_there() {
        let mut comb = comb();
        let area = Area {
            x: 340,
            y: 250,
            width: 600,
            height: 400,
        };
        comb.cover(area);
        for at in 0..100 {
            comb.page(f64::from(at) / 100.0);
        }
        comb.step(RISE);
        let changed = comb.changes();
        assert!(
            changed
                .iter()
                .filter(|stamp| stamp.level == LEVELS - 1)
                .count()
                > 70
        );
        let is_inside =
            |stamp: &Stamp| (340..940).contains(&stamp.x) && (250..650).contains(&stamp.y);
        assert!(
            changed
                .iter()
                .filter(|stamp| is_inside(stamp))
                .all(|stamp| stamp.ground == Ground::Covered)
        );
        comb.step(60.0);
        comb.changes();
        comb.cover(Area::default());
        assert!(
            comb.changes().iter().any(is_inside),
            "drawn again when it is free"
        );
    }

    #[test]
    fn the_own_arc_and_the_peers_can_be_told_apart() {
        let mut comb = comb();
        comb.settle(&Ring {
            me: Some(0.1),
            predecessor: Some(0.9),
            peers: vec![0.5, 1.0],
        });
        let all = {
            comb.forget_shown();
            comb.changes()
        };
        let share = |ground: Ground| {
            all.iter().filter(|stamp| stamp.ground == ground).count() as f64 / all.len() as f64
        };
        assert_eq!(
            all.iter()
                .filter(|stamp| stamp.ground == Ground::Peer)
                .count(),
            3
        );
        assert!(
            (0.19..0.21).contains(&share(Ground::Own)),
            "{}",
            share(Ground::Own)
        );
        comb.settle(&Ring::default());
        assert!(
            comb.changes()
                .iter()
                .all(|stamp| stamp.ground == Ground::Own),
            "alone"
        );
    }
}
