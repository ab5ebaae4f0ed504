//! The numbers in the middle of the screensaver: what was given so far, and how it goes.

use super::{
    comb::Area,
    image::{Colour, HONEY, Image, NIGHT, dip},
};
use cairo::{Context, FontSlant, FontWeight};

const PAPER: Colour = (0.945, 0.925, 0.882);
const FAINT: Colour = (0.667, 0.627, 0.553);
/// A pixel of the drawing below is one on a screen of this height.
const DRAWN_FOR: f64 = 1080.0;
/// Around the words.
const MARGIN: f64 = 40.0;
/// Nothing stands still on a screen for long: the plate wanders, by this share of the screen at
/// most.
const WANDER: (f64, f64) = (0.06, 0.08);
/// Seconds of a turn of its way, about; it takes a step every few seconds.
const TURN: f64 = 60.0;
/// Seconds between two steps.
pub const STEP: u64 = 15;
/// Lower than this, a screen has room for one number only.
const SMALL: u16 = 300;

/// What the plate says.
#[derive(Debug, Clone, PartialEq)]
pub enum Words {
    /// How the peer stands.
    Numbers {
        /// Pages in all.
        pages: u64,
        /// Pages a second now.
        rate: f64,
        /// Domains it takes care of.
        domains: u64,
        /// Its place among the others, such as "member of ~12 peers".
        network: String,
    },
    /// It does not answer; so many pages were the last it said.
    Lost {
        /// Pages in all.
        pages: u64,
    },
}

impl Words {
    /// Pages in all.
    pub fn pages(&self) -> u64 {
        match self {
            Words::Numbers { pages, .. } | Words::Lost { pages } => *pages,
        }
    }

    fn last_line(&self) -> String {
        match self {
            Words::Numbers {
                rate,
                domains,
                network,
                ..
            } => {
                format!(
                    "{rate:.1} a second · {} domains · {network}",
                    grouped(*domains)
                )
            }
            Words::Lost { .. } => "the peer does not answer".to_owned(),
        }
    }

    fn lines(&self, height: u16) -> Vec<Line> {
        let number = Line {
            text: grouped(self.pages()),
            size: 112.0,
            colour: PAPER,
            ..Line::default()
        };
        if height < SMALL {
            return vec![number];
        }
        vec![
            Line {
                text: "APOIDEA".to_owned(),
                size: 17.0,
                colour: HONEY,
                spacing: 6.0,
                ..Line::default()
            },
            Line {
                weight: FontWeight::Bold,
                ..number
            },
            Line {
                text: "pages given to an open web".to_owned(),
                size: 20.0,
                colour: PAPER,
                ..Line::default()
            },
            Line {
                text: self.last_line(),
                size: 18.0,
                colour: FAINT,
                ..Line::default()
            },
        ]
    }
}

struct Line {
    text: String,
    size: f64,
    colour: Colour,
    weight: FontWeight,
    /// Between two letters.
    spacing: f64,
}

impl Default for Line {
    fn default() -> Self {
        Line {
            text: String::new(),
            size: 0.0,
            colour: PAPER,
            weight: FontWeight::Normal,
            spacing: 0.0,
        }
    }
}

impl Line {
    fn choose_font(&self, context: &Context, scale: f64) {
        context.select_font_face("sans-serif", FontSlant::Normal, self.weight);
        context.set_font_size(self.size * scale);
    }

    fn width(&self, context: &Context, scale: f64) -> Result<f64, cairo::Error> {
        self.choose_font(context, scale);
        let gaps = self.text.chars().count().saturating_sub(1) as f64;
        Ok(context.text_extents(&self.text)?.x_advance() + gaps * self.spacing * scale)
    }

    fn draw(&self, context: &Context, x: f64, y: f64, scale: f64) -> Result<(), cairo::Error> {
        self.choose_font(context, scale);
        dip(context, self.colour);
        context.move_to(x, y);
        for letter in self.text.split_inclusive(|_: char| self.spacing > 0.0) {
            context.show_text(letter)?;
            context.rel_move_to(self.spacing * scale, 0.0);
        }
        Ok(())
    }

    /// From this line's foot to that of the one above.
    fn height(&self, scale: f64) -> f64 {
        self.size * 1.25 * scale
    }
}

/// Draws the plate for a screen of this height.
pub fn draw(words: &Words, height: u16) -> anyhow::Result<Image> {
    let scale = f64::from(height) / DRAWN_FOR;
    let lines = words.lines(height);
    let mut widest = 0.0_f64;
    Image::draw(1, 1, |context| {
        for line in &lines {
            widest = widest.max(line.width(context, scale)?);
        }
        Ok(())
    })?;
    let width = widest + 2.0 * MARGIN * scale;
    let high: f64 = lines.iter().map(|line| line.height(scale)).sum::<f64>() + 2.0 * MARGIN * scale;
    Image::draw(width.ceil() as u16, high.ceil() as u16, |context| {
        dip(context, NIGHT);
        context.paint()?;
        let mut y = MARGIN * scale;
        for line in &lines {
            y += line.height(scale);
            let x = (width - line.width(context, scale)?) / 2.0;
            line.draw(context, x, y - line.size * 0.25 * scale, scale)?;
        }
        Ok(())
    })
}

/// Where a plate of this size is after so many seconds: around the middle of a screen, which it
/// does not leave.
pub fn place(plate: &Image, screen: Area, seconds: u64) -> Area {
    let turns = (seconds / STEP * STEP) as f64 / TURN;
    let along = |from: i16, length: u16, size: u16, drift: f64| {
        let free = f64::from(length) - f64::from(size);
        let at = (free / 2.0 + drift * f64::from(length)).clamp(0.0, free.max(0.0));
        from.saturating_add(at as i16)
    };
    Area {
        x: along(screen.x, screen.width, plate.width, turns.sin() * WANDER.0),
        y: along(
            screen.y,
            screen.height,
            plate.height,
            (turns * 1.3).sin() * WANDER.1,
        ),
        width: plate.width,
        height: plate.height,
    }
}

/// A number with a comma after every thousand.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Area = Area {
        x: 1920,
        y: 0,
        width: 1280,
        height: 900,
    };

    fn words(pages: u64) -> Words {
        Words::Numbers {
            pages,
            rate: 19.96,
            domains: 1234,
            network: "alone".to_owned(),
        }
    }

    #[test]
    fn numbers_are_read_in_thousands() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(grouped),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            words(7).last_line(),
            "20.0 a second · 1,234 domains · alone"
        );
    }

    #[test]
    fn the_plate_has_words_on_it_and_grows_with_the_screen() {
        let (small, large) = (
            draw(&words(1_234_567), 600).unwrap(),
            draw(&words(1_234_567), 1200).unwrap(),
        );
        assert!(large.width > small.width && large.height > small.height);
        let lit = large
            .bytes
            .chunks_exact(4)
            .filter(|pixel| pixel[2] > 200)
            .count();
        assert!(lit > 1000, "{lit}");
    }

    #[test]
    fn the_plate_wanders_and_stays_on_its_screen() {
        let plate = draw(&words(1_234_567), 900).unwrap();
        let places: Vec<Area> = (0..600)
            .step_by(5)
            .map(|seconds| place(&plate, SCREEN, seconds))
            .collect();
        let is_inside = |area: &Area| {
            area.x >= 1920
                && area.y >= 0
                && i32::from(area.x) + i32::from(area.width) <= 3200
                && i32::from(area.y) + i32::from(area.height) <= 900
        };
        assert!(places.iter().all(is_inside));
        assert!(places.iter().any(|area| area.x != places[0].x));
        assert_eq!(places[0], places[1], "it steps rather than glides");
    }
}
