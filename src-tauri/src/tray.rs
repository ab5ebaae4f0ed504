//! Draws what `menu` says into the system's tray.

use crate::menu::{self, Entry, Face, Switch, View};
use std::sync::{Mutex, PoisonError};
use tauri::{
    AppHandle, Wry,
    image::Image,
    menu::{
        CheckMenuItemBuilder, IsMenuItem, Menu, MenuBuilder, MenuItemBuilder, PredefinedMenuItem,
        SubmenuBuilder,
    },
    tray::{TrayIcon, TrayIconBuilder},
};

/// The icon in the tray, and what it shows now.
pub struct Tray {
    icon: TrayIcon,
    shown: Mutex<Shown>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Shown {
    entries: Vec<Entry>,
    face: Face,
    tooltip: String,
}

impl Shown {
    fn of(view: &View) -> Self {
        Shown { entries: menu::menu(view), face: menu::face(view), tooltip: menu::tooltip(view) }
    }
}

impl Tray {
    /// Puts the icon into the tray.
    pub fn new(app: &AppHandle, view: &View, chosen: fn(&AppHandle, &str)) -> tauri::Result<Self> {
        let shown = Shown::of(view);
        let icon = TrayIconBuilder::with_id("apoidea")
            .icon(picture(shown.face)?)
            .tooltip(&shown.tooltip)
            .menu(&build(app, &shown.entries)?)
            .on_menu_event(move |app, event| chosen(app, event.id().as_ref()))
            .build(app)?;
        Ok(Tray { icon, shown: Mutex::new(shown) })
    }

    /// Shows how things stand now; what did not change is not drawn again, so that an open menu stays open.
    pub fn show(&self, app: &AppHandle, view: &View) -> tauri::Result<()> {
        let next = Shown::of(view);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if next.face != shown.face {
            self.icon.set_icon(Some(picture(next.face)?))?;
        }
        if next.tooltip != shown.tooltip {
            self.icon.set_tooltip(Some(&next.tooltip))?;
        }
        if next.entries != shown.entries {
            self.icon.set_menu(Some(build(app, &next.entries)?))?;
        }
        *shown = next;
        Ok(())
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

fn build(app: &AppHandle, entries: &[Entry]) -> tauri::Result<Menu<Wry>> {
    let mut builder = MenuBuilder::new(app);
    for entry in entries {
        builder = builder.item(item(app, entry)?.as_ref());
    }
    builder.build()
}

fn item(app: &AppHandle, entry: &Entry) -> tauri::Result<Box<dyn IsMenuItem<Wry>>> {
    Ok(match entry {
        Entry::Words(text) => Box::new(MenuItemBuilder::new(text).enabled(false).build(app)?),
        Entry::Choice(text, order) => Box::new(MenuItemBuilder::with_id(order.to_string(), text).build(app)?),
        Entry::Check(text, order, switch) => Box::new(
            CheckMenuItemBuilder::with_id(order.to_string(), text)
                .checked(*switch == Switch::On)
                .build(app)?,
        ),
        Entry::Separator => Box::new(PredefinedMenuItem::separator(app)?),
        Entry::Submenu(text, entries) => {
            let mut builder = SubmenuBuilder::new(app, text);
            for entry in entries {
                builder = builder.item(item(app, entry)?.as_ref());
            }
            Box::new(builder.build()?)
        }
    })
}
