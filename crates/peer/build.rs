//! Puts the built dashboard and the table of countries where the program embeds them from.
//!
//! Both are made by `npm run build` in `ui`. Without them the program builds as well: the dashboard
//! is then a page that says how to build it, and no address has a country.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo always names it"));
    let ui = package.join("../../ui");
    println!("cargo::rerun-if-changed={}", ui.join("dist").display());
    println!(
        "cargo::rerun-if-changed={}",
        ui.join("unbuilt.html").display()
    );
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo always names it"));
    let (built, site) = (ui.join("dist/site"), out.join("site"));
    if site.exists() {
        fs::remove_dir_all(&site)?;
    }
    fs::create_dir_all(&site)?;
    if built.join("index.html").exists() {
        copy_folder(&built, &site)?;
    } else {
        fs::copy(ui.join("unbuilt.html"), site.join("index.html"))?;
    }
    let (countries, embedded) = (
        ui.join("dist/countries.mmdb.br"),
        out.join("countries.mmdb.br"),
    );
    if countries.exists() {
        fs::copy(countries, embedded).map(drop)
    } else {
        fs::write(embedded, [])
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir_all(&target)?;
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
