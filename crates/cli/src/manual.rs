//! `apoidea manual`: the manual pages and the shells' completions, written for the packages from
//! the command line itself.

use crate::arguments::Arguments;
use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;
use std::{fs, path::Path, process::ExitCode};

/// The shells that people type `apoidea` in.
const SHELLS: [Shell; 4] = [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell];

/// Writes `man1/` and `completions/` into a folder.
pub fn manual(folder: &Path) -> anyhow::Result<ExitCode> {
    let (pages, completions) = (folder.join("man1"), folder.join("completions"));
    for folder in [&pages, &completions] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    clap_mangen::generate_to(Arguments::command(), &pages)
        .context("cannot write the manual pages")?;
    for shell in SHELLS {
        clap_complete::generate_to(shell, &mut Arguments::command(), "apoidea", &completions)
            .with_context(|| format!("cannot write the completions for {shell}"))?;
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_page_and_every_shell_knows_it() {
        let folder = tempfile::tempdir().unwrap();
        manual(folder.path()).unwrap();
        let completions: Vec<String> = ["apoidea.bash", "_apoidea", "apoidea.fish", "_apoidea.ps1"]
            .map(|name| fs::read_to_string(folder.path().join("completions").join(name)).unwrap())
            .into();
        let commands = Arguments::command();
        for command in commands
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
        {
            let name = command.get_name();
            let page =
                fs::read_to_string(folder.path().join(format!("man1/apoidea-{name}.1"))).unwrap();
            assert!(page.contains(".SH SYNOPSIS"), "{name}");
            assert!(completions.iter().all(|text| text.contains(name)), "{name}");
        }
    }
}
