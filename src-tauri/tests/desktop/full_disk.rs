//! Quitting while nothing can be written.

use crate::{
    app::{App, agree, home},
    menu::choose,
    screen::{Screen, wait},
};
use serde_json::json;
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

/// What the volunteer is promised.
const QUIT_WITHIN: Duration = Duration::from_secs(10);

/// A small file system, gone afterwards.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` where that is not permitted.
    fn mount(at: PathBuf) -> Option<Self> {
        fs::create_dir_all(&at).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=100m", "tmpfs"])
            .arg(&at)
            .output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then_some(SmallDisk(at))
    }

    fn fill(&self) {
        let mut filler = File::create(self.0.join("filler")).unwrap();
        for block in [1 << 16, 1] {
            while filler.write_all(&vec![0; block]).is_ok() {}
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Makes the peer write until it cannot.
fn run_into_trouble(app: &App) {
    let mut refused = 0;
    wait("the peer to notice that the disk is full", || {
        refused += 1;
        let domain = format!("{}{refused}.example", "long-name-".repeat(5));
        app.send("POST", "/api/refusals", Some(json!({ "domain": domain })));
        app.send("GET", "/api/status", None)
            .filter(|status| !status["attention"].is_null())
    });
}

fn says_where_it_is(home: &Path) -> bool {
    home.join("data/api-address").exists()
}

#[test]
fn the_app_quits_in_time_although_the_disk_is_full() {
    let Some(screen) = Screen::start() else {
        eprintln!("there is no X server here: nothing was tested");
        return;
    };
    let home = home();
    let Some(disk) = SmallDisk::mount(home.path().join("data")) else {
        eprintln!("only root may mount a small disk: nothing was tested");
        return;
    };
    agree(home.path());
    let mut app = App::start_in(&screen, home);
    // Unmounted before the home is removed.
    let disk = disk;
    disk.fill();
    run_into_trouble(&app);
    assert!(says_where_it_is(app.home()));
    choose(&screen, &["Quit"]);
    let chosen = Instant::now();
    app.ended();
    assert!(chosen.elapsed() < QUIT_WITHIN, "{:?}", chosen.elapsed());
    assert!(
        !says_where_it_is(app.home()),
        "an address is left where nobody answers"
    );
}
