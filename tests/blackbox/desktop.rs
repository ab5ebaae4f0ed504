//! Desktops for tests: a real X server without a screen, a bus with a Mutter, a UPower and a
//! NetworkManager on it, and a compositor that knows nothing but seats and idle time.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use wayland_protocols::ext::idle_notify::v1::server::{
    ext_idle_notification_v1::ExtIdleNotificationV1,
    ext_idle_notifier_v1::{self, ExtIdleNotifierV1},
};
use wayland_server::{
    Client, DataInit, Dispatch, Display as WaylandDisplay, DisplayHandle, GlobalDispatch,
    ListeningSocket, New, Resource, protocol::wl_seat,
};

/// A child that ends with the test.
struct Kept(Child);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program and reads the first line that it says.
fn start(command: &mut Command) -> (Kept, String) {
    let mut child = Kept(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let mut line = String::new();
    BufReader::new(child.0.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(!line.trim().is_empty(), "{command:?} says nothing");
    (child, line.trim().to_owned())
}

/// An X server without a screen.
pub struct Display {
    name: String,
    _server: Kept,
    moves: AtomicU32,
}

impl Display {
    pub async fn start() -> Self {
        let mut command = Command::new("Xvfb");
        command.args([
            "-displayfd",
            "1",
            "-screen",
            "0",
            "640x480x24",
            "-nolisten",
            "tcp",
        ]);
        let (server, number) = tokio::task::spawn_blocking(move || start(&mut command))
            .await
            .unwrap();
        Display {
            name: format!(":{number}"),
            _server: server,
            moves: AtomicU32::new(0),
        }
    }

    /// Such as `:7`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Moves the mouse to somewhere else.
    pub fn move_mouse(&self) {
        let x = 10 + self.moves.fetch_add(1, Relaxed) % 500;
        let mut command = Command::new("xdotool");
        let moved = command
            .args(["mousemove", &x.to_string(), "50"])
            .env("DISPLAY", &self.name)
            .status();
        assert!(moved.unwrap().success());
    }
}

/// A message bus of its own, with services on it.
pub struct Bus {
    address: String,
    _daemon: Kept,
    _services: zbus::Connection,
    last_input: Arc<Mutex<Instant>>,
    battery: Arc<Mutex<Option<u8>>>,
    metered: Arc<AtomicBool>,
}

struct IdleMonitor(Arc<Mutex<Instant>>);

#[zbus::interface(name = "org.gnome.Mutter.IdleMonitor")]
impl IdleMonitor {
    #[zbus(name = "GetIdletime")]
    fn idle_time(&self) -> u64 {
        self.0.lock().unwrap().elapsed().as_millis() as u64
    }
}

struct Power(Arc<Mutex<Option<u8>>>);

#[zbus::interface(name = "org.freedesktop.UPower")]
impl Power {
    #[zbus(property)]
    fn on_battery(&self) -> bool {
        self.0.lock().unwrap().is_some()
    }
}

struct Battery(Arc<Mutex<Option<u8>>>);

#[zbus::interface(name = "org.freedesktop.UPower.Device")]
impl Battery {
    #[zbus(property)]
    fn percentage(&self) -> f64 {
        f64::from(self.0.lock().unwrap().unwrap_or(100))
    }
}

struct Network(Arc<AtomicBool>);

#[zbus::interface(name = "org.freedesktop.NetworkManager")]
impl Network {
    #[zbus(property)]
    fn metered(&self) -> u32 {
        if self.0.load(Relaxed) { 1 } else { 4 }
    }
}

impl Bus {
    pub async fn start() -> Self {
        let mut command = Command::new("dbus-daemon");
        command.args(["--session", "--nofork", "--print-address=1"]);
        let (daemon, address) = tokio::task::spawn_blocking(move || start(&mut command))
            .await
            .unwrap();
        let last_input = Arc::new(Mutex::new(Instant::now()));
        let (battery, metered) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let services = zbus::connection::Builder::address(address.as_str()).unwrap();
        let services = services
            .name("org.gnome.Mutter.IdleMonitor")
            .unwrap()
            .name("org.freedesktop.UPower")
            .unwrap()
            .name("org.freedesktop.NetworkManager")
            .unwrap()
            .serve_at(
                "/org/gnome/Mutter/IdleMonitor/Core",
                IdleMonitor(last_input.clone()),
            )
            .unwrap()
            .serve_at("/org/freedesktop/UPower", Power(battery.clone()))
            .unwrap()
            .serve_at(
                "/org/freedesktop/UPower/devices/DisplayDevice",
                Battery(battery.clone()),
            )
            .unwrap()
            .serve_at("/org/freedesktop/NetworkManager", Network(metered.clone()))
            .unwrap();
        let services = services.build().await.unwrap();
        Bus {
            address,
            _daemon: daemon,
            _services: services,
            last_input,
            battery,
            metered,
        }
    }

    /// Where it listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// A key or a mouse move.
    pub fn input(&self) {
        *self.last_input.lock().unwrap() = Instant::now();
    }

    /// Pulls the plug, at so many percent, or puts it back.
    pub fn set_battery(&self, percent: Option<u8>) {
        *self.battery.lock().unwrap() = percent;
    }

    /// Changes what the connection costs.
    pub fn set_metered(&self, is_metered: bool) {
        self.metered.store(is_metered, Relaxed);
    }
}

/// A Wayland compositor without anything to see.
pub struct Compositor {
    folder: TempDir,
    last_input: Arc<Mutex<Instant>>,
    is_over: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What the compositor knows: who wants to be told after how long, and whether they were.
#[derive(Default)]
struct Notifications(Vec<(ExtIdleNotificationV1, Duration, bool)>);

impl Compositor {
    const NAME: &str = "wayland-test";

    pub fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = ListeningSocket::bind_absolute(folder.path().join(Self::NAME)).unwrap();
        let last_input = Arc::new(Mutex::new(Instant::now()));
        let is_over = Arc::new(AtomicBool::new(false));
        let (input, over) = (last_input.clone(), is_over.clone());
        let thread = thread::spawn(move || serve(&socket, &input, &over));
        Compositor {
            folder,
            last_input,
            is_over,
            thread: Some(thread),
        }
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The name of its socket.
    pub fn name(&self) -> PathBuf {
        PathBuf::from(Self::NAME)
    }

    /// A key or a mouse move.
    pub fn input(&self) {
        *self.last_input.lock().unwrap() = Instant::now();
    }
}

impl Drop for Compositor {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

fn serve(socket: &ListeningSocket, last_input: &Mutex<Instant>, is_over: &AtomicBool) {
    let mut display = WaylandDisplay::<Notifications>::new().unwrap();
    let mut handle = display.handle();
    handle.create_global::<Notifications, wl_seat::WlSeat, ()>(1, ());
    handle.create_global::<Notifications, ExtIdleNotifierV1, ()>(1, ());
    let mut notifications = Notifications::default();
    while !is_over.load(Relaxed) {
        if let Some(stream) = socket.accept().unwrap() {
            handle.insert_client(stream, Arc::new(())).unwrap();
        }
        display.dispatch_clients(&mut notifications).unwrap();
        let idle = last_input.lock().unwrap().elapsed();
        for (notification, span, is_told) in &mut notifications.0 {
            match (idle >= *span, *is_told) {
                (true, false) => notification.idled(),
                (false, true) => notification.resumed(),
                _ => continue,
            }
            *is_told = !*is_told;
        }
        notifications
            .0
            .retain(|(notification, ..)| notification.is_alive());
        display.flush_clients().unwrap();
        thread::sleep(Duration::from_millis(10));
    }
}

impl GlobalDispatch<wl_seat::WlSeat, ()> for Notifications {
    fn bind(
        _: &mut Self,
        _: &DisplayHandle,
        _: &Client,
        seat: New<wl_seat::WlSeat>,
        (): &(),
        data: &mut DataInit<'_, Self>,
    ) {
        data.init(seat, ())
            .capabilities(wl_seat::Capability::empty());
    }
}

impl GlobalDispatch<ExtIdleNotifierV1, ()> for Notifications {
    fn bind(
        _: &mut Self,
        _: &DisplayHandle,
        _: &Client,
        notifier: New<ExtIdleNotifierV1>,
        (): &(),
        data: &mut DataInit<'_, Self>,
    ) {
        data.init(notifier, ());
    }
}

impl Dispatch<wl_seat::WlSeat, ()> for Notifications {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &wl_seat::WlSeat,
        _: wl_seat::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}

impl Dispatch<ExtIdleNotifierV1, ()> for Notifications {
    fn request(
        notifications: &mut Self,
        _: &Client,
        _: &ExtIdleNotifierV1,
        request: ext_idle_notifier_v1::Request,
        (): &(),
        _: &DisplayHandle,
        data: &mut DataInit<'_, Self>,
    ) {
        if let ext_idle_notifier_v1::Request::GetIdleNotification { id, timeout, .. } = request {
            let span = Duration::from_millis(u64::from(timeout));
            notifications.0.push((data.init(id, ()), span, false));
        }
    }
}

impl Dispatch<ExtIdleNotificationV1, ()> for Notifications {
    fn request(
        _: &mut Self,
        _: &Client,
        _: &ExtIdleNotificationV1,
        _: <ExtIdleNotificationV1 as Resource>::Request,
        (): &(),
        _: &DisplayHandle,
        _: &mut DataInit<'_, Self>,
    ) {
    }
}
