//! `apoidea seeds`: where a crawl that knows nothing begins.

use crate::{
    arguments::{Place, SeedsOptions},
    client::Client,
    control::print_json,
};
use anyhow::Context;
use apoidea_peer::{SeedOrigin, StartSeeds, StartSeedsRequest};
use std::{fs, io, path::Path, process::ExitCode};

const PATH: &str = "/api/seeds";

pub fn seeds(place: &Place, options: &SeedsOptions) -> anyhow::Result<ExitCode> {
    let client = Client::connect(place)?;
    let seeds: StartSeeds = match &options.replace {
        Some(file) => {
            let text = text(file).with_context(|| format!("cannot read {}", file.display()))?;
            client.put(PATH, &StartSeedsRequest { text })?
        }
        None if options.reset => client.delete(PATH, None::<&()>)?,
        None => client.get(PATH)?,
    };
    if options.output.json {
        return print_json(&seeds);
    }
    let origin = match seeds.origin {
        SeedOrigin::BuiltIn => "the list in the program",
        SeedOrigin::Settings => "the list of the settings",
        SeedOrigin::Volunteer => "your own list",
    };
    println!(
        "# A crawl that knows nothing begins at {origin}: {} URLs",
        seeds.urls.len()
    );
    seeds.urls.iter().for_each(|url| println!("{url}"));
    Ok(ExitCode::SUCCESS)
}

fn text(file: &Path) -> io::Result<String> {
    match file.as_os_str() == "-" {
        true => io::read_to_string(io::stdin().lock()),
        false => fs::read_to_string(file),
    }
}
