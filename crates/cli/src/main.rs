//! `apoidea`.
fn main() {}
