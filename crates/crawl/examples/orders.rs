//! Orders of a crawl, compared on a real graph of pages.
//!
//! `cargo run --release -p apoidea-crawl --example orders -- cnr-2000.graph` reads a BVGraph, and
//! its properties from the file of the same name that ends with `.properties`.

use apoidea_crawl::sim::ordering::{self, PageGraph};
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args().nth(1).ok_or("name the file of a graph")?;
    let file = PathBuf::from(file);
    let properties = fs::read_to_string(file.with_extension("properties"))?;
    let graph = PageGraph::read(&fs::read(&file)?, &properties)?;
    println!("{}", ordering::compare(&graph, 1));
    Ok(())
}
