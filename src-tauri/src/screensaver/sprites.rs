//! Every look that a cell of the honeycomb can have, drawn once: showing one is then a copy that
//! the X server makes by itself.

use super::{
    comb::{Ground, LEVELS, Stamp},
    image::{Colour, HONEY, Image, NIGHT, dip},
};
use cairo::{Antialias, Context, RadialGradient};
use std::f64::consts::FRAC_PI_3;

const GROUNDS: [(Ground, Colour); 4] = [
    (Ground::Others, (0.071, 0.062, 0.047)),
    (Ground::Own, (0.122, 0.098, 0.059)),
    (Ground::Peer, (0.35, 0.27, 0.14)),
    (Ground::Covered, NIGHT),
];
/// The dark line around a cell, in pixels on each side.
const GAP: f64 = 1.5;
/// How much lighter the middle of a cell is than its ground, and how much darker the edge.
const BULGE: (f64, f64) = (1.12, 0.9);

/// A sheet of cells: a column for each light, a row for each ground.
pub struct Sprites {
    /// The sheet.
    pub sheet: Image,
    /// The width of one cell.
    pub width: u16,
    /// The height of one cell.
    pub height: u16,
}

impl Sprites {
    /// Draws all cells of this radius.
    pub fn draw(radius: f32) -> anyhow::Result<Self> {
        let radius = f64::from(radius);
        let (width, height) = (box_size(radius * FRAC_PI_3.sin()), box_size(radius));
        let rows = GROUNDS.len() as u16;
        let sheet = Image::draw(width * LEVELS, height * rows, |context| {
            for (row, (ground, colour)) in (0..rows).zip(GROUNDS) {
                for level in 0..LEVELS {
                    let middle = (middle_of(level, width), middle_of(row, height));
                    draw_night(context, middle, radius)?;
                    if ground != Ground::Covered {
                        let light = f64::from(level) / f64::from(LEVELS - 1);
                        draw_cell(context, middle, radius, mix(colour, HONEY, light))?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(Sprites {
            sheet,
            width,
            height,
        })
    }

    /// Where on the sheet the cell is that looks so.
    pub fn place_of(&self, stamp: &Stamp) -> (i16, i16) {
        let row = GROUNDS
            .iter()
            .position(|(ground, _)| *ground == stamp.ground)
            .unwrap_or_default();
        (
            (stamp.level * self.width) as i16,
            (row as u16 * self.height) as i16,
        )
    }
}

/// Pixels of a cell that reaches so far to either side of the pixel in its middle.
fn box_size(reach: f64) -> u16 {
    reach.ceil() as u16 * 2 + 1
}

fn middle_of(index: u16, size: u16) -> f64 {
    f64::from(index * size) + f64::from(size) / 2.0
}

/// The night behind a cell. Nothing of it is half transparent, so that drawing it again makes
/// nothing brighter.
fn draw_night(context: &Context, (x, y): (f64, f64), radius: f64) -> Result<(), cairo::Error> {
    context.set_antialias(Antialias::None);
    hexagon(context, x, y, radius);
    dip(context, NIGHT);
    context.fill()?;
    context.set_antialias(Antialias::Default);
    Ok(())
}

fn draw_cell(
    context: &Context,
    (x, y): (f64, f64),
    radius: f64,
    colour: Colour,
) -> Result<(), cairo::Error> {
    hexagon(context, x, y, radius - GAP);
    let shade = RadialGradient::new(x, y, 0.0, x, y, radius);
    for (at, by) in [(0.0, BULGE.0), (1.0, BULGE.1)] {
        shade.add_color_stop_rgb(at, colour.0 * by, colour.1 * by, colour.2 * by);
    }
    context.set_source(&shade)?;
    context.fill()
}

fn hexagon(context: &Context, x: f64, y: f64, radius: f64) {
    for corner in 0..6 {
        let angle = FRAC_PI_3 * (f64::from(corner) + 0.5);
        context.line_to(x + radius * angle.cos(), y + radius * angle.sin());
    }
    context.close_path();
}

fn mix(from: Colour, to: Colour, share: f64) -> Colour {
    let mix = |from: f64, to: f64| from + (to - from) * share;
    (mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pixel(sprites: &Sprites, (x, y): (i16, i16)) -> [u8; 4] {
        let at = (y as usize * usize::from(sprites.sheet.width) + x as usize) * 4;
        sprites.sheet.bytes[at..at + 4].try_into().unwrap()
    }

    #[test]
    fn every_light_and_ground_is_on_the_sheet_and_nothing_is_half_transparent() {
        let sprites = Sprites::draw(26.0).unwrap();
        assert!(
            sprites
                .sheet
                .bytes
                .chunks_exact(4)
                .all(|pixel| matches!(pixel[3], 0 | 255))
        );
        let middle = |ground, level| {
            let (x, y) = sprites.place_of(&Stamp {
                x: 0,
                y: 0,
                ground,
                level,
            });
            pixel(
                &sprites,
                (x + sprites.width as i16 / 2, y + sprites.height as i16 / 2),
            )
        };
        for (ground, _) in GROUNDS
            .into_iter()
            .filter(|(ground, _)| *ground != Ground::Covered)
        {
            let reds: Vec<u8> = (0..LEVELS).map(|level| middle(ground, level)[2]).collect();
            assert!(
                reds.is_sorted() && reds[0] < 110 && reds[63] > 240,
                "{ground:?}: {reds:?}"
            );
        }
        assert!(middle(Ground::Others, 0)[2] < middle(Ground::Own, 0)[2]);
        assert_eq!(
            pixel(&sprites, (0, 0))[3],
            0,
            "a corner is left to the neighbours"
        );
    }
}
