//! The app: one instance, a tray, a peer. Carries out what is chosen and shows how things stand.

use crate::{
    engine::{self, Engine},
    launch::{Launch, Place, Purpose},
    log_file,
    menu::{Leaving, Switch, View},
    order::Order,
    switches::Switches,
    tray::Tray,
    update,
    window::{self, Kind},
};
use anyhow::Context;
use apoidea_governor::Preferences;
use apoidea_peer::{State, Status};
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tauri::{AppHandle, Manager, RunEvent};
use tauri_plugin_autostart::ManagerExt;
use tauri_plugin_notification::NotificationExt;
use tauri_plugin_opener::OpenerExt;

/// The network and the pages share two threads: a volunteer's computer has other things to do.
const WORKER_THREADS: usize = 2;

/// What the app knows.
struct Desktop {
    view: Mutex<View>,
    /// Once the peer has started.
    engine: OnceLock<Arc<Engine>>,
    tray: OnceLock<Tray>,
    switches: Switches,
    folder: PathBuf,
    /// Runs once, as a screensaver of the system does.
    purpose: Purpose,
}

impl Desktop {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the app until it is quit.
pub fn run(launch: Launch) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(WORKER_THREADS).enable_all().build()?;
    tauri::async_runtime::set(runtime.handle().clone());
    let folder = engine::data_folder(&launch.place)?;
    log_file::start(&engine::log_folder(&folder))?;
    let switches = Switches::of(&folder);
    let view = View {
        status: None,
        preferences: Preferences::default(),
        crash: None,
        start_at_login: Switch::Off,
        notifications: switches.notifications(),
        updates: update::is_ours().then(|| switches.updates()),
        leaving: Leaving::No,
    };
    let Launch { purpose, place } = launch;
    let (engine, tray) = (OnceLock::new(), OnceLock::new());
    let desktop = Desktop { view: Mutex::new(view), engine, tray, switches, folder, purpose };
    let app = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, words, _| second_start(app, words)))
        .plugin(tauri_plugin_autostart::Builder::new().arg("--hidden").app_name("Apoidea").build())
        .plugin(tauri_plugin_notification::init())
        .plugin(tauri_plugin_opener::init())
        .plugin(update::plugin(update::RELEASE_KEY.unwrap_or_default()))
        .manage(desktop)
        .setup(move |app| Ok(set_up(app.handle(), place)?))
        .build(tauri::generate_context!())
        .context("this desktop cannot show the app; `apoidea run` is the same peer without it")?;
    app.run(|_, event| {
        // The tray stays when the last window closes.
        if let RunEvent::ExitRequested { api, code: None, .. } = event {
            api.prevent_exit();
        }
    });
    Ok(())
}

fn set_up(app: &AppHandle, place: Place) -> tauri::Result<()> {
    let desktop = app.state::<Desktop>();
    desktop.view().start_at_login = start_at_login(app);
    let tray = Tray::new(app, &desktop.view().clone(), chosen)?;
    let _ = desktop.tray.set(tray);
    if update::is_ours() {
        tauri::async_runtime::spawn(keep_up_to_date(app.clone()));
    }
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        match Engine::start(&place).await {
            Ok(engine) => live(&app, Arc::new(engine)).await,
            Err(error) => crashed(&app, format!("{error:#}")),
        }
    });
    Ok(())
}

/// Somebody started the app again: that is a wish to see it.
fn second_start(app: &AppHandle, words: Vec<String>) {
    match Launch::parse(words).map(|launch| launch.purpose) {
        Ok(Purpose::Screensaver) => obey(app, Order::Screensaver),
        Ok(Purpose::StayInTray | Purpose::Preview) => {}
        _ => obey(app, Order::Dashboard),
    }
}

/// Follows the peer until it ends.
async fn live(app: &AppHandle, engine: Arc<Engine>) {
    let desktop = app.state::<Desktop>();
    let _ = desktop.engine.set(engine.clone());
    let mut statuses = engine.handle().watch_status();
    first_window(app, &engine).await;
    loop {
        let status = statuses.borrow_and_update().clone();
        let preferences = engine.api().preferences().await.ok();
        show_status(app, &engine, status, preferences);
        if statuses.changed().await.is_err() {
            break;
        }
    }
    if desktop.view().leaving == Leaving::No {
        crashed(app, "the peer ended by itself; the log says more".to_owned());
    }
}

async fn first_window(app: &AppHandle, engine: &Engine) {
    match app.state::<Desktop>().purpose {
        Purpose::Screensaver => show(app, Kind::Screensaver, "screensaver").await,
        Purpose::Configure => show(app, Kind::Dashboard, "settings").await,
        _ if !engine.is_welcomed() => show(app, Kind::Dashboard, "welcome").await,
        Purpose::Open => show(app, Kind::Dashboard, "overview").await,
        Purpose::StayInTray | Purpose::Preview => {}
    }
}

fn show_status(app: &AppHandle, engine: &Engine, status: Status, preferences: Option<Preferences>) {
    if !engine.is_welcomed() && !matches!(status.state, State::Paused | State::Stopping) {
        engine.welcome();
    }
    let desktop = app.state::<Desktop>();
    let mut view = desktop.view();
    let before = view.status.as_ref().and_then(|status| status.attention.clone());
    if let Some(trouble) = status.attention.as_ref().filter(|now| before.as_ref() != Some(*now)) {
        notify(app, &view, trouble);
    }
    if let Some(preferences) = preferences {
        view.preferences = preferences;
    }
    view.status = Some(status.into());
    drop(view);
    redraw(app);
}

fn crashed(app: &AppHandle, why: String) {
    tracing::error!(why, "the peer does not run");
    let desktop = app.state::<Desktop>();
    let mut view = desktop.view();
    notify(app, &view, &why);
    view.crash = Some(why);
    drop(view);
    redraw(app);
}

fn notify(app: &AppHandle, view: &View, text: &str) {
    if view.notifications == Switch::On {
        let _ = app.notification().builder().title("Apoidea").body(text).show();
    }
}

fn redraw(app: &AppHandle) {
    let desktop = app.state::<Desktop>();
    let view = desktop.view().clone();
    if let Some(tray) = desktop.tray.get()
        && let Err(error) = tray.show(app, &view)
    {
        tracing::warn!(%error, "the tray was not drawn");
    }
}

fn chosen(app: &AppHandle, name: &str) {
    match name.parse() {
        Ok(order) => obey(app, order),
        Err(error) => tracing::warn!(%error, "nothing was done"),
    }
}

/// Carries out what was chosen, without making the menu wait.
fn obey(app: &AppHandle, order: Order) {
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(error) = carry_out(&app, order).await {
            tracing::warn!(%order, "could not be done: {error:#}");
            let view = app.state::<Desktop>().view().clone();
            notify(&app, &view, &format!("{error:#}"));
        }
        // A check mark that the menu drew by itself is put right.
        redraw(&app);
    });
}

async fn carry_out(app: &AppHandle, order: Order) -> anyhow::Result<()> {
    let desktop = app.state::<Desktop>();
    match order {
        Order::Dashboard => show(app, Kind::Dashboard, "overview").await,
        Order::About => show(app, Kind::Dashboard, "about").await,
        Order::Screensaver => show(app, Kind::Screensaver, "screensaver").await,
        Order::StartAtLogin => toggle_start_at_login(app)?,
        Order::Notifications => {
            let next = opposite(desktop.view().notifications);
            desktop.switches.set_notifications(next)?;
            desktop.view().notifications = next;
        }
        Order::Updates => {
            let next = opposite(desktop.switches.updates());
            desktop.switches.set_updates(next)?;
            desktop.view().updates = Some(next);
        }
        Order::Restart => app.restart(),
        Order::Log => {
            let folder = engine::log_folder(&desktop.folder);
            app.opener().open_path(folder.display().to_string(), None::<&str>)?;
        }
        Order::Quit => quit(app).await,
        order => order_peer(desktop.engine.get().context("the peer does not run")?, order).await?,
    }
    Ok(())
}

async fn order_peer(engine: &Engine, order: Order) -> anyhow::Result<()> {
    let api = engine.api();
    match order {
        Order::Pause => api.pause().await,
        Order::Resume => api.resume().await,
        Order::Snooze(length) => api.snooze(length.into()).await,
        order => api.prefer(order.as_change().context("that is nothing for the peer")?).await,
    }
}

async fn show(app: &AppHandle, kind: Kind, page: &'static str) {
    if window::raise(app, kind, page) {
        return;
    }
    let Some(engine) = app.state::<Desktop>().engine.get().cloned() else { return };
    let Some(link) = engine.link(page).await else { return };
    let handle = app.clone();
    let opened = app.run_on_main_thread(move || {
        if let Err(error) = window::open(&handle, kind, &link) {
            tracing::error!("{error:#}");
        }
    });
    if let Err(error) = opened {
        tracing::error!(%error, "no window was opened");
    }
}

async fn quit(app: &AppHandle) {
    let desktop = app.state::<Desktop>();
    desktop.view().leaving = Leaving::Now;
    redraw(app);
    if let Some(engine) = desktop.engine.get() {
        engine.leave().await;
    }
    app.exit(0);
}

/// Looks for a newer version once a day, and becomes it.
async fn keep_up_to_date(app: AppHandle) {
    tokio::time::sleep(update::FIRST_LOOK_AFTER).await;
    loop {
        if app.state::<Desktop>().switches.updates() == Switch::On
            && let Err(error) = become_newer(&app).await
        {
            tracing::warn!("no update was installed: {error:#}");
        }
        tokio::time::sleep(update::LOOK_EVERY).await;
    }
}

async fn become_newer(app: &AppHandle) -> anyhow::Result<()> {
    let Some(update) = update::newer(app).await? else { return Ok(()) };
    tracing::info!(version = update.version(), "an update is installed");
    let desktop = app.state::<Desktop>();
    desktop.view().leaving = Leaving::Now;
    redraw(app);
    if let Some(engine) = desktop.engine.get() {
        engine.leave().await;
    }
    if let Err(error) = update.install() {
        tracing::error!("the update could not be installed: {error:#}");
    }
    // The peer has left: a new one begins, in the new version if all went well.
    app.restart()
}

fn start_at_login(app: &AppHandle) -> Switch {
    if app.autolaunch().is_enabled().unwrap_or(false) { Switch::On } else { Switch::Off }
}

fn toggle_start_at_login(app: &AppHandle) -> anyhow::Result<()> {
    match opposite(start_at_login(app)) {
        Switch::On => app.autolaunch().enable()?,
        Switch::Off => app.autolaunch().disable()?,
    }
    app.state::<Desktop>().view().start_at_login = start_at_login(app);
    Ok(())
}

fn opposite(switch: Switch) -> Switch {
    match switch {
        Switch::On => Switch::Off,
        Switch::Off => Switch::On,
    }
}
