//! The tasks behind a web's sockets: they accept, serve, and end together.

use crate::connection::Server;
use std::{net::SocketAddr, sync::Arc, time::Duration};
use tokio::{
    net::{TcpListener, TcpStream},
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// How long to wait when the system refuses another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// A client that has not finished its TLS handshake after so long is disconnected.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Every task of a web; they end when this is stopped or dropped.
#[derive(Default)]
pub(crate) struct Service {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Service {
    /// Runs something until the end.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks
            .spawn(self.stop.clone().run_until_cancelled_owned(task));
    }

    /// Serves every connection to some listeners, over TLS if there is an acceptor for it.
    pub(crate) fn serve(
        &self,
        listeners: Vec<TcpListener>,
        server: Server,
        tls: Option<TlsAcceptor>,
    ) {
        let server = Arc::new(server);
        for listener in listeners {
            let door = Door {
                server: server.clone(),
                tls: tls.clone(),
                tasks: self.tasks.clone(),
                stop: self.stop.clone(),
            };
            self.spawn(door.accept(listener));
        }
    }

    /// Ends every task and waits for it.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// What an accepting task needs.
struct Door {
    server: Arc<Server>,
    tls: Option<TlsAcceptor>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Door {
    async fn accept(self, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((socket, client)) => {
                    let serve = serve(self.server.clone(), self.tls.clone(), socket, client);
                    self.tasks
                        .spawn(self.stop.clone().run_until_cancelled_owned(serve));
                }
                Err(error) => {
                    tracing::debug!(%error, "a connection was not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

async fn serve(
    server: Arc<Server>,
    tls: Option<TlsAcceptor>,
    socket: TcpStream,
    client: SocketAddr,
) {
    let Ok(local) = socket.local_addr() else {
        return;
    };
    let _ = socket.set_nodelay(true);
    let connection = server.log.connected(local, client);
    let result = match tls {
        None => server.serve(socket, connection).await,
        Some(tls) => match timeout(HANDSHAKE, tls.accept(socket)).await {
            Ok(Ok(socket)) => server.serve(socket, connection).await,
            Ok(Err(error)) => Err(error),
            Err(late) => Err(late.into()),
        },
    };
    if let Err(error) = result {
        tracing::debug!(%error, %client, "a connection ended early");
    }
    server.log.disconnected(connection);
}
