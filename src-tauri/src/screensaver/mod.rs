//! The screensaver where there is an X server: the ring as a honeycomb in which every page that
//! arrives is a light.
//!
//! Drawn without a web view, which takes several times as much of a processor for the same picture
//! and cannot refuse the keyboard under Wayland. Thirty pictures a second while something glows,
//! none while nothing does. `comb` says what is seen, `sprites` and `plate` draw it, `stage` shows
//! it, `feed` brings the news.

mod comb;
mod feed;
mod image;
mod plate;
mod sprites;
mod stage;

use crate::{activity::Activity, launch::Canvas};
use anyhow::Context;
use comb::{Area, Comb};
use feed::News;
use plate::Words;
use sprites::Sprites;
use stage::{Happening, Stage};
use std::{
    io,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::{Duration, Instant},
};

/// Thirty pictures a second.
const FRAME: Duration = Duration::from_micros(33_333);
/// How often it is looked for news and input while nothing changes by itself.
const REST: Duration = Duration::from_millis(100);
/// Pixels that a mouse on a shaking table moves by itself.
const TREMBLE: i16 = 8;

/// Who decides when it is over, besides the volunteer who comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The app, by ending what it says on standard input.
    App,
    /// Whoever ends this process.
    Starter,
}

/// A screensaver that has a window, but shows nothing yet.
pub struct Screensaver {
    stage: Stage,
    comb: Comb,
    words: Words,
    /// The numbers have to be drawn again.
    has_news: bool,
    /// Where the numbers are.
    plate: Area,
    began: Instant,
    mouse: Option<(i16, i16)>,
    /// Pictures that were drawn while something glowed.
    frames: u64,
    /// How long something glowed.
    aglow: Duration,
    /// Sees the volunteer's return; none where that is the affair of whoever owns the window that
    /// is drawn in.
    activity: Option<Activity>,
}

impl Screensaver {
    /// Makes it ready, over the whole screen or in somebody else's window. Not where keys cannot be
    /// seen: it would never go.
    pub fn open(canvas: Option<Canvas>) -> anyhow::Result<Self> {
        let activity = match canvas {
            Some(_) => None,
            None => Some(Activity::watch_if_seen().context("nothing here tells of input")?),
        };
        let mut stage = Stage::open(canvas)?;
        let (Area { width, height, .. }, monitor) = (stage.area(), stage.monitor());
        let middle = (
            monitor.x + (monitor.width / 2) as i16,
            monitor.y + (monitor.height / 2) as i16,
        );
        let comb = Comb::new(width, height, middle);
        stage.take(Sprites::draw(comb.radius())?)?;
        Ok(Screensaver {
            stage,
            comb,
            words: Words::Lost { pages: 0 },
            has_news: true,
            plate: Area::default(),
            began: Instant::now(),
            mouse: None,
            frames: 0,
            aglow: Duration::ZERO,
            activity,
        })
    }

    /// Shows what the peer behind a link does, until it is over.
    pub fn run(mut self, link: &str, owner: Owner) -> anyhow::Result<()> {
        let (sender, news) = sync_channel(feed::MAX_WAITING);
        self.follow(link, owner, &sender)?;
        self.stage.show()?;
        let outcome = self.play(&news);
        let seconds = self.aglow.as_secs_f64();
        eprintln!(
            "screensaver: {} pictures in {seconds:.1} s in which something glowed",
            self.frames
        );
        outcome
    }

    fn follow(&mut self, link: &str, owner: Owner, news: &SyncSender<News>) -> anyhow::Result<()> {
        let (link, for_feed) = (link.to_owned(), news.clone());
        spawn("feed", move || {
            if let Err(error) = feed::tell(&link, &for_feed) {
                eprintln!("apoidea-desktop: {error:#}");
                let _ = for_feed.send(News::Lost);
            }
        })?;
        if owner == Owner::App {
            let for_app = news.clone();
            spawn("follow", move || {
                let _ = io::copy(&mut io::stdin(), &mut io::sink());
                let _ = for_app.send(News::End);
            })?;
        }
        if let Some(activity) = self.activity.take() {
            let for_wake = news.clone();
            spawn("wake", move || {
                activity.wait();
                let _ = for_wake.send(News::End);
            })?;
        }
        Ok(())
    }

    fn play(&mut self, news: &Receiver<News>) -> anyhow::Result<()> {
        let mut last = Instant::now();
        let mut due = last;
        loop {
            if self.hear(news) || self.look()? {
                return Ok(());
            }
            let now = Instant::now();
            if !self.comb.is_dark() {
                self.aglow += now - last;
            }
            self.comb.step((now - last).as_secs_f32());
            last = now;
            self.draw()?;
            // A picture that came late does not make the next one late; what was missed for long is
            // not made up for.
            due = (due + if self.comb.is_dark() { REST } else { FRAME }).max(now);
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
    }

    /// Takes in what is new; is it over?
    fn hear(&mut self, news: &Receiver<News>) -> bool {
        for news in news.try_iter() {
            match news {
                News::Page(at) => self.comb.page(at),
                News::Words(words) => self.say(words),
                News::Lost => self.say(Words::Lost {
                    pages: self.words.pages(),
                }),
                News::Ring(ring) => self.comb.settle(&ring),
                News::End => return true,
            }
        }
        false
    }

    /// Sees what happened to the window; is it over?
    fn look(&mut self) -> anyhow::Result<bool> {
        for happening in self.stage.happenings()? {
            match happening {
                Happening::Clicked => return Ok(true),
                Happening::Pointed(x, y) => {
                    let (from_x, from_y) = *self.mouse.get_or_insert((x, y));
                    if (x - from_x).abs().max((y - from_y).abs()) > TREMBLE {
                        return Ok(true);
                    }
                }
                Happening::Exposed => {
                    self.comb.forget_shown();
                    self.has_news = true;
                }
            }
        }
        Ok(false)
    }

    fn say(&mut self, words: Words) {
        self.words = words;
        self.has_news = true;
    }

    fn draw(&mut self) -> anyhow::Result<()> {
        let has_news = std::mem::take(&mut self.has_news);
        if has_news {
            self.draw_plate()?;
        }
        let changes = self.comb.changes();
        self.stage.stamp(&changes)?;
        if (has_news || !changes.is_empty()) && !self.comb.is_dark() {
            self.frames += 1;
        }
        self.stage.flush()
    }

    /// The cells around the plate give way first, so that none of them is seen cut.
    fn draw_plate(&mut self) -> anyhow::Result<()> {
        let monitor = self.stage.monitor();
        let image = plate::draw(&self.words, monitor.height)?;
        let area = plate::place(&image, monitor, self.began.elapsed().as_secs());
        self.comb.cover(area);
        if self.plate != area {
            self.stage.darken(self.plate)?;
        }
        self.stage.stamp(&self.comb.changes())?;
        self.stage.draw(&image, area)?;
        self.plate = area;
        Ok(())
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map(drop)
}
