//! The way to a peer's API: it listens at 127.0.0.1 of its own namespace, and a thread there
//! connects it with the same port here. So a test asks a peer of the lab as it asks any other.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::{
    fs::File,
    net::{Ipv4Addr, TcpListener},
    os::fd::AsFd,
    thread,
};
use tokio::{io, net, runtime};

/// Connects a port of 127.0.0.1 here with the same port in the namespace at a path.
pub(super) fn start(namespace: &str, port: u16) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let namespace = File::open(namespace).unwrap();
    thread::spawn(move || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(serve(listener, port));
    });
}

async fn serve(listener: TcpListener, port: u16) {
    let listener = net::TcpListener::from_std(listener).unwrap();
    while let Ok((mut here, _)) = listener.accept().await {
        tokio::spawn(async move {
            // A peer that does not run answers nobody.
            if let Ok(mut there) = net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
                let _ = io::copy_bidirectional(&mut here, &mut there).await;
            }
        });
    }
}
