//! Prepares what Tauri compiles into the app: its icons and the Windows manifest.

fn main() {
    tauri_build::build();
}
