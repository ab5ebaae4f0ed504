//! Listening sockets that no crawler may ever connect to. Their addresses appear only in links,
//! redirects and DNS answers that lead into a private network or to a port that is none of a
//! crawler's business.

use crate::service::Service;
use serde::Serialize;
use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::net::TcpListener;

/// Intruders remembered by address; more are not needed to fail a test.
const MAX_INTRUDERS: usize = 1000;

/// The sockets, and who connected to them.
pub struct Honeypot {
    addresses: Vec<SocketAddr>,
    intruders: Arc<Mutex<Vec<Intruder>>>,
}

/// Somebody who connected to a honeypot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Intruder {
    /// The address that was connected to.
    pub to: SocketAddr,
    /// Who did.
    pub from: SocketAddr,
}

impl Honeypot {
    pub(crate) fn start(listeners: Vec<TcpListener>, service: &Service) -> io::Result<Self> {
        let addresses = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<io::Result<_>>()?;
        let intruders = Arc::new(Mutex::new(Vec::new()));
        for listener in listeners {
            service.spawn(watch(listener, intruders.clone()));
        }
        Ok(Honeypot {
            addresses,
            intruders,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Who connected; must be nobody.
    pub fn intruders(&self) -> Vec<Intruder> {
        self.intruders
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

async fn watch(listener: TcpListener, intruders: Arc<Mutex<Vec<Intruder>>>) {
    let Ok(to) = listener.local_addr() else {
        return;
    };
    while let Ok((_, from)) = listener.accept().await {
        let mut intruders = intruders.lock().unwrap_or_else(PoisonError::into_inner);
        if intruders.len() < MAX_INTRUDERS {
            intruders.push(Intruder { to, from });
        }
    }
}
