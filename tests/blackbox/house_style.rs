//! The house style, as far as a program can see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The longest a file may be. Past six hundred lines there is a second noun inside it.
const MAX_LINES: usize = 800;
/// Names that say nothing.
const EMPTY_NAMES: [&str; 8] = [
    "utils", "util", "helpers", "helper", "common", "misc", "manager", "types",
];
/// What the crates may use of each other, besides the model. Tests and examples may use the toy
/// web.
const MAY_USE: [(&str, &[&str]); 9] = [
    ("apoidea-model", &[]),
    ("apoidea-chord", &["apoidea-model"]),
    ("apoidea-crawl", &["apoidea-model"]),
    ("apoidea-governor", &["apoidea-model"]),
    ("apoidea-store", &["apoidea-model"]),
    ("apoidea-toyweb", &["apoidea-model"]),
    (
        "apoidea-overlay",
        &["apoidea-model", "apoidea-chord", "apoidea-store"],
    ),
    (
        "apoidea-peer",
        &[
            "apoidea-model",
            "apoidea-chord",
            "apoidea-crawl",
            "apoidea-governor",
            "apoidea-store",
            "apoidea-overlay",
        ],
    ),
    (
        "apoidea",
        &[
            "apoidea-model",
            "apoidea-chord",
            "apoidea-crawl",
            "apoidea-governor",
            "apoidea-store",
            "apoidea-overlay",
            "apoidea-peer",
            "apoidea-toyweb",
        ],
    ),
];
/// Crates that see no clock, no network and no ambient randomness, and what would bring these in.
const PURE: [&str; 3] = ["apoidea-model", "apoidea-chord", "apoidea-crawl"];
const IMPURE: [&str; 9] = [
    "tokio",
    "reqwest",
    "hyper",
    "quinn",
    "socket2",
    "axum",
    "hickory-resolver",
    "fjall",
    "sysinfo",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// Files under version control, by their path from the root; those that are being moved or removed
/// left out.
fn tracked() -> Vec<PathBuf> {
    let output = Command::new("git")
        .arg("-C")
        .arg(root())
        .args(["ls-files", "-z"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let names = String::from_utf8(output.stdout).unwrap();
    let files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    assert!(files.len() > 100);
    files
        .into_iter()
        .filter(|file| root().join(file).is_file())
        .collect()
}

fn rust_files() -> Vec<(PathBuf, String)> {
    let files = tracked()
        .into_iter()
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files
        .map(|file| (file.clone(), fs::read_to_string(root().join(file)).unwrap()))
        .collect()
}

#[test]
fn files_have_names_that_say_something() {
    let is_empty = |part: &str| EMPTY_NAMES.contains(&part.split('.').next().unwrap());
    let wrong: Vec<PathBuf> = tracked()
        .into_iter()
        .filter(|file| file.iter().any(|part| part.to_str().is_some_and(is_empty)))
        .collect();
    assert_eq!(wrong, Vec::<PathBuf>::new());
}

#[test]
fn files_say_what_they_are_and_are_not_too_long() {
    let mut wrong = Vec::new();
    for (file, text) in rust_files() {
        if !text.starts_with("//! ") {
            wrong.push(format!("{} does not say what it is", file.display()));
        }
        let lines = text.lines().count();
        if lines > MAX_LINES {
            wrong.push(format!("{} has {lines} lines", file.display()));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn nothing_is_left_to_do() {
    // Written so that this file does not contain them.
    let marks = ["todo", "unimplemented", "dbg"].map(|name| format!("{name}!("));
    let mut wrong = Vec::new();
    for (file, text) in rust_files() {
        for (number, line) in text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                wrong.push(format!(
                    "{}:{}: {}",
                    file.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The names in a table of a manifest, such as its dependencies.
fn names(manifest: &toml::Table, table: &str) -> BTreeSet<String> {
    let table = manifest.get(table).and_then(toml::Value::as_table);
    table
        .map(|table| table.keys().cloned().collect())
        .unwrap_or_default()
}

/// Crates with the names of what they depend on.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let manifests = tracked()
        .into_iter()
        .filter(|file| file.starts_with("crates") && file.ends_with("Cargo.toml"));
    let read = |file: PathBuf| {
        let manifest: toml::Table = fs::read_to_string(root().join(file))
            .unwrap()
            .parse()
            .unwrap();
        (
            manifest["package"]["name"].as_str().unwrap().to_owned(),
            names(&manifest, "dependencies"),
        )
    };
    manifests.map(read).collect()
}

#[test]
fn dependencies_run_one_way() {
    let crates = crates();
    assert!(crates.len() > 5);
    let mut wrong = Vec::new();
    for (name, dependencies) in &crates {
        let allowed = MAY_USE.iter().find(|(known, _)| known == name);
        let Some((_, allowed)) = allowed else {
            wrong.push(format!("{name} is not in the list of crates"));
            continue;
        };
        let own = dependencies
            .iter()
            .filter(|dependency| dependency.starts_with("apoidea"));
        wrong.extend(
            own.filter(|own| !allowed.contains(&own.as_str()))
                .map(|own| format!("{name} uses {own}")),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn pure_crates_stay_pure() {
    for (name, dependencies) in crates()
        .into_iter()
        .filter(|(name, _)| PURE.contains(&name.as_str()))
    {
        let impure: Vec<&str> = IMPURE
            .into_iter()
            .filter(|impure| dependencies.contains(*impure))
            .collect();
        assert_eq!(impure, [""; 0], "{name}");
    }
    let clocks = [
        "SystemTime::now",
        "Instant::now",
        "rand::random",
        "rand::rng(",
    ];
    let mut wrong = Vec::new();
    for (file, text) in rust_files() {
        let is_pure = ["model", "chord", "crawl"]
            .iter()
            .any(|name| file.starts_with(format!("crates/{name}/src")));
        let own = text.split("#[cfg(test)]").next().unwrap();
        if is_pure && clocks.iter().any(|clock| own.contains(clock)) {
            wrong.push(file);
        }
    }
    assert_eq!(wrong, Vec::<PathBuf>::new());
}

#[test]
fn nothing_of_one_machine_is_under_version_control() {
    let marks = ["root", "work"].map(|name| format!("/{name}/"));
    let is_mark = |line: &str| {
        marks.iter().any(|mark| {
            // A path of a machine, not a part of a URL or of a longer path.
            line.match_indices(mark.as_str()).any(|(at, _)| {
                !line[..at].ends_with(|before: char| {
                    before.is_alphanumeric() || "._-}$*~".contains(before)
                })
            })
        })
    };
    let mut wrong = Vec::new();
    for file in tracked() {
        let Ok(text) = fs::read_to_string(root().join(&file)) else {
            continue;
        };
        let found = text.lines().enumerate().filter(|(_, line)| is_mark(line));
        wrong.extend(
            found.map(|(number, line)| {
                format!("{}:{}: {}", file.display(), number + 1, line.trim())
            }),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_lock_file_names_only_the_public_registry_and_no_second_cryptography() {
    let lock: toml::Table = fs::read_to_string(root().join("Cargo.lock"))
        .unwrap()
        .parse()
        .unwrap();
    for package in lock["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        assert!(
            !["aws-lc-sys", "aws-lc-rs", "openssl-sys"].contains(&name),
            "{name} is locked"
        );
        let source = package.get("source").and_then(toml::Value::as_str);
        let public = "registry+https://github.com/rust-lang/crates.io-index";
        assert!(
            source.is_none_or(|source| source == public),
            "{name} comes from {source:?}"
        );
    }
}
