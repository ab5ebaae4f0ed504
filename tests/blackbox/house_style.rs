//! The house style, as far as a program can see it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The longest a file may be. Past six hundred lines there is a second noun inside it.
const MAX_LINES: usize = 800;
/// The widest a line of prose may be, as for code. Two panes of that width fit a screen.
const MAX_PROSE_COLUMNS: usize = 100;
/// Names that say nothing.
const EMPTY_NAMES: [&str; 8] = [
    "utils", "util", "helpers", "helper", "common", "misc", "manager", "types",
];
/// What the crates may use of each other, besides the model. Tests and examples may use the toy
/// web.
const MAY_USE: [(&str, &[&str]); 10] = [
    ("apoidea-model", &[]),
    ("apoidea-chord", &["apoidea-model"]),
    ("apoidea-crawl", &["apoidea-model"]),
    ("apoidea-governor", &["apoidea-model"]),
    ("apoidea-store", &["apoidea-model"]),
    ("apoidea-toyweb", &["apoidea-model"]),
    ("apoidea-overlay", &["apoidea-model", "apoidea-chord"]),
    (
        "apoidea-fetch",
        &["apoidea-model", "apoidea-crawl", "apoidea-governor"],
    ),
    (
        "apoidea-peer",
        &[
            "apoidea-model",
            "apoidea-chord",
            "apoidea-crawl",
            "apoidea-governor",
            "apoidea-fetch",
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
/// The folders and files of `crates/peer/src`, lowest first: each uses only those before it.
const PEER_LAYERS: [&str; 18] = [
    "lock",
    "clock",
    "qr",
    "config",
    "sink",
    "state_codec",
    "page",
    "swarm",
    "network",
    "volunteer",
    "report",
    "crawler",
    "handle",
    "sowing",
    "api",
    "peer",
    "deadline",
    "fuzzing",
];
/// The most fields of a struct, and methods of an `impl`, in the peer: past that there is a second
/// noun inside it.
const MAX_FIELDS: usize = 20;
const MAX_METHODS: usize = 30;
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

/// Lines of prose in Markdown, with their numbers: no tables, no code, nothing that a program
/// writes between `<!-- name -->` and `<!-- /name -->`.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let (mut is_code, mut is_written) = (false, false);
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("```") {
            is_code = !is_code;
        } else if start.starts_with("<!--") {
            is_written = !start.starts_with("<!-- /");
        } else if !is_code && !is_written && !start.starts_with('|') {
            found.push((index + 1, line));
        }
    }
    found
}

#[test]
fn prose_fits_the_screen() {
    let mut wrong = Vec::new();
    for file in tracked() {
        if file.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = fs::read_to_string(root().join(&file)).unwrap();
        for (number, line) in prose(&text) {
            let columns = line.chars().count();
            if columns > MAX_PROSE_COLUMNS {
                wrong.push(format!("{}:{number} has {columns} columns", file.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn prose_is_neither_table_nor_code_nor_written_by_a_program() {
    let text = "a\n| b |\n```\nc\n```\n<!-- d -->\ne\n<!-- /d -->\nf";
    assert_eq!(prose(text), [(1, "a"), (9, "f")]);
}

/// The names in a table of a manifest, such as its dependencies.
/// The files that CONTRIBUTING's sketches name, each with the sketch that names it.
fn sketches() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let mut sketch = String::new();
    let mut files = Vec::new();
    for line in text
        .lines()
        .take_while(|line| *line != "## How our code reads")
    {
        if line.starts_with("**") {
            sketch = line.to_owned();
        }
        if let Some((file, _)) = line.strip_prefix("| `").and_then(|row| row.split_once('`')) {
            files.push((sketch.clone(), file.to_owned()));
        }
    }
    files
}

#[test]
fn sketches_are_short_and_name_files_that_exist() {
    let mut touched: BTreeMap<String, usize> = BTreeMap::new();
    for (sketch, file) in sketches() {
        *touched.entry(sketch.clone()).or_default() += 1;
        let known = file.split('…').next().unwrap();
        let exists = [root().join(known), root().join("crates").join(known)]
            .iter()
            .any(|path| path.exists());
        assert!(exists, "{sketch} names {file}");
    }
    assert_eq!(touched.len(), 5, "{touched:?}");
    assert!(touched.values().all(|files| *files <= 4), "{touched:?}");
}

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

/// The modules of the peer that a text uses, by `crate::name` or within `use crate::{…}`.
fn modules_used(text: &str) -> BTreeSet<String> {
    let own = text.split("#[cfg(test)]").next().unwrap();
    let mut used = BTreeSet::new();
    for (at, start) in own.match_indices("crate::") {
        let is_other =
            own[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_');
        let rest = &own[at + start.len()..];
        if is_other {
            continue;
        }
        let name = |text: &str| -> String {
            let is_name = |c: &char| c.is_alphanumeric() || *c == '_';
            text.trim_start().chars().take_while(is_name).collect()
        };
        match rest.strip_prefix('{') {
            None => _ = used.insert(name(rest)),
            Some(list) => {
                let mut depth = 0;
                let mut is_start = true;
                for (at, c) in list.char_indices() {
                    if depth == 0 && is_start && c.is_alphanumeric() {
                        used.insert(name(&list[at..]));
                        is_start = false;
                    }
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => is_start = true,
                        _ => {}
                    }
                }
            }
        }
    }
    used
}

#[test]
fn the_folders_of_the_peer_use_each_other_one_way() {
    let layer = |name: &str| PEER_LAYERS.iter().position(|layer| *layer == name);
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (file, text) in rust_files() {
        let Ok(inside) = file.strip_prefix("crates/peer/src") else {
            continue;
        };
        let first = inside.iter().next().unwrap().to_str().unwrap();
        let own = first.trim_end_matches(".rs");
        // Test code may use everything.
        if matches!(own, "lib" | "typescript") || inside.ends_with("testing.rs") {
            continue;
        }
        let Some(own_layer) = layer(own) else {
            wrong.push(format!("{own} is not in the list of layers"));
            continue;
        };
        seen.insert(own.to_owned());
        for used in modules_used(&text) {
            match layer(&used) {
                Some(used_layer) if used_layer > own_layer => {
                    wrong.push(format!("{} uses {used}, which lies above", file.display()));
                }
                _ => {}
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(seen.len(), PEER_LAYERS.len(), "{seen:?}");
}

#[test]
fn modules_are_found_however_they_are_imported() {
    let text = "use crate::{a::{b, c}, d, e::F};\nfn x() { crate::g::h(); my_crate::no() }\n\
                #[cfg(test)]\nuse crate::tested;";
    let used: Vec<String> = modules_used(text).into_iter().collect();
    assert_eq!(used, ["a", "d", "e", "g"]);
}

/// Counts the lines of each block that begins with `opening` and ends at a brace in its column, by
/// their beginning after the indentation of the block's own.
fn counted(text: &str, opening: &str, is_counted: impl Fn(&str) -> bool) -> Vec<(String, usize)> {
    let mut blocks: Vec<(String, usize)> = Vec::new();
    let mut open: Option<(String, usize)> = None;
    for line in text.lines() {
        match &mut open {
            None => {
                let starts = line.split(' ').any(|word| word == opening) && line.ends_with('{');
                if starts && !line.starts_with([' ', '/']) {
                    open = Some((line.to_owned(), 0));
                }
            }
            Some((_, count)) if line.starts_with("    ") && is_counted(&line[4..]) => *count += 1,
            Some(_) if line.starts_with('}') => blocks.extend(open.take()),
            Some(_) => {}
        }
    }
    blocks
}

#[test]
fn no_struct_and_no_impl_of_the_peer_is_too_large() {
    let is_field = |line: &str| {
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        let line = line.strip_prefix("pub(super) ").unwrap_or(line);
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let name = line.split(':').next().unwrap();
        line.contains(": ") && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let is_method = |line: &str| !line.starts_with([' ', '/']) && line.contains("fn ");
    let (mut wrong, mut found) = (Vec::new(), 0);
    for (file, text) in rust_files() {
        if !file.starts_with("crates/peer/src") || file.ends_with("testing.rs") {
            continue;
        }
        let structs = counted(&text, "struct", is_field);
        let impls = counted(&text, "impl", is_method);
        found += structs.len() + impls.len();
        let structs = structs
            .into_iter()
            .filter(|(_, fields)| *fields > MAX_FIELDS);
        let impls = impls
            .into_iter()
            .filter(|(_, methods)| *methods > MAX_METHODS);
        let name = file.display();
        wrong.extend(
            structs
                .chain(impls)
                .map(|(block, count)| format!("{name}: {block} {count}")),
        );
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(found > 200, "only {found} blocks were found");
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
