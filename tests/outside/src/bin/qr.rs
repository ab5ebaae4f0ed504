//! Reads a QR code by the hand of others: lines of `0` and `1` on standard input, one digit for each
//! module, quiet zone included; prints the text in it. `qr 1` reads a picture: one digit for each
//! pixel, with a code somewhere in it.

use rqrr::PreparedImage;
use std::{env, io};

/// Pixels of a module; a camera sees more than one.
const SCALE: usize = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scale = match env::args().nth(1) {
        Some(scale) => scale.parse()?,
        None => SCALE,
    };
    let text = io::read_to_string(io::stdin())?;
    let modules: Vec<&[u8]> = text.lines().map(str::as_bytes).collect();
    let width = modules.first().ok_or("no module")?.len();
    let is_dark = |x: usize, y: usize| modules[y / scale].get(x / scale) == Some(&b'1');
    let (wide, high) = (width * scale, modules.len() * scale);
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
