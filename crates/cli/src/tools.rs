//! Small tools that need no peer: `canonical`, `links`, `robots`.

use anyhow::Context;
use apoidea_crawl::{Robots, extract};
use apoidea_model::PageUrl;
use std::{
    fs, io,
    io::{Read, Write},
    path::Path,
    process::ExitCode,
};

pub fn canonical(url: &str) -> anyhow::Result<ExitCode> {
    let url = PageUrl::parse(url).with_context(|| format!("{url:?} is not the URL of a page"))?;
    println!("{url}");
    Ok(ExitCode::SUCCESS)
}

pub fn links(base: &str, file: &Path) -> anyhow::Result<ExitCode> {
    let base =
        PageUrl::parse(base).with_context(|| format!("{base:?} is not the URL of a page"))?;
    let page = read(file)?;
    let mut out = io::stdout().lock();
    for link in extract(&base, None, &page).links {
        writeln!(out, "{link}")?;
    }
    Ok(ExitCode::SUCCESS)
}

pub fn robots(file: &Path, agent: &str, url: &str) -> anyhow::Result<ExitCode> {
    let robots = Robots::parse(&read(file)?, agent);
    let path = if url.starts_with('/') {
        format!("http://localhost{url}")
    } else {
        url.to_owned()
    };
    let page =
        PageUrl::parse(&path).with_context(|| format!("{url:?} is neither a URL nor a path"))?;
    let verdict = robots.decide(page.path_and_query());
    let word = if verdict.allowed {
        "allowed"
    } else {
        "disallowed"
    };
    match verdict.rule {
        Some(rule) => println!("{word} by line {}: {rule}", rule.line()),
        None => println!("{word}: no line of the file is about it"),
    }
    Ok(if verdict.allowed {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn read(file: &Path) -> anyhow::Result<Vec<u8>> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .context("cannot read standard input")?;
        return Ok(bytes);
    }
    fs::read(file).with_context(|| format!("cannot read {}", file.display()))
}
