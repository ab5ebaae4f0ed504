//! Reads a QR code by the hand of others: lines of `0` and `1` on standard input, one digit for each
//! module, quiet zone included; prints the text in it.

use rqrr::PreparedImage;
use std::io;

/// Pixels of a module; a camera sees more than one.
const SCALE: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let text = io::read_to_string(io::stdin())?;
    let modules: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    let width = modules.first().ok_or("no module")?.len();
    let is_dark = |x: usize, y: usize| modules[y / SCALE].get(x / SCALE) == Some(&b'1');
    let (wide, high) = (width * SCALE, modules.len() * SCALE);
    let mut image =
        PreparedImage::prepare_from_greyscale(
            wide,
            high,
            |x, y| if is_dark(x, y) { 0 } else { 255 },
        );
    let grids = image.detect_grids();
    let [grid] = &grids[..] else {
        return Err(format!("{} codes instead of one", grids.len()).into());
    };
    let (_, content) = grid.decode()?;
    println!("{content}");
    Ok(())
}
