//! The screensaver's window on an X server, which is a real one or that of a Wayland desktop for
//! older programs.
//!
//! No window manager takes part in it: it covers the whole screen, is never typed into, and leaves
//! the focus where it was. A cell is drawn by one small request, since the server has the sheet of
//! all cells; that is why the picture costs next to nothing.

use super::{
    comb::{Area, Stamp},
    image::{Image, NIGHT},
    sprites::Sprites,
};
use crate::launch::Canvas;
use anyhow::Context;
use x11rb::{
    COPY_DEPTH_FROM_PARENT, NONE,
    connection::Connection,
    protocol::{
        Event,
        randr::ConnectionExt as _,
        render::{
            Color, ConnectionExt as _, CreatePictureAux, PictOp, PictType, Pictformat, Picture,
        },
        xproto::{
            AtomEnum, ConfigureWindowAux, ConnectionExt as _, CreateGCAux, CreateWindowAux,
            EventMask, ImageFormat, PropMode, Rectangle, Screen, StackMode, Window, WindowClass,
        },
    },
    rust_connection::RustConnection,
    wrapper::ConnectionExt as _,
};

/// Of a picture that has opacity.
const DEPTH: u8 = 32;
/// Bytes of a picture in one request, which every server takes.
const MAX_PIECE: usize = 1 << 17;
const TITLE: &[u8] = b"Apoidea";
/// Flags and values of WM_HINTS that say: no input.
const NO_INPUT: [u32; 9] = [1, 0, 0, 0, 0, 0, 0, 0, 0];

/// What happened to the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Happening {
    /// What was drawn is lost.
    Exposed,
    /// The mouse was moved to there.
    Pointed(i16, i16),
    /// The mouse was pressed.
    Clicked,
}

/// The window.
pub struct Stage {
    connection: RustConnection,
    window: Window,
    picture: Picture,
    opaque: Pictformat,
    /// The sheet of cells, once there is one.
    sheet: Option<(Picture, Sprites)>,
    /// All of it.
    area: Area,
    /// The monitor to look at.
    monitor: Area,
}

impl Stage {
    /// Opens it over the whole screen, or in a window of somebody else.
    pub fn open(canvas: Option<Canvas>) -> anyhow::Result<Self> {
        let (connection, number) = x11rb::connect(None).context("there is no X server")?;
        let screen = connection.setup().roots[number].clone();
        let parent = canvas.map_or(screen.root, |canvas| canvas.0);
        let room = connection
            .get_geometry(parent)?
            .reply()
            .context("there is no such window to draw in")?;
        let visual = connection.get_window_attributes(parent)?.reply()?.visual;
        let formats = connection
            .render_query_pict_formats()?
            .reply()
            .context("this X server cannot blend")?;
        let visuals = formats
            .screens
            .iter()
            .flat_map(|screen| &screen.depths)
            .flat_map(|depth| &depth.visuals);
        let shown = visuals
            .into_iter()
            .find(|known| known.visual == visual)
            .context("an unknown visual")?
            .format;
        let opaque = formats.formats.iter().find(|format| {
            let shifts = (
                format.direct.red_shift,
                format.direct.green_shift,
                format.direct.blue_shift,
            );
            format.type_ == PictType::DIRECT
                && format.depth == DEPTH
                && format.direct.alpha_mask == 0xff
                && shifts == (16, 8, 0)
        });
        let opaque = opaque.context("this X server knows no opacity")?.id;
        let area = Area {
            x: 0,
            y: 0,
            width: room.width,
            height: room.height,
        };
        let monitor = if canvas.is_some() {
            area
        } else {
            primary(&connection, &screen).unwrap_or(area)
        };
        let window = create_window(&connection, &screen, parent, area)?;
        let picture = connection.generate_id()?;
        connection
            .render_create_picture(picture, window, shown, &CreatePictureAux::new())?
            .check()?;
        Ok(Stage {
            connection,
            window,
            picture,
            opaque,
            sheet: None,
            area,
            monitor,
        })
    }

    /// All of the window.
    pub fn area(&self) -> Area {
        self.area
    }

    /// The monitor that is looked at first.
    pub fn monitor(&self) -> Area {
        self.monitor
    }

    /// Gives the server the cells.
    pub fn take(&mut self, sprites: Sprites) -> anyhow::Result<()> {
        let sheet = self.upload(&sprites.sheet)?;
        self.sheet = Some((sheet, sprites));
        Ok(())
    }

    /// Shows the window.
    pub fn show(&self) -> anyhow::Result<()> {
        self.connection.map_window(self.window)?;
        let above = ConfigureWindowAux::new().stack_mode(StackMode::ABOVE);
        self.connection.configure_window(self.window, &above)?;
        self.connection.flush()?;
        Ok(())
    }

    /// Draws cells.
    pub fn stamp(&self, stamps: &[Stamp]) -> anyhow::Result<()> {
        let Some((sheet, sprites)) = &self.sheet else {
            return Ok(());
        };
        let (width, height) = (sprites.width, sprites.height);
        for stamp in stamps {
            let (from_x, from_y) = sprites.place_of(stamp);
            let (x, y) = (stamp.x - width as i16 / 2, stamp.y - height as i16 / 2);
            let (over, nothing) = (PictOp::OVER, NONE);
            self.connection.render_composite(
                over,
                *sheet,
                nothing,
                self.picture,
                from_x,
                from_y,
                0,
                0,
                x,
                y,
                width,
                height,
            )?;
        }
        Ok(())
    }

    /// Draws the night.
    pub fn darken(
        &self,
        Area {
            x,
            y,
            width,
            height,
        }: Area,
    ) -> anyhow::Result<()> {
        let part = Rectangle {
            x,
            y,
            width,
            height,
        };
        self.connection
            .render_fill_rectangles(PictOp::SRC, self.picture, night(), &[part])?;
        Ok(())
    }

    /// Draws a picture.
    pub fn draw(&self, image: &Image, area: Area) -> anyhow::Result<()> {
        let plate = self.upload(image)?;
        let (width, height) = (image.width, image.height);
        let (src, nothing) = (PictOp::SRC, NONE);
        self.connection.render_composite(
            src,
            plate,
            nothing,
            self.picture,
            0,
            0,
            0,
            0,
            area.x,
            area.y,
            width,
            height,
        )?;
        self.connection.render_free_picture(plate)?;
        Ok(())
    }

    /// Lets the server have what was drawn.
    pub fn flush(&self) -> anyhow::Result<()> {
        Ok(self.connection.flush()?)
    }

    /// What has happened to the window meanwhile.
    pub fn happenings(&self) -> anyhow::Result<Vec<Happening>> {
        let mut all = Vec::new();
        while let Some(event) = self.connection.poll_for_event()? {
            match event {
                Event::Expose(event) if event.count == 0 => all.push(Happening::Exposed),
                Event::MotionNotify(event) => {
                    all.push(Happening::Pointed(event.root_x, event.root_y))
                }
                Event::ButtonPress(_) => all.push(Happening::Clicked),
                Event::Error(error) => anyhow::bail!("the X server says {error:?}"),
                Event::DestroyNotify(_) => anyhow::bail!("the window is gone"),
                _ => {}
            }
        }
        Ok(all)
    }

    fn upload(&self, image: &Image) -> anyhow::Result<Picture> {
        let (pixmap, pen, picture) = (
            self.connection.generate_id()?,
            self.connection.generate_id()?,
            self.connection.generate_id()?,
        );
        self.connection
            .create_pixmap(DEPTH, pixmap, self.window, image.width, image.height)?;
        self.connection
            .create_gc(pen, pixmap, &CreateGCAux::new())?;
        for (first, lines, bytes) in image.pieces(MAX_PIECE) {
            let format = ImageFormat::Z_PIXMAP;
            self.connection.put_image(
                format,
                pixmap,
                pen,
                image.width,
                lines,
                0,
                first as i16,
                0,
                DEPTH,
                bytes,
            )?;
        }
        self.connection.render_create_picture(
            picture,
            pixmap,
            self.opaque,
            &CreatePictureAux::new(),
        )?;
        // The picture keeps what it is made of.
        self.connection.free_gc(pen)?;
        self.connection.free_pixmap(pixmap)?;
        Ok(picture)
    }
}

fn night() -> Color {
    let of = |share: f64| (share * f64::from(u16::MAX)) as u16;
    Color {
        red: of(NIGHT.0),
        green: of(NIGHT.1),
        blue: of(NIGHT.2),
        alpha: u16::MAX,
    }
}

/// The monitor that the volunteer calls the first.
fn primary(connection: &RustConnection, screen: &Screen) -> Option<Area> {
    let monitors = connection
        .randr_get_monitors(screen.root, true)
        .ok()?
        .reply()
        .ok()?
        .monitors;
    let first = monitors
        .iter()
        .find(|monitor| monitor.primary)
        .or(monitors.first())?;
    Some(Area {
        x: first.x,
        y: first.y,
        width: first.width,
        height: first.height,
    })
}

fn create_window(
    connection: &RustConnection,
    screen: &Screen,
    parent: Window,
    area: Area,
) -> anyhow::Result<Window> {
    let window = connection.generate_id()?;
    let night = [NIGHT.0, NIGHT.1, NIGHT.2]
        .iter()
        .fold(0, |all, part| all << 8 | (part * 255.0).round() as u32);
    let is_alone = parent == screen.root;
    let mut listening = EventMask::EXPOSURE | EventMask::STRUCTURE_NOTIFY;
    if is_alone {
        listening |= EventMask::POINTER_MOTION | EventMask::BUTTON_PRESS;
    }
    let look = CreateWindowAux::new()
        .background_pixel(night)
        .override_redirect(u32::from(is_alone))
        .cursor(no_cursor(connection, screen.root)?)
        .event_mask(listening);
    let (class, depth) = (WindowClass::INPUT_OUTPUT, COPY_DEPTH_FROM_PARENT);
    connection
        .create_window(
            depth,
            window,
            parent,
            0,
            0,
            area.width,
            area.height,
            0,
            class,
            0,
            &look,
        )?
        .check()
        .context("no window can be opened there")?;
    let (replace, kind) = (PropMode::REPLACE, AtomEnum::ATOM);
    connection.change_property8(replace, window, AtomEnum::WM_NAME, AtomEnum::STRING, TITLE)?;
    connection.change_property32(
        replace,
        window,
        AtomEnum::WM_HINTS,
        AtomEnum::WM_HINTS,
        &NO_INPUT,
    )?;
    // Those who give the focus to windows of their own choice give none to this kind.
    let name = connection.intern_atom(false, b"_NET_WM_WINDOW_TYPE")?;
    let value = connection.intern_atom(false, b"_NET_WM_WINDOW_TYPE_NOTIFICATION")?;
    connection.change_property32(
        replace,
        window,
        name.reply()?.atom,
        kind,
        &[value.reply()?.atom],
    )?;
    Ok(window)
}

/// A cursor that is not seen.
fn no_cursor(connection: &RustConnection, root: Window) -> anyhow::Result<u32> {
    let (shape, cursor) = (connection.generate_id()?, connection.generate_id()?);
    connection.create_pixmap(1, shape, root, 1, 1)?;
    let pen = connection.generate_id()?;
    connection.create_gc(pen, shape, &CreateGCAux::new().foreground(0))?;
    let all = Rectangle {
        x: 0,
        y: 0,
        width: 1,
        height: 1,
    };
    connection.poly_fill_rectangle(shape, pen, &[all])?;
    connection.create_cursor(cursor, shape, shape, 0, 0, 0, 0, 0, 0, 0, 0)?;
    connection.free_gc(pen)?;
    connection.free_pixmap(shape)?;
    Ok(cursor)
}
