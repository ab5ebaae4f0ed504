//! Black-box tests: real peers as processes of their own, on a web whose truth is known, judged by
//! what the servers saw.
//!
//! Each file below is either one thing that tests need (a peer, a contract, an archive's contents)
//! or one promise of the program with its tests. All wait on what can be observed, with a deadline;
//! none sleeps for a fixed time.

// All of this crate is tests, where a panic is the message.
#![allow(clippy::unwrap_used)]

mod archived;
mod changing_site;
mod command_line;
mod contract;
mod desktop;
mod docs_site;
mod door;
mod durability;
mod everything;
mod fresh_pages;
mod fresh_swarm;
mod governor;
mod governor_absence;
mod governor_idle;
mod hostile;
mod house_style;
mod interruption;
mod lab_swarm;
mod lab_wires;
mod local_api;
mod local_api_impostor;
mod memory;
mod name_server;
mod namespace;
mod nginx;
mod one_address;
mod patience;
mod peer_process;
mod private_networks;
mod ring_fixed;
mod ring_local_network;
mod ring_partition;
mod ring_processes;
mod ring_swarm;
mod scripted_site;
mod swarm_crawl;
mod swarm_trial;
mod toy;
mod watching;
