//! Programs by the hand of others (`tests/outside`): a DHT, and a reader of QR codes. They are built
//! apart, so that what they are made of is no part of ours.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

/// The folder of the programs, built when they are first needed.
pub fn programs() -> &'static Path {
    static PROGRAMS: OnceLock<PathBuf> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        let own = env::current_exe().unwrap();
        let target = own.ancestors().nth(3).unwrap().join("outside");
        let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("outside/Cargo.toml");
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--locked", "--manifest-path"])
            .arg(manifest)
            .arg("--target-dir")
            .arg(&target)
            .status()
            .unwrap();
        assert!(
            built.success(),
            "the programs of tests/outside cannot be built"
        );
        target.join("debug")
    })
}

/// A running DHT; dropping it ends it.
pub struct Dht {
    child: Child,
    /// Where it begins.
    pub nodes: Vec<String>,
}

impl Dht {
    /// Starts some nodes at this address.
    pub fn start(address: &str) -> Self {
        let mut child = Command::new(programs().join("dht"))
            .arg(address)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let nodes = lines.next().unwrap().unwrap();
        Dht {
            child,
            nodes: nodes.split_whitespace().map(str::to_owned).collect(),
        }
    }
}

impl Drop for Dht {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text of a QR code, given as rows of `0` and `1`.
pub fn read_qr(modules: &str) -> String {
    let mut child = Command::new(programs().join("qr"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(modules.as_bytes()).unwrap();
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "no QR code:\n{modules}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}
