//! Writes the first inputs of the target `crawl` to a folder: an honest message of each kind, each
//! by itself and all in one conversation.

use apoidea_peer::fuzzing::Door;
use std::{env, fs, io, path::PathBuf};

fn main() -> io::Result<()> {
    let folder = env::args_os().nth(1).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("name the folder to write to"))?;
    fs::create_dir_all(&folder)?;
    let door = Door::open();
    let samples = door.samples();
    let bodies = samples.iter().map(|(_, bytes)| [&[0], &bytes[..]].concat());
    let all: Vec<Vec<u8>> = bodies.chain([door.replicas()]).collect();
    let messages: Vec<Vec<u8>> = (0u8..).zip(&all).map(|(kind, body)| message(kind, body)).collect();
    for (number, message) in messages.iter().enumerate() {
        fs::write(folder.join(format!("kind-{number}")), message)?;
    }
    // The replicas come first, so that they are there when they are asked for.
    let conversation: Vec<u8> = messages.iter().rev().flatten().copied().collect();
    fs::write(folder.join("conversation"), conversation)
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX).to_le_bytes();
    [&[0, kind], &length[..], body].concat()
}
