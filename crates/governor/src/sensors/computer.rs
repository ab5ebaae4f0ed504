//! The computer itself, on every system: what other programs use of the CPU, and which listed
//! programs run.

use super::{Blind, Sensor, Subject};
use crate::{Preferences, Readings};
use std::time::Duration;
use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};

/// Sees load and programs.
pub struct Computer {
    system: Option<System>,
    own: Pid,
}

impl Computer {
    /// Not looking yet.
    pub fn new() -> Self {
        Computer {
            system: None,
            own: Pid::from_u32(std::process::id()),
        }
    }

    /// What all programs but this one use, in percent of the whole machine.
    fn other_cpu_percent(&mut self) -> Option<f64> {
        let system = self.system.as_mut()?;
        system.refresh_cpu_usage();
        let what = ProcessRefreshKind::nothing().with_cpu();
        system.refresh_processes_specifics(ProcessesToUpdate::Some(&[self.own]), false, what);
        let cores = system.cpus().len().max(1) as f64;
        let own = system
            .process(self.own)
            .map_or(0.0, |process| f64::from(process.cpu_usage()));
        Some((f64::from(system.global_cpu_usage()) - own / cores).clamp(0.0, 100.0))
    }

    /// The first listed program that runs.
    fn running(&mut self, listed: &[String]) -> Option<String> {
        let system = self.system.as_mut()?;
        system.refresh_processes_specifics(
            ProcessesToUpdate::All,
            true,
            ProcessRefreshKind::nothing(),
        );
        let is_running = |name: &&String| {
            system
                .processes()
                .values()
                .any(|process| process.name().eq_ignore_ascii_case(name.as_str()))
        };
        listed.iter().find(is_running).cloned()
    }
}

impl Default for Computer {
    fn default() -> Self {
        Computer::new()
    }
}

impl Sensor for Computer {
    fn subject(&self) -> Subject {
        Subject::OtherPrograms
    }

    fn period(&self) -> Duration {
        // The load is averaged anyway, and a list of all processes is not for free.
        Duration::from_secs(2)
    }

    fn look(&mut self, preferences: &Preferences) -> Result<Readings, Blind> {
        if self.system.is_none() {
            let system = System::new().map_err(|error| Blind(format!("{error:?}")))?;
            self.system = Some(system);
            // A load is a difference: the first look has nothing to compare with.
            self.other_cpu_percent();
            return Ok(Readings::default());
        }
        let other_cpu_percent = self.other_cpu_percent();
        let program = if preferences.programs.is_empty() {
            None
        } else {
            self.running(&preferences.programs)
        };
        Ok(Readings {
            other_cpu_percent,
            program,
            ..Readings::default()
        })
    }
}
