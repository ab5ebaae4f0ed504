//! The types of the local API as the dashboard sees them, generated from those that the peer
//! serves.
//!
//! The generated file is under version control, so that the dashboard can be worked on without
//! Rust; the test below fails when the two drift apart. `APOIDEA_WRITE_TYPES=1 cargo test -p
//! apoidea-peer typescript` writes it anew.

use crate::{
    Attention, ChangeKind, Country, DomainRow, DomainStatus, Door, EntryState, EntryStatus,
    EntryWay, FoundLie, Help, Hour, InviteAnswer, InviteContents, InviteRequest, JoinRequest,
    Joined, LieKind, Missing, NetworkState, NetworkStatus, Note, OpenLink, OpenedInvite, OwnWatch,
    PageEvent, PageOutcome, RefusalRequest, RefusedSeed, RobotsStatus, Role, SeedAnswer,
    SeedOrigin, SeedRequest, Standing, StartSeeds, StartSeedsRequest, State, Status, StopReason,
    Topic, Totals, Usage, WatchList, WatchRequest, WatchStanding, WatchedChange, Whereabouts,
};
use apoidea_governor::{
    Allowance, Day, Desktop, Metering, Pace, Power, Preferences, Preset, Priority, Profile, Range,
    Readings, Reason, Run, Schedule, Screen, Switch, Toward, WhileInUse,
};
use apoidea_overlay::{Capabilities, Dialler, KindTotals, PeerView, Reachability, Traffic};
use std::{env, fs, path::Path};
use ts_rs::{Config, TS};

const HEAD: &str = "// Generated from Rust by crates/peer/src/typescript.rs; do not edit.\n";

fn declare<T: TS>(config: &Config) -> String {
    let declared = T::decl(config);
    format!("\n{}export {declared}\n", T::docs().unwrap_or_default())
}

macro_rules! declare_all {
    ($config:expr, $($noun:ty),+ $(,)?) => { [$(declare::<$noun>($config)),+].concat() };
}

fn generated() -> String {
    let config = Config::new().with_large_int("number");
    let all = declare_all!(
        &config,
        Status,
        State,
        Attention,
        Door,
        Missing,
        EntryStatus,
        EntryWay,
        EntryState,
        Totals,
        Usage,
        PageEvent,
        PageOutcome,
        DomainRow,
        DomainStatus,
        StopReason,
        RobotsStatus,
        Role,
        Help,
        Hour,
        Note,
        Topic,
        NetworkState,
        NetworkStatus,
        Reachability,
        Standing,
        FoundLie,
        LieKind,
        PeerView,
        Dialler,
        Capabilities,
        Traffic,
        KindTotals,
        Whereabouts,
        Country,
        SeedRequest,
        SeedAnswer,
        RefusedSeed,
        StartSeeds,
        SeedOrigin,
        StartSeedsRequest,
        InviteAnswer,
        InviteContents,
        InviteRequest,
        OpenedInvite,
        JoinRequest,
        Joined,
        RefusalRequest,
        WatchRequest,
        WatchList,
        OwnWatch,
        WatchStanding,
        WatchedChange,
        ChangeKind,
        OpenLink,
        Preferences,
        Preset,
        Run,
        WhileInUse,
        Profile,
        Toward,
        Desktop,
        Switch,
        Priority,
        Schedule,
        Day,
        Range,
        Allowance,
        Pace,
        Reason,
        Readings,
        Power,
        Metering,
        Screen,
    );
    format!("{HEAD}{all}")
}

#[test]
fn the_dashboard_has_the_types_that_the_peer_serves() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ui/src/api/model.ts");
    if env::var_os("APOIDEA_WRITE_TYPES").is_some() {
        fs::write(&path, generated()).unwrap();
    }
    let file = fs::read_to_string(&path).unwrap();
    assert!(
        file == generated(),
        "ui/src/api/model.ts is out of date: see the head of this file"
    );
}
