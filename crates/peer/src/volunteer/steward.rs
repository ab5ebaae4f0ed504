//! Keeps the volunteer's house: asks the governor what may be used now, and tells everybody who
//! consumes.
//!
//! It holds the preferences and what the volunteer ordered, looks at the sensors twice a second,
//! and publishes the [`Allowance`] on a watch channel. Orders take effect before they are answered,
//! and are on the disk by then.

use crate::{
    clock::{now, unblocked},
    lock::lock,
    volunteer::preferences_file::{PreferencesError, PreferencesFile, UnderWay},
};
use apoidea_fetch::Throttle;
use apoidea_governor::{
    Allowance, Governor, Moment, PreferenceRefused, Preferences, Priority, Readings, Snooze,
    SnoozeFor, Squeeze, WhileInUse, precedence, sensors::Senses,
};
use serde_json::{Map, Value};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

/// How often it looks: two looks and the crawler's reaction are well within the two seconds that a
/// volunteer is promised.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How often the bytes of the month are written down; a crash forgets at most this much time's.
const SAVE_EVERY: Duration = Duration::from_secs(60);
/// A volunteer who has just agreed sees at once that something happens: for this long the crawl goes
/// on gently while they are there, if it would wait for their absence otherwise.
const DEBUT: Duration = Duration::from_secs(180);
/// How often the size of the process and the disk are looked at.
const SIZES_EVERY: Duration = Duration::from_secs(1);

/// Decides and publishes; shared by the API and its own task.
pub(crate) struct Steward {
    house: Mutex<House>,
    senses: Senses,
    file: PreferencesFile,
    folder: PathBuf,
    throttle: Arc<Throttle>,
    allowance: watch::Sender<Allowance>,
}

struct House {
    preferences: Preferences,
    under_way: UnderWay,
    governor: Governor,
    readings: Readings,
    sizes: Sizes,
    saved_at: Instant,
    squeeze: Squeeze,
    debut: Debut,
}

/// The first minutes after the volunteer has agreed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Debut {
    /// They have agreed long ago.
    Over,
    /// They have not agreed yet.
    Awaited,
    /// They have agreed lately.
    Until(Instant),
}

/// What this process takes, measured now and then.
struct Sizes {
    system: Option<System>,
    looked_at: Option<Instant>,
    memory_bytes: Option<u64>,
    free_bytes: Option<u64>,
}

/// Why preferences were not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// A value is not right; everything stays as it was.
    #[error(transparent)]
    Refused(#[from] PreferenceRefused),
    /// They could not be written; everything stays as it was.
    #[error(transparent)]
    Unsaved(#[from] PreferencesError),
}

impl Steward {
    /// Takes up what was under way, and decides for the first time.
    pub(crate) fn new(
        preferences: Preferences,
        file: PreferencesFile,
        senses: Senses,
        throttle: Arc<Throttle>,
        folder: PathBuf,
    ) -> Self {
        let house = House {
            under_way: file.under_way(),
            preferences,
            governor: Governor::default(),
            readings: Readings::default(),
            sizes: Sizes {
                system: System::new().ok(),
                looked_at: None,
                memory_bytes: None,
                free_bytes: None,
            },
            saved_at: Instant::now(),
            squeeze: Squeeze::default(),
            debut: Debut::Over,
        };
        let mut house = house;
        let allowance = house.decide(moment());
        let (allowance, _) = watch::channel(allowance);
        Steward {
            house: Mutex::new(house),
            senses,
            file,
            folder,
            throttle,
            allowance,
        }
    }

    /// Follows what may be used.
    pub(crate) fn watch(&self) -> watch::Receiver<Allowance> {
        self.allowance.subscribe()
    }

    /// How small caches and windows have to be.
    pub(crate) fn squeeze(&self) -> Squeeze {
        self.house().squeeze
    }

    /// What the sensors saw last.
    pub(crate) fn readings(&self) -> Readings {
        self.house().readings.clone()
    }

    /// Did the volunteer say pause, and not yet go on?
    pub(crate) fn is_paused_by_hand(&self) -> bool {
        self.house().under_way.snooze.is_some()
    }

    /// The preferences in force.
    pub(crate) fn preferences(&self) -> Preferences {
        self.house().preferences.clone()
    }

    /// Looks and decides until it is stopped.
    pub(crate) async fn run(self: Arc<Self>, stop: CancellationToken) {
        if self.preferences().priority == Priority::Lowest {
            precedence::give_up();
        }
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while stop.run_until_cancelled(looks.tick()).await.is_some() {
            if let Some(under_way) = self.look() {
                self.keep(under_way).await;
            }
        }
        let under_way = self.house().under_way;
        self.keep(under_way).await;
    }

    /// Changes preferences: taken whole and kept, or refused whole.
    pub(crate) async fn change(
        &self,
        changes: &Map<String, Value>,
    ) -> Result<Preferences, ChangeError> {
        let changed = self.preferences().with(changes)?;
        let (file, saved) = (self.file.clone(), changed.clone());
        unblocked(move || file.save(&saved)).await?;
        self.senses.follow(&changed);
        if changed.priority == Priority::Lowest {
            precedence::give_up();
        }
        let mut house = self.house();
        house.preferences = changed.clone();
        house.governor = Governor::default();
        self.publish(&mut house);
        Ok(changed)
    }

    /// Pauses until the volunteer agrees.
    pub(crate) async fn await_consent(&self) -> Result<(), PreferencesError> {
        self.house().debut = Debut::Awaited;
        self.snooze(Some(SnoozeFor::UntilResumed)).await
    }

    /// Pauses for a while, or goes on.
    pub(crate) async fn snooze(&self, length: Option<SnoozeFor>) -> Result<(), PreferencesError> {
        let under_way = {
            let mut house = self.house();
            house.under_way.snooze = length.map(|length| Snooze::begin(length, moment()));
            if length.is_none() && house.debut == Debut::Awaited {
                house.debut = Debut::Until(Instant::now() + DEBUT);
            }
            self.publish(&mut house);
            house.under_way
        };
        let file = self.file.clone();
        unblocked(move || file.save_under_way(&under_way)).await
    }

    /// Looks once and decides; gives what is to be written down, if it is time.
    fn look(&self) -> Option<UnderWay> {
        let seen = self.senses.readings();
        let bytes = self.throttle.take_counted();
        let mut house = self.house();
        house.under_way.usage.add(bytes, moment());
        if house.sizes.look(&self.folder) {
            let (used, limit) = (
                house.sizes.memory_bytes,
                self.allowance.borrow().memory_bytes,
            );
            house.squeeze.look(used, limit);
        }
        house.readings = Readings {
            memory_bytes: house.sizes.memory_bytes,
            free_bytes: house.sizes.free_bytes,
            month_bytes: house.under_way.usage.bytes(),
            ..seen
        };
        self.publish(&mut house);
        let is_due = house.saved_at.elapsed() >= SAVE_EVERY;
        is_due.then(|| {
            house.saved_at = Instant::now();
            house.under_way
        })
    }

    fn publish(&self, house: &mut House) {
        let allowance = house.decide(moment());
        self.throttle.allow(&allowance);
        self.allowance.send_if_modified(|published| {
            let is_new = *published != allowance;
            *published = allowance;
            is_new
        });
    }

    async fn keep(&self, under_way: UnderWay) {
        let file = self.file.clone();
        if let Err(error) = unblocked(move || file.save_under_way(&under_way)).await {
            tracing::warn!(%error, "the bytes of this month were not written down");
        }
    }

    fn house(&self) -> MutexGuard<'_, House> {
        lock(&self.house)
    }
}

impl House {
    fn decide(&mut self, now: Moment) -> Allowance {
        if matches!(self.debut, Debut::Until(until) if until <= Instant::now()) {
            self.debut = Debut::Over;
        }
        let snooze = self.under_way.snooze;
        if let Debut::Until(_) = self.debut {
            let gently = Preferences {
                while_in_use: WhileInUse::Gentle,
                ..self.preferences.clone()
            };
            return self.governor.decide(&gently, snooze, &self.readings, now);
        }
        self.governor
            .decide(&self.preferences, snooze, &self.readings, now)
    }
}

impl Sizes {
    /// Measures, if it is time; says whether it did.
    fn look(&mut self, folder: &Path) -> bool {
        if self.looked_at.is_some_and(|at| at.elapsed() < SIZES_EVERY) {
            return false;
        }
        self.looked_at = Some(Instant::now());
        self.free_bytes = fs4::available_space(folder).ok();
        let Some(system) = &mut self.system else {
            return true;
        };
        let pid = Pid::from_u32(std::process::id());
        let what = ProcessRefreshKind::nothing().with_memory();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), false, what);
        self.memory_bytes = system.process(pid).map(|process| process.memory());
        true
    }
}

/// Now, as the volunteer's clock shows it.
fn moment() -> Moment {
    let seconds = jiff::tz::TimeZone::system()
        .to_offset(jiff::Timestamp::now())
        .seconds();
    Moment::new(now(), seconds / 60)
}
