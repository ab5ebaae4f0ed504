//! A network whose members stand in the settings file: who owns what needs no ring, and outsiders
//! stay outside.

use crate::{peer_process::Launch, ring_swarm::Swarm};
use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    time::Duration,
};

/// Members are asked every 15 s whether they are there, and given two chances of 10 s.
const PATIENCE: Duration = Duration::from_secs(120);

/// An address of its own: a port that was free a moment ago on one that all tests share may be
/// another test's by then.
const HOST: &str = "127.0.88.1";

/// A folder for each member, and beside it the settings that all share but for their port.
struct Members {
    folder: PathBuf,
    ports: Vec<u16>,
    ids: Vec<String>,
}

impl Members {
    /// So many peers that have an identity each and are told about each other.
    async fn new(folder: &Path, count: usize) -> Self {
        // Held together, so that all are different.
        let bind = |_| UdpSocket::bind((HOST, 0)).expect("loopback has free ports");
        let held: Vec<UdpSocket> = (0..count).map(bind).collect();
        let port = |socket: &UdpSocket| socket.local_addr().expect("it is bound").port();
        let ports = held.iter().map(port).collect();
        let mut members = Members {
            folder: folder.to_owned(),
            ports,
            ids: Vec::new(),
        };
        for number in 0..count {
            let id = members.refused_id(number).await;
            members.ids.push(id);
        }
        members
    }

    fn data(&self, number: usize) -> PathBuf {
        self.folder.join(format!("peer-{number}"))
    }

    fn launch(&self, number: usize) -> Launch {
        let mut settings = "[network]\noverlay = \"fixed\"\nis_private = true\n".to_owned();
        for (id, port) in self.ids.iter().zip(&self.ports) {
            settings +=
                &format!("[[network.members]]\nid = \"{id}\"\naddresses = [\"{HOST}:{port}\"]\n");
        }
        fs::write(self.data(number).with_extension("toml"), settings).expect("the folder is ours");
        let port = self.ports.get(number).copied().unwrap_or_default();
        let launch = Launch::new(&self.data(number))
            .set("network.port", port)
            .set("archive.keep", false);
        launch.set("network.listen", format!("[\"{HOST}\"]"))
    }

    /// Starts a peer that is not among the members. It says so, and who it is.
    async fn refused_id(&self, number: usize) -> String {
        let words = self.launch(number).refused().await;
        assert!(words.contains("is not among network.members"), "{words}");
        let id = words
            .split(['(', ')'])
            .find(|part| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit()));
        id.unwrap_or_else(|| panic!("it does not say who it is: {words}"))
            .to_owned()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_fixed_network_agree_and_take_over_from_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let members = Members::new(folder.path(), 3).await;
    let launches: Vec<Launch> = (0..3).map(|number| members.launch(number)).collect();
    let mut swarm = Swarm::start(&launches).await;
    let before = swarm.agree("all members are there", PATIENCE).await;
    let ids: Vec<String> = swarm
        .views()
        .await
        .unwrap()
        .iter()
        .map(|view| view.me.to_string())
        .collect();
    assert_eq!(ids, members.ids);

    let gone = swarm.views().await.unwrap()[2].me;
    swarm.peers.remove(2).kill();
    let after = swarm.agree("the others take over", PATIENCE).await;
    for (before, after) in before.iter().zip(&after) {
        let heirs: Vec<_> = before
            .iter()
            .copied()
            .filter(|owner| *owner != gone)
            .collect();
        assert_eq!(&heirs, after, "the next in line is the owner");
    }

    swarm.peers.push(members.launch(2).start().await);
    assert_eq!(swarm.agree("it is back", PATIENCE).await, before);
    members.refused_id(3).await;
}
