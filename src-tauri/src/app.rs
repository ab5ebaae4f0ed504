//! The app: one instance, a tray, a peer. Carries out what is chosen and shows how things stand.

use crate::{
    engine::{self, Engine, GONE_WITHIN},
    launch::{Launch, Place, Purpose},
    log_file, login,
    lull::Lull,
    menu::{Agreement, Leaving, View},
    order::Order,
    termination,
    tray::Tray,
    update,
    window::Kind,
    windows::Windows,
};
use anyhow::Context;
use apoidea_governor::{Preferences, Reason, Switch, startup_pages};
use apoidea_peer::{Status, WatchedChange, end_process_within, words};
use serde_json::json;
use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};
use tauri::{AppHandle, Manager, RunEvent};
use tauri_plugin_notification::NotificationExt;
use tauri_plugin_opener::OpenerExt;

/// The network and the pages share one thread, as in `apoidea run`.
const WORKER_THREADS: usize = 1;
/// By then the tray is drawn, the peer runs, and what starting took can be given back.
const STARTED_AFTER: Duration = Duration::from_secs(10);
/// Of so many changes that come at once, one is told.
const MANY_CHANGES: usize = 8;

/// What the app knows.
struct Desktop {
    view: Mutex<View>,
    /// Once the peer has started.
    engine: OnceLock<Arc<Engine>>,
    tray: OnceLock<Tray>,
    windows: Mutex<Windows>,
    folder: PathBuf,
    purpose: Purpose,
    /// An invite that was opened before the peer had started.
    invite: Mutex<Option<String>>,
}

impl Desktop {
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn invite(&self) -> MutexGuard<'_, Option<String>> {
        self.invite.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs the app until it is quit.
pub fn run(launch: Launch) -> anyhow::Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()?;
    tauri::async_runtime::set(runtime.handle().clone());
    let Launch {
        purpose,
        place,
        invite,
    } = launch;
    let folder = engine::data_folder(&place)?;
    log_file::start(&engine::log_folder(&folder))?;
    let desktop = Desktop {
        view: Mutex::new(View {
            updates_are_ours: update::is_ours(),
            ..View::starting()
        }),
        engine: OnceLock::new(),
        tray: OnceLock::new(),
        windows: Mutex::default(),
        folder,
        purpose,
        invite: Mutex::new(invite),
    };
    let app = tauri::Builder::default()
        .plugin(tauri_plugin_single_instance::init(|app, words, _| {
            second_start(app, words)
        }))
        .plugin(login::plugin())
        .plugin(tauri_plugin_notification::init())
        .plugin(tauri_plugin_opener::init())
        .plugin(update::plugin(update::RELEASE_KEY.unwrap_or_default()))
        .manage(desktop)
        .setup(move |app| Ok(set_up(app.handle(), place)?))
        .build(crate::context())
        .context("this desktop cannot show the app; `apoidea run` is the same peer without it")?;
    app.run(|_app, event| match event {
        // The tray stays whatever else is closed.
        RunEvent::ExitRequested {
            api, code: None, ..
        } => api.prevent_exit(),
        // Other systems hand a link over on the command line.
        #[cfg(target_os = "macos")]
        RunEvent::Opened { urls } => {
            for url in urls {
                let app = _app.clone();
                tauri::async_runtime::spawn(async move { open_invite(&app, url.into()).await });
            }
        }
        _ => {}
    });
    Ok(())
}

fn set_up(app: &AppHandle, place: Place) -> tauri::Result<()> {
    let desktop = app.state::<Desktop>();
    let tray = Tray::new(app, &desktop.view().clone(), chosen)?;
    let _ = desktop.tray.set(tray);
    if update::is_ours() {
        tauri::async_runtime::spawn(keep_up_to_date(app.clone()));
    }
    let for_peer = app.clone();
    tauri::async_runtime::spawn(async move {
        match Engine::start(&place).await {
            Ok(engine) => live(&for_peer, Arc::new(engine)).await,
            Err(error) => crashed(&for_peer, format!("{error:#}")),
        }
    });
    let for_end = app.clone();
    tauri::async_runtime::spawn(async move {
        termination::asked_for().await;
        quit(&for_end).await;
    });
    tauri::async_runtime::spawn(async {
        tokio::time::sleep(STARTED_AFTER).await;
        startup_pages::forget();
    });
    Ok(())
}

/// Somebody started the app again: that is a wish to see it.
fn second_start(app: &AppHandle, words: Vec<String>) {
    let launch = Launch::parse(words);
    let page = match launch.as_ref().map(|launch| launch.purpose) {
        Ok(Purpose::Configure) => "settings",
        Ok(Purpose::StayInTray) => return,
        _ => "overview",
    };
    let app = app.clone();
    if let Some(invite) = launch.ok().and_then(|launch| launch.invite) {
        tauri::async_runtime::spawn(async move { open_invite(&app, invite).await });
        return;
    }
    tauri::async_runtime::spawn(async move { show(&app, Kind::Dashboard, page).await });
}

/// Lets the volunteer look at an invite; nothing is joined before they say so in the window. A new
/// volunteer is welcomed first.
async fn open_invite(app: &AppHandle, invite: String) {
    let desktop = app.state::<Desktop>();
    let engine = {
        let mut waiting = desktop.invite();
        let Some(engine) = desktop.engine.get() else {
            // The first window will show it.
            *waiting = Some(invite);
            return;
        };
        engine
    };
    if let Err(error) = engine.api().open_invite(invite).await {
        let view = desktop.view().clone();
        notify(app, &view, &format!("{error:#}"));
    }
    let page = match engine.is_welcomed() {
        true => "peers",
        false => "invited",
    };
    show(app, Kind::Dashboard, page).await;
}

/// Follows the peer until it ends or somebody asks for its end.
async fn live(app: &AppHandle, engine: Arc<Engine>) {
    let desktop = app.state::<Desktop>();
    let _ = desktop.engine.set(engine.clone());
    if let Err(error) = tell_of_login(app, &engine).await {
        tracing::warn!("whether the app starts at login is not known: {error:#}");
    }
    let mut statuses = engine.handle().watch_status();
    let mut changes = engine.handle().follow_changes();
    first_window(app, &engine).await;
    let mut lull = Lull::default();
    loop {
        let status = statuses.borrow_and_update().clone();
        show_status(app, &engine, &mut lull, status);
        tokio::select! {
            changed = statuses.changed() => if changed.is_err() { break },
            Ok(change) = changes.recv() => tell_change(app, &change, changes.len()),
            () = engine.handle().quit_asked() => return quit(app).await,
        }
    }
    if desktop.view().leaving == Leaving::No {
        crashed(
            app,
            "the peer ended by itself; the log says more".to_owned(),
        );
    }
}

/// What the session says about starting at login holds, whatever was preferred: it may have been
/// changed there.
async fn tell_of_login(app: &AppHandle, engine: &Engine) -> anyhow::Result<()> {
    let is = login::switch(app);
    if engine.handle().preferences().desktop.start_at_login == is {
        return Ok(());
    }
    let change = json!({ "desktop": { "start_at_login": is } });
    engine
        .api()
        .prefer(change.as_object().cloned().unwrap_or_default())
        .await
}

async fn first_window(app: &AppHandle, engine: &Engine) {
    let invite = app.state::<Desktop>().invite().take();
    if let Some(invite) = invite {
        return open_invite(app, invite).await;
    }
    match app.state::<Desktop>().purpose {
        Purpose::Configure => show(app, Kind::Dashboard, "settings").await,
        _ if !engine.is_welcomed() => show(app, Kind::Dashboard, "welcome").await,
        Purpose::Open => show(app, Kind::Dashboard, "overview").await,
        _ => {}
    }
}

fn show_status(app: &AppHandle, engine: &Engine, lull: &mut Lull, status: Status) {
    let agreement = agreement(app, engine, &status);
    let preferences = engine.handle().preferences();
    if lull.is_time(&status.readings, preferences.desktop.screensaver_seconds) {
        obey(app, Order::Screensaver);
    }
    follow_login(app, &preferences);
    let desktop = app.state::<Desktop>();
    desktop.windows().look();
    let mut view = desktop.view();
    let before = view
        .status
        .as_ref()
        .and_then(|status| status.attention.clone());
    view.preferences = preferences;
    if let Some(trouble) = status
        .attention
        .as_ref()
        .filter(|now| before.as_ref() != Some(*now))
    {
        notify(app, &view, &words::attention(trouble));
    }
    view.status = Some(status.into());
    view.agreement = agreement;
    drop(view);
    redraw(app);
}

/// Has the volunteer agreed? They do by letting the peer go on; to snooze is not yet to agree.
fn agreement(app: &AppHandle, engine: &Engine, status: &Status) -> Agreement {
    if engine.is_welcomed() {
        return Agreement::Given;
    }
    if !engine.handle().is_paused_by_hand() {
        engine.welcome();
        return Agreement::Given;
    }
    if matches!(status.allowance.reason, Some(Reason::Snoozed { .. })) {
        obey(app, Order::Pause);
    }
    Agreement::Awaited
}

/// Starts at login, or not, when the preference has changed.
fn follow_login(app: &AppHandle, preferences: &Preferences) {
    let (before, now) = (
        app.state::<Desktop>()
            .view()
            .preferences
            .desktop
            .start_at_login,
        preferences.desktop.start_at_login,
    );
    if before != now
        && login::switch(app) != now
        && let Err(error) = login::set(app, now)
    {
        tracing::warn!("starting at login was not changed: {error:#}");
    }
}

/// Tells of a watched page that has changed. Of many at once the last one tells how many there were.
fn tell_change(app: &AppHandle, change: &WatchedChange, waiting: usize) {
    let desktop = app.state::<Desktop>();
    let view = desktop.view().clone();
    match waiting {
        0 => notify(app, &view, &words::notice(change)),
        more if more % MANY_CHANGES == 0 => {
            let text = format!(
                "{} and more watched pages: see the dashboard",
                words::change(change)
            );
            notify(app, &view, &text);
        }
        _ => {}
    }
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
    if view.preferences.desktop.notifications == Switch::On {
        let _ = app
            .notification()
            .builder()
            .title("Apoidea")
            .body(text)
            .show();
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

fn put_checks_right(app: &AppHandle) {
    if let Some(tray) = app.state::<Desktop>().tray.get()
        && let Err(error) = tray.put_checks_right()
    {
        tracing::warn!(%error, "a check mark may be wrong");
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
    if order == Order::Quit {
        end_soon(app);
    }
    let app = app.clone();
    tauri::async_runtime::spawn(async move {
        if let Err(error) = carry_out(&app, order).await {
            tracing::warn!(%order, "could not be done: {error:#}");
            let view = app.state::<Desktop>().view().clone();
            notify(&app, &view, &format!("{error:#}"));
        }
        redraw(&app);
        put_checks_right(&app);
    });
}

async fn carry_out(app: &AppHandle, order: Order) -> anyhow::Result<()> {
    let desktop = app.state::<Desktop>();
    match order {
        Order::Welcome => show(app, Kind::Dashboard, "welcome").await,
        Order::Dashboard => show(app, Kind::Dashboard, "overview").await,
        Order::Invite => show(app, Kind::Dashboard, "peers").await,
        Order::About => show(app, Kind::Dashboard, "about").await,
        Order::Screensaver => show(app, Kind::Screensaver, "screensaver").await,
        Order::Restart => app.restart(),
        Order::Log => {
            let folder = engine::log_folder(&desktop.folder);
            app.opener()
                .open_path(folder.display().to_string(), None::<&str>)?;
        }
        Order::Quit => quit(app).await,
        order => {
            order_peer(
                desktop.engine.get().context("the peer does not run")?,
                order,
            )
            .await?
        }
    }
    Ok(())
}

async fn order_peer(engine: &Engine, order: Order) -> anyhow::Result<()> {
    let api = engine.api();
    match order {
        Order::Pause => api.pause().await,
        Order::Resume => api.resume().await,
        Order::Snooze(length) => api.snooze(length.into()).await,
        order => {
            api.prefer(order.as_change().context("that is nothing for the peer")?)
                .await
        }
    }
}

async fn show(app: &AppHandle, kind: Kind, page: &'static str) {
    let desktop = app.state::<Desktop>();
    if desktop.windows().raise(kind, page) {
        return;
    }
    let Some(engine) = desktop.engine.get() else {
        return;
    };
    let Some(link) = engine.link(page).await else {
        return;
    };
    let handle = app.clone();
    let opened = app.run_on_main_thread(move || {
        if let Err(error) = handle.state::<Desktop>().windows().open(kind, &link) {
            tracing::error!("{error:#}");
        }
    });
    if let Err(error) = opened {
        tracing::error!(%error, "no window was opened");
    }
}

/// From here on the volunteer waits.
fn end_soon(app: &AppHandle) {
    end_process_within(GONE_WITHIN, &app.state::<Desktop>().folder, 0);
}

async fn quit(app: &AppHandle) {
    end_soon(app);
    let desktop = app.state::<Desktop>();
    if std::mem::replace(&mut desktop.view().leaving, Leaving::Now) == Leaving::Now {
        return;
    }
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
        let desktop = app.state::<Desktop>();
        let wanted = desktop
            .engine
            .get()
            .map(|engine| engine.handle().preferences().desktop.updates);
        if let Err(error) = become_newer(&app, wanted.unwrap_or(Switch::Off)).await {
            tracing::warn!("no update was installed: {error:#}");
        }
        tokio::time::sleep(update::LOOK_EVERY).await;
    }
}

async fn become_newer(app: &AppHandle, wanted: Switch) -> anyhow::Result<()> {
    let Some(update) = update::newer(app, wanted).await? else {
        return Ok(());
    };
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
