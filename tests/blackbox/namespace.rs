//! A network of a test's own: the test binary runs one of its ignored tests again in a new network
//! namespace, where it may lay wires and drop packets as it likes. The namespace ends with it and
//! needs no rights outside.

use std::{
    env,
    process::{Command, Stdio},
};

/// Set for a test that another one runs.
const INNER: &str = "APOIDEA_INNER_TEST";

/// Was this test started by the one that prepares its network? Anything else that runs ignored
/// tests, such as `make test-long`, has to leave it out.
pub fn is_prepared() -> bool {
    env::var_os(INNER).is_some()
}

/// `sh -c` in a network namespace of its own, so far that a script can follow.
fn apart() -> Command {
    let mut apart = Command::new("unshare");
    apart.args([
        "--user",
        "--map-root-user",
        "--net",
        "--mount",
        "--",
        "sh",
        "-c",
    ]);
    apart
}

/// Does the system allow a namespace in which this script succeeds?
pub fn allows(script: &str) -> bool {
    let mut probe = apart();
    probe
        .arg(script)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

/// Runs the ignored test of this name in a namespace that `prepare` has made ready; it must pass.
pub fn run(test: &str, prepare: &str, variables: &[(&str, &str)]) {
    let script = format!("{prepare} && exec \"$0\" \"$@\"");
    let mut command = apart();
    command
        .arg(script)
        .arg(env::current_exe().unwrap())
        .envs(variables.iter().copied());
    pass(command, test);
}

/// The same without a namespace.
pub fn run_here(test: &str) {
    pass(Command::new(env::current_exe().unwrap()), test);
}

fn pass(mut command: Command, test: &str) {
    let output = command
        .args(["--ignored", "--exact", test, "--nocapture"])
        .env(INNER, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
