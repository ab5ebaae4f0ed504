//! Draws what `menu` says into the system's tray.
//!
//! A menu that is open stays open while words and check marks change: they are changed in place,
//! and only a menu of other lines is built anew.

use crate::{
    menu::{self, Entry, Face, View},
    tooltip,
};
use apoidea_governor::Switch;
use std::sync::{Mutex, PoisonError};
use tauri::{
    AppHandle, Wry,
    image::Image,
    menu::{
        CheckMenuItem, CheckMenuItemBuilder, IsMenuItem, Menu, MenuBuilder, MenuItem,
        MenuItemBuilder, PredefinedMenuItem, Submenu, SubmenuBuilder,
    },
    tray::{TrayIcon, TrayIconBuilder},
};

/// The icon in the tray, and what it shows now.
pub struct Tray {
    icon: TrayIcon,
    drawn: Mutex<Drawn>,
}

/// What the tray shows now, and the lines that can be changed.
struct Drawn {
    shown: Shown,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    entries: Vec<Entry>,
    face: Face,
    tooltip: String,
}

impl Shown {
    fn of(view: &View) -> Self {
        Shown {
            entries: menu::menu(view),
            face: menu::face(view),
            tooltip: menu::tooltip(view),
        }
    }
}

impl Tray {
    /// Puts the icon into the tray.
    pub fn new(app: &AppHandle, view: &View, chosen: fn(&AppHandle, &str)) -> tauri::Result<Self> {
        let shown = Shown::of(view);
        let lines = lines(app, &shown.entries)?;
        let icon = TrayIconBuilder::with_id("apoidea")
            .icon(picture(shown.face)?)
            .menu(&menu_of(app, &lines)?)
            .on_menu_event(move |app, event| chosen(app, event.id().as_ref()))
            .build(app)?;
        tooltip::show(&icon, "", &shown.tooltip)?;
        Ok(Tray {
            icon,
            drawn: Mutex::new(Drawn { shown, lines }),
        })
    }

    /// Shows how things stand now; what did not change is not touched.
    pub fn show(&self, app: &AppHandle, view: &View) -> tauri::Result<()> {
        let next = Shown::of(view);
        let mut drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        if next.face != drawn.shown.face {
            self.icon.set_icon(Some(picture(next.face)?))?;
        }
        tooltip::show(&self.icon, &drawn.shown.tooltip, &next.tooltip)?;
        if menu::are_alike(&drawn.shown.entries, &next.entries) {
            change(&drawn.lines, &drawn.shown.entries, &next.entries)?;
        } else {
            drawn.lines = lines(app, &next.entries)?;
            self.icon.set_menu(Some(menu_of(app, &drawn.lines)?))?;
        }
        drawn.shown = next;
        Ok(())
    }

    /// Sets every check mark as it should be, since the system changes the one that is chosen by
    /// itself.
    pub fn put_checks_right(&self) -> tauri::Result<()> {
        let drawn = self.drawn.lock().unwrap_or_else(PoisonError::into_inner);
        put_right(&drawn.lines, &drawn.shown.entries)
    }
}

/// A line as the system has it.
enum Line {
    Words(MenuItem<Wry>),
    Check(CheckMenuItem<Wry>),
    Rule(PredefinedMenuItem<Wry>),
    Submenu(Submenu<Wry>, Vec<Line>),
}

impl Line {
    fn as_item(&self) -> &dyn IsMenuItem<Wry> {
        match self {
            Line::Words(item) => item,
            Line::Check(item) => item,
            Line::Rule(item) => item,
            Line::Submenu(item, _) => item,
        }
    }
}

fn picture(face: Face) -> tauri::Result<Image<'static>> {
    Image::from_bytes(match face {
        Face::Crawling => include_bytes!("../../assets/tray/crawling.png"),
        Face::Paused => include_bytes!("../../assets/tray/paused.png"),
        Face::Offline => include_bytes!("../../assets/tray/offline.png"),
        Face::Attention => include_bytes!("../../assets/tray/attention.png"),
    })
}

fn menu_of(app: &AppHandle, lines: &[Line]) -> tauri::Result<Menu<Wry>> {
    let items: Vec<_> = lines.iter().map(Line::as_item).collect();
    MenuBuilder::new(app).items(&items).build()
}

fn lines(app: &AppHandle, entries: &[Entry]) -> tauri::Result<Vec<Line>> {
    entries.iter().map(|entry| line(app, entry)).collect()
}

fn line(app: &AppHandle, entry: &Entry) -> tauri::Result<Line> {
    Ok(match entry {
        Entry::Words(text) => Line::Words(MenuItemBuilder::new(text).enabled(false).build(app)?),
        Entry::Choice(text, order) => {
            Line::Words(MenuItemBuilder::with_id(order.to_string(), text).build(app)?)
        }
        Entry::Check(text, order, switch) => {
            let builder = CheckMenuItemBuilder::with_id(order.to_string(), text);
            Line::Check(builder.checked(*switch == Switch::On).build(app)?)
        }
        Entry::Separator => Line::Rule(PredefinedMenuItem::separator(app)?),
        Entry::Submenu(text, entries) => {
            let lines = lines(app, entries)?;
            let items: Vec<_> = lines.iter().map(Line::as_item).collect();
            Line::Submenu(SubmenuBuilder::new(app, text).items(&items).build()?, lines)
        }
    })
}

/// Makes the lines of one menu those of another that is alike.
fn change(lines: &[Line], before: &[Entry], after: &[Entry]) -> tauri::Result<()> {
    for (line, (before, after)) in lines.iter().zip(before.iter().zip(after)) {
        match (line, before, after) {
            _ if before == after => {}
            (Line::Words(item), _, Entry::Words(text) | Entry::Choice(text, _)) => {
                item.set_text(text)?
            }
            (Line::Check(item), _, Entry::Check(text, _, switch)) => {
                item.set_text(text)?;
                item.set_checked(*switch == Switch::On)?;
            }
            (Line::Submenu(_, lines), Entry::Submenu(_, before), Entry::Submenu(_, after)) => {
                change(lines, before, after)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn put_right(lines: &[Line], entries: &[Entry]) -> tauri::Result<()> {
    for (line, entry) in lines.iter().zip(entries) {
        match (line, entry) {
            (Line::Check(item), Entry::Check(_, _, switch)) => {
                item.set_checked(*switch == Switch::On)?
            }
            (Line::Submenu(_, lines), Entry::Submenu(_, entries)) => put_right(lines, entries)?,
            _ => {}
        }
    }
    Ok(())
}
