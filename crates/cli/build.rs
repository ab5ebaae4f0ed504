//! Gives the Windows program its icon and its version, which the system shows among a file's
//! properties.

fn main() -> std::io::Result<()> {
    println!("cargo:rerun-if-changed=../../src-tauri/icons/icon.ico");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("windows") {
        return Ok(());
    }
    let mut resource = tauri_winres::WindowsResource::new();
    resource.set_icon("../../src-tauri/icons/icon.ico");
    resource
        .set("ProductName", "Apoidea")
        .set("FileDescription", "Apoidea, the headless peer");
    resource.set("OriginalFilename", "apoidea.exe").compile()
}
