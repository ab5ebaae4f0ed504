//! QR codes, for screens and for terminals.

use qrcode::{Color, EcLevel, QrCode, types::QrError};
use std::fmt::Write as _;

/// Modules of white around a code, as the standard wants.
const QUIET: usize = 4;

/// A QR code.
pub struct Qr {
    /// Rows of modules, with the quiet zone; true is dark.
    rows: Vec<Vec<bool>>,
}

impl Qr {
    /// The code of a text; capital letters and digits take the least room.
    pub fn new(text: &str) -> Result<Self, QrError> {
        let code = QrCode::with_error_correction_level(text, EcLevel::M)?;
        let width = code.width();
        let is_dark = |x: usize, y: usize| {
            let inside = (QUIET..QUIET + width).contains(&x) && (QUIET..QUIET + width).contains(&y);
            inside && code[(x - QUIET, y - QUIET)] == Color::Dark
        };
        let size = width + 2 * QUIET;
        let row = |y| (0..size).map(|x| is_dark(x, y)).collect();
        let rows = (0..size).map(row).collect();
        Ok(Qr { rows })
    }

    /// A picture of dark on white, whatever the page around it looks like.
    pub fn to_svg(&self) -> String {
        let size = self.rows.len();
        let mut path = String::new();
        for (y, row) in self.rows.iter().enumerate() {
            let mut x = 0;
            while x < size {
                let run = row[x..].iter().take_while(|dark| **dark == row[x]).count();
                if row[x] {
                    let _ = write!(path, "M{x} {y}h{run}v1h-{run}z");
                }
                x += run;
            }
        }
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {size} {size}\" \
             shape-rendering=\"crispEdges\"><path fill=\"#fff\" d=\"M0 0h{size}v{size}H0z\"/>\
             <path fill=\"#000\" d=\"{path}\"/></svg>"
        )
    }

    /// Two rows of modules on each line of a terminal. Light is drawn, since most terminals are dark.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for rows in self.rows.chunks(2) {
            for x in 0..self.rows.len() {
                let lower = rows.get(1).is_some_and(|row| row[x]);
                text.push(match (rows[0][x], lower) {
                    (false, false) => '█',
                    (false, true) => '▀',
                    (true, false) => '▄',
                    (true, true) => ' ',
                });
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_its_corners_and_its_quiet_zone() {
        let qr = Qr::new("APOIDEA:ABC").unwrap();
        let size = qr.rows.len();
        assert!(qr.rows[..QUIET].iter().flatten().all(|dark| !dark));
        assert!(qr.rows[QUIET][QUIET..QUIET + 7].iter().all(|dark| *dark));
        let svg = qr.to_svg();
        assert!(
            svg.contains(&format!("viewBox=\"0 0 {size} {size}\"")),
            "{svg}"
        );
        assert!(svg.contains(&format!("M{QUIET} {QUIET}h7v1h-7z")), "{svg}");
        let text = qr.to_text();
        assert_eq!(text.lines().count(), size.div_ceil(2));
        assert!(text.lines().all(|line| line.chars().count() == size));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert!(Qr::new(&"A".repeat(9000)).is_err());
    }
}
