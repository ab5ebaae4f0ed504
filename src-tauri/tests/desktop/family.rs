//! The processes that a process started, and theirs: what they are, and what they take.

use std::fs;

/// A process and its descendants.
pub fn of(id: u32) -> Vec<u32> {
    let mut all = vec![id];
    let mut next = 0;
    while let Some(parent) = all.get(next).copied() {
        all.extend(children(parent));
        next += 1;
    }
    all
}

/// The names of a process's descendants.
pub fn names(id: u32) -> Vec<String> {
    let name = |id: u32| {
        fs::read_to_string(format!("/proc/{id}/comm"))
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    of(id).into_iter().skip(1).map(name).collect()
}

/// Resident memory of one process, in MiB.
pub fn resident_mib(id: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        line.strip_prefix("VmRSS:")?
            .trim()
            .strip_suffix(" kB")?
            .parse()
            .ok()
    });
    kib.map_or(0.0, |kib: f64| kib / 1024.0)
}

/// Seconds of processor time that a process and its descendants have taken, in user and system
/// mode.
pub fn processor_seconds(id: u32) -> f64 {
    of(id).into_iter().filter_map(own_seconds).sum()
}

fn own_seconds(id: u32) -> Option<f64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // What follows the name, which may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks: f64 = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    // Linux says hundredths of a second to everybody.
    Some(ticks / 100.0)
}

fn children(id: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{id}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_ascii_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}
