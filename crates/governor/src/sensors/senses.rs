//! All sensors together: threads that look, and the freshest of what each saw.

use super::{Blind, Sensor, Subject};
use crate::{Preferences, Readings};
use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// What a sensor said counts for so many of its periods, and never less than the time below.
const FRESH_PERIODS: u32 = 4;
/// On a busy machine a thread may not run for a while.
const FRESH_AT_LEAST: Duration = Duration::from_secs(3);

/// The sensors, looking. Dropping it ends their threads as soon as they come back from where they
/// look.
pub struct Senses {
    watches: Vec<Arc<Watch>>,
}

/// What one sensor's thread shares with everybody else.
struct Watch {
    subject: Subject,
    period: Duration,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    preferences: Arc<Preferences>,
    is_wanted: bool,
    is_over: bool,
    seen: Option<(Instant, Result<Readings, Blind>)>,
    wanted_since: Instant,
}

impl Senses {
    /// Starts the sensors that these preferences want; the others rest until they are wanted.
    pub fn start(sensors: Vec<Box<dyn Sensor>>, preferences: &Preferences) -> Self {
        let preferences = Arc::new(preferences.clone());
        let watches = sensors
            .into_iter()
            .map(|sensor| Watch::start(sensor, preferences.clone()))
            .collect();
        Senses { watches }
    }

    /// Follows changed preferences.
    pub fn follow(&self, preferences: &Preferences) {
        let preferences = Arc::new(preferences.clone());
        for watch in &self.watches {
            watch.state().preferences = preferences.clone();
            watch.changed.notify_all();
        }
    }

    /// What is seen now, without waiting for anything.
    pub fn readings(&self) -> Readings {
        let mut all = Readings::default();
        for watch in &self.watches {
            watch.add_to(&mut all);
        }
        all
    }
}

impl Drop for Senses {
    fn drop(&mut self) {
        for watch in &self.watches {
            watch.state().is_over = true;
            watch.changed.notify_all();
        }
    }
}

impl Watch {
    fn start(sensor: Box<dyn Sensor>, preferences: Arc<Preferences>) -> Arc<Self> {
        let is_wanted = sensor.subject().is_wanted(&preferences);
        let watch = Arc::new(Watch {
            subject: sensor.subject(),
            period: sensor.period(),
            state: Mutex::new(State {
                preferences,
                is_wanted,
                is_over: false,
                seen: None,
                wanted_since: Instant::now(),
            }),
            changed: Condvar::new(),
        });
        let own = watch.clone();
        let named = thread::Builder::new().name(format!("see {}", watch.subject));
        if let Err(error) = named.spawn(move || own.run(sensor)) {
            watch.state().seen = Some((Instant::now(), Err(Blind::because(error))));
        }
        watch
    }

    /// Looks while it is wanted, rests otherwise.
    fn run(&self, mut sensor: Box<dyn Sensor>) {
        while let Some(preferences) = self.next_look() {
            let seen = sensor.look(&preferences);
            let mut state = self.state();
            state.seen = Some((Instant::now(), seen));
            drop(self.changed.wait_timeout(state, self.period));
        }
    }

    /// The preferences to look with, once it is wanted; `None` when it is over.
    fn next_look(&self) -> Option<Arc<Preferences>> {
        let mut state = self.state();
        loop {
            let is_wanted = self.subject.is_wanted(&state.preferences);
            if is_wanted && !state.is_wanted {
                state.wanted_since = Instant::now();
            }
            state.is_wanted = is_wanted;
            match () {
                () if state.is_over => return None,
                () if is_wanted => return Some(state.preferences.clone()),
                () => {
                    state.seen = None;
                    state = self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    fn add_to(&self, all: &mut Readings) {
        let state = self.state();
        let fresh = FRESH_AT_LEAST.max(self.period * FRESH_PERIODS);
        match &state.seen {
            _ if !state.is_wanted => {}
            Some((at, Ok(seen))) if at.elapsed() <= fresh => all.add(seen),
            Some((at, Err(blind))) if at.elapsed() <= fresh => {
                all.missing
                    .push(format!("cannot see {} here: {blind}", self.subject));
            }
            None if state.wanted_since.elapsed() <= fresh => {}
            _ => all.missing.push(format!(
                "cannot see {} here: no answer in time",
                self.subject
            )),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Says what it is told to say; hangs when told nothing.
    struct Fake(mpsc::Receiver<Result<Readings, Blind>>);

    impl Sensor for Fake {
        fn subject(&self) -> Subject {
            Subject::UserActivity
        }

        fn period(&self) -> Duration {
            Duration::from_millis(1)
        }

        fn look(&mut self, _: &Preferences) -> Result<Readings, Blind> {
            self.0
                .recv()
                .unwrap_or_else(|_| Err(Blind("the test is over".to_owned())))
        }
    }

    fn senses(preferences: &Preferences) -> (mpsc::Sender<Result<Readings, Blind>>, Senses) {
        let (tell, told) = mpsc::channel();
        (tell, Senses::start(vec![Box::new(Fake(told))], preferences))
    }

    fn wait_for(senses: &Senses, what: impl Fn(&Readings) -> bool) -> Readings {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let readings = senses.readings();
            if what(&readings) {
                return readings;
            }
            assert!(Instant::now() < deadline, "{readings:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn what_a_sensor_saw_counts_until_it_hangs() {
        let (tell, senses) = senses(&Preferences::default());
        assert_eq!(senses.readings(), Readings::default());
        tell.send(Ok(Readings {
            idle_ms: Some(7),
            ..Readings::default()
        }))
        .unwrap();
        wait_for(&senses, |readings| readings.idle_ms == Some(7));
        let hung = wait_for(&senses, |readings| readings.idle_ms.is_none());
        assert_eq!(
            hung.missing,
            ["cannot see user activity here: no answer in time"]
        );
    }

    #[test]
    fn a_sensor_that_is_missing_is_named_with_the_reason() {
        let (tell, senses) = senses(&Preferences::default());
        tell.send(Err(Blind("there is no display".to_owned())))
            .unwrap();
        let readings = wait_for(&senses, |readings| !readings.missing.is_empty());
        assert_eq!(
            readings.missing,
            ["cannot see user activity here: there is no display"]
        );
    }

    #[test]
    fn a_sensor_rests_until_it_is_wanted() {
        let (tell, senses) = senses(&Preferences::dedicated());
        tell.send(Ok(Readings {
            idle_ms: Some(1),
            ..Readings::default()
        }))
        .unwrap();
        assert_eq!(
            senses.readings(),
            Readings::default(),
            "nothing is missing that nobody wants"
        );
        senses.follow(&Preferences::default());
        wait_for(&senses, |readings| readings.idle_ms == Some(1));
    }
}
