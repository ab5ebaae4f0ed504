//! How the app was started: as a tray app, by the session, or as a screensaver, by us or by the
//! system.
//!
//! Windows calls a screensaver with `/s`, `/c` or `/p HWND`, in either case and with a colon or a
//! space; XScreenSaver names the window in an option or the environment.

use crate::window::Kind;
use clap::Parser;
use std::{ffi::OsString, path::PathBuf, str::FromStr};

/// The beginning of every invite.
const SCHEME: &str = "apoidea:";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The tray, and the dashboard.
    Open,
    /// The tray alone: the session started us.
    StayInTray,
    /// The screensaver, over the whole screen.
    Screensaver,
    /// The screensaver, in a window of somebody else.
    Inside(Canvas),
    /// The page where the screensaver, and everything else, is set.
    Configure,
    /// The small picture in the settings of Windows; none if the call names no window to draw it
    /// in.
    Preview(Option<Frame>),
    /// A window for the app that runs already.
    View(Kind),
}

/// The number of an X server's window, as XScreenSaver names the one to be drawn in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Canvas(pub u32);

/// The number of the window of Windows' settings in which a small picture is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame(pub usize);

/// Not the number of a window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the number of a window, such as 0x1a00007")]
pub struct InvalidCanvas(String);

impl FromStr for Canvas {
    type Err = InvalidCanvas;

    fn from_str(text: &str) -> Result<Self, InvalidCanvas> {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let number = hex.map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16));
        number
            .ok()
            .filter(|number| *number != 0)
            .map(Canvas)
            .ok_or_else(|| InvalidCanvas(text.to_owned()))
    }
}

/// The command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// What is asked for.
    pub purpose: Purpose,
    /// Where the peer's files are.
    pub place: Place,
    /// The invite that was opened.
    pub invite: Option<String>,
}

/// Where the peer's files are; the same options as those of `apoidea`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Place {
    /// Folder for what the peer remembers
    #[arg(long, value_name = "FOLDER", env = "APOIDEA_DATA")]
    pub data: Option<PathBuf>,
    /// Settings file; it need not exist
    #[arg(long, value_name = "FILE", env = "APOIDEA_CONFIG")]
    pub config: Option<PathBuf>,
    /// Change one setting for this run, such as crawl.fetches=8; can be repeated
    #[arg(
        long = "set",
        value_name = "SECTION.FIELD=VALUE",
        env = "APOIDEA_SET",
        value_delimiter = ';'
    )]
    pub settings: Vec<String>,
}

impl Place {
    /// The same as words of a command line.
    pub fn words(&self) -> Vec<OsString> {
        let data = self
            .data
            .iter()
            .flat_map(|data| ["--data".into(), data.into()]);
        let config = self
            .config
            .iter()
            .flat_map(|config| ["--config".into(), config.into()]);
        let settings = self
            .settings
            .iter()
            .flat_map(|setting| ["--set".into(), setting.into()]);
        data.chain(config).chain(settings).collect()
    }
}

/// A link that the desktop hands over; the peer reads the rest of it. A QR code holds it in capital
/// letters.
fn link(word: &str) -> Result<String, String> {
    let scheme = word.get(..SCHEME.len());
    if scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME)) {
        Ok(word.to_owned())
    } else {
        Err(format!("an invite begins with {SCHEME}"))
    }
}

/// The tray app of Apoidea, a volunteer web crawler.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    place: Place,
    /// An invite to look at, `apoidea:…`
    #[arg(value_parser = link)]
    invite: Option<String>,
    /// Show the screensaver
    #[arg(long)]
    screensaver: bool,
    /// Stay in the tray and open no window, as at the start of a session
    #[arg(long)]
    hidden: bool,
    /// Show a window; what is in it is said on standard input
    #[arg(long, hide = true)]
    view: Option<Kind>,
    /// The window that XScreenSaver wants to be drawn in
    #[arg(long = "window-id", hide = true, env = "XSCREENSAVER_WINDOW")]
    window: Option<Canvas>,
    /// Draw on the whole screen, as XScreenSaver says it
    #[arg(long, hide = true)]
    root: bool,
}

impl Launch {
    /// Reads a command line; the first word is the program.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let mut words: Vec<String> = words.into_iter().collect();
        let windows = words
            .get(1)
            .and_then(|word| windows_purpose(word, words.get(2)));
        if let Some(purpose) = windows {
            words.truncate(1);
            return Ok(Launch {
                purpose,
                place: Arguments::try_parse_from(words)?.place,
                invite: None,
            });
        }
        // XScreenSaver writes long options with one dash.
        let words = words.into_iter().map(|word| match word.as_str() {
            "-root" | "-window-id" => format!("-{word}"),
            _ => word,
        });
        let Arguments {
            place,
            invite,
            screensaver,
            hidden,
            view,
            window,
            root,
        } = Arguments::try_parse_from(words)?;
        let purpose = match view {
            Some(kind) => Purpose::View(kind),
            None if hidden => Purpose::StayInTray,
            None => match window {
                Some(canvas) => Purpose::Inside(canvas),
                None if screensaver || root => Purpose::Screensaver,
                None => Purpose::Open,
            },
        };
        Ok(Launch {
            purpose,
            place,
            invite,
        })
    }
}

fn windows_purpose(word: &str, next: Option<&String>) -> Option<Purpose> {
    let mut letters = word.chars();
    let (slash, letter, rest) = (letters.next()?, letters.next()?, letters.next());
    if !matches!(slash, '/') || !matches!(rest, None | Some(':')) {
        return None;
    }
    let frame = || {
        let number = if rest.is_some() {
            letters.as_str()
        } else {
            next?.as_str()
        };
        number.parse().ok().filter(|number| *number != 0).map(Frame)
    };
    match letter.to_ascii_lowercase() {
        's' => Some(Purpose::Screensaver),
        'c' => Some(Purpose::Configure),
        'p' => Some(Purpose::Preview(frame())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn purpose(words: &[&str]) -> Purpose {
        let words = ["apoidea-desktop"]
            .iter()
            .chain(words)
            .map(|word| (*word).to_owned());
        Launch::parse(words).unwrap().purpose
    }

    #[test]
    fn an_invite_is_opened_by_its_link() {
        let open = |link: &str| Launch::parse(["apoidea-desktop", link].map(str::to_owned));
        for link in ["apoidea:abc", "APOIDEA:ABC"] {
            let launch = open(link).unwrap();
            assert_eq!(launch.purpose, Purpose::Open);
            assert_eq!(launch.invite.as_deref(), Some(link));
        }
        for other in ["https://example.org/", "apoidea", "apoidéa:abc"] {
            let refused = open(other).unwrap_err().to_string();
            assert!(refused.contains("begins with apoidea:"), "{refused}");
        }
    }

    #[test]
    fn every_way_to_be_called_is_understood() {
        for (words, expected) in [
            (&[][..], Purpose::Open),
            (&["--hidden"], Purpose::StayInTray),
            (&["--screensaver"], Purpose::Screensaver),
            (&["--view", "dashboard"], Purpose::View(Kind::Dashboard)),
            (&["/s"], Purpose::Screensaver),
            (&["/S"], Purpose::Screensaver),
            (&["/c"], Purpose::Configure),
            (&["/C:131072"], Purpose::Configure),
            (&["/p", "131072"], Purpose::Preview(Some(Frame(131_072)))),
            (&["/P:131072"], Purpose::Preview(Some(Frame(131_072)))),
            (&["/p"], Purpose::Preview(None)),
            (&["/p", "0"], Purpose::Preview(None)),
            (&["/p:window"], Purpose::Preview(None)),
            (&["-root"], Purpose::Screensaver),
            (&["--root"], Purpose::Screensaver),
            (
                &["-window-id", "0x1a00007"],
                Purpose::Inside(Canvas(0x01a0_0007)),
            ),
            (
                &["--root", "--window-id", "27262983"],
                Purpose::Inside(Canvas(0x01a0_0007)),
            ),
        ] {
            assert_eq!(purpose(words), expected, "{words:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for word in [
            "/x",
            "/special",
            "--fast",
            "/",
            "--window-id=0",
            "--window-id=0xg",
            "--view=door",
        ] {
            assert!(
                Launch::parse(["apoidea-desktop".to_owned(), word.to_owned()]).is_err(),
                "{word}"
            );
        }
    }

    #[test]
    fn the_place_is_told_as_to_the_command_line() {
        let words = [
            "apoidea-desktop",
            "--data",
            "/tmp/a",
            "--set",
            "crawl.fetches=8",
        ]
        .map(str::to_owned);
        let place = Launch::parse(words).unwrap().place;
        assert_eq!(place.data, Some(PathBuf::from("/tmp/a")));
        assert_eq!(place.settings, ["crawl.fetches=8"]);
        let again = ["apoidea-desktop".into()].into_iter().chain(place.words());
        let again = again.map(|word| word.into_string().unwrap());
        assert_eq!(Launch::parse(again).unwrap().place, place);
    }
}
