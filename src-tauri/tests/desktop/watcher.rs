//! A tray of the newer kind: icons come to it over the session bus, and say there what they are.

use crate::screen::{Screen, wait};
use std::sync::{Arc, Mutex};
use zbus::{
    blocking::{Connection, Proxy, connection},
    interface,
    message::Header,
};

const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const ITEM: &str = "org.kde.StatusNotifierItem";

/// Whose bus name and path the last icon has that came.
type Item = (String, String);

/// A tray on the bus that shows nothing; gone when it is dropped.
pub struct Watcher {
    bus: Connection,
    item: Arc<Mutex<Option<Item>>>,
}

impl Watcher {
    /// Puts one on a screen's bus.
    pub fn start(screen: &Screen) -> Self {
        let item = Arc::default();
        let service = Service {
            item: Arc::clone(&item),
        };
        let builder = connection::Builder::address(screen.bus()).unwrap();
        let builder = builder
            .serve_at("/StatusNotifierWatcher", service)
            .unwrap()
            .name(WATCHER)
            .unwrap();
        Watcher {
            bus: builder.build().unwrap(),
            item,
        }
    }

    /// The icon, once it has come.
    pub fn icon(&self) -> Proxy<'_> {
        let (name, path) = wait("an icon", || self.item.lock().unwrap().clone());
        let builder = zbus::blocking::proxy::Builder::new(&self.bus)
            .interface(ITEM)
            .unwrap();
        let builder = builder.destination(name).unwrap().path(path).unwrap();
        builder
            .cache_properties(zbus::proxy::CacheProperties::No)
            .build()
            .unwrap()
    }
}

struct Service {
    item: Arc<Mutex<Option<Item>>>,
}

#[interface(name = "org.kde.StatusNotifierWatcher")]
impl Service {
    fn register_status_notifier_item(&self, path: String, #[zbus(header)] header: Header<'_>) {
        *self.item.lock().unwrap() = Some((header.sender().unwrap().to_string(), path));
    }

    #[zbus(property)]
    fn is_status_notifier_host_registered(&self) -> bool {
        true
    }

    #[zbus(property)]
    fn protocol_version(&self) -> i32 {
        0
    }
}
