//! A picture in memory as cairo draws it and an X server takes it: four bytes a pixel, colours
//! multiplied by their opacity.

use cairo::{Context, Format, ImageSurface};

/// A picture.
pub struct Image {
    /// How wide it is, in pixels.
    pub width: u16,
    /// How high it is.
    pub height: u16,
    /// Line by line, from the top.
    pub bytes: Vec<u8>,
}

/// A colour: red, green and blue, from 0 to 1.
pub type Colour = (f64, f64, f64);

/// What is behind everything.
pub const NIGHT: Colour = (13.0 / 255.0, 11.0 / 255.0, 8.0 / 255.0);
/// Light, and the program's name.
pub const HONEY: Colour = (242.0 / 255.0, 176.0 / 255.0, 53.0 / 255.0);

impl Image {
    /// Draws one, beginning with nothing.
    pub fn draw(
        width: u16,
        height: u16,
        draw: impl FnOnce(&Context) -> Result<(), cairo::Error>,
    ) -> anyhow::Result<Self> {
        let mut surface = ImageSurface::create(Format::ARgb32, width.into(), height.into())?;
        let context = Context::new(&surface)?;
        draw(&context)?;
        drop(context);
        // Four bytes a pixel leave no gap between lines.
        let bytes = surface.data()?.to_vec();
        Ok(Image {
            width,
            height,
            bytes,
        })
    }

    /// Its lines in pieces of at most so many bytes, each with the number of its first line and how
    /// many there are.
    pub fn pieces(&self, most_bytes: usize) -> impl Iterator<Item = (u16, u16, &[u8])> {
        let line = usize::from(self.width) * 4;
        let lines = (most_bytes / line).clamp(1, usize::from(u16::MAX));
        self.bytes
            .chunks(lines * line)
            .enumerate()
            .map(move |(index, piece)| ((index * lines) as u16, (piece.len() / line) as u16, piece))
    }
}

/// Sets the colour that is drawn with.
pub fn dip(context: &Context, (red, green, blue): Colour) {
    context.set_source_rgb(red, green, blue);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_of_a_picture_are_all_of_it() {
        let image = Image::draw(10, 7, |context| {
            dip(context, HONEY);
            context.paint()
        })
        .unwrap();
        for most in [1, 40, 100, 10_000] {
            let pieces: Vec<_> = image.pieces(most).collect();
            assert_eq!(
                pieces.iter().map(|(_, lines, _)| *lines).sum::<u16>(),
                7,
                "{most}"
            );
            assert_eq!(
                pieces
                    .iter()
                    .flat_map(|(.., bytes)| *bytes)
                    .copied()
                    .collect::<Vec<_>>(),
                image.bytes
            );
        }
        let firsts: Vec<u16> = image.pieces(80).map(|(first, ..)| first).collect();
        assert_eq!(firsts, [0, 2, 4, 6]);
    }
}
