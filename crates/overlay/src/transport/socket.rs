//! UDP sockets, opened the best way that the system allows.
//!
//! Quinn's own sockets send many datagrams per call and read congestion marks. Setting them up
//! fails where a system or an emulator does not know the options. [`Plain`] is the fallback: one
//! datagram per call.

use super::Sockets;
use quinn::{
    AsyncUdpSocket, Runtime, TokioRuntime, UdpPoller,
    udp::{RecvMeta, Transmit},
};
use socket2::{Domain, Protocol, Socket, Type};
use std::{
    fmt,
    future::Future,
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::io::ReadBuf;

/// Opens a socket for one address family.
pub(crate) fn open(address: SocketAddr, sockets: Sockets) -> io::Result<Arc<dyn AsyncUdpSocket>> {
    let socket = bind(address)?;
    if sockets == Sockets::Plain {
        return Plain::over(socket);
    }
    let spare = socket.try_clone()?;
    match TokioRuntime.wrap_udp_socket(socket) {
        Ok(socket) => Ok(socket),
        Err(error) => {
            tracing::info!(%error, "the system lacks some socket options: falling back to plain UDP");
            Plain::over(spare)
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A socket that sends and receives one datagram per call and sets no options.
#[derive(Debug)]
struct Plain {
    socket: tokio::net::UdpSocket,
}

impl Plain {
    fn over(socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        Ok(Arc::new(Plain {
            socket: tokio::net::UdpSocket::from_std(socket)?,
        }))
    }
}

impl AsyncUdpSocket for Plain {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable {
            socket: self,
            waiting: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        match self
            .socket
            .try_send_to(transmit.contents, transmit.destination)
        {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
            // Anything else is a datagram lost on the way, which QUIC is made for.
            _ => Ok(()),
        }
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let (Some(buffer), Some(meta)) = (buffers.first_mut(), meta.first_mut()) else {
            return Poll::Ready(Ok(0));
        };
        let mut buffer = ReadBuf::new(buffer);
        let from = ready!(self.socket.poll_recv_from(context, &mut buffer))?;
        let length = buffer.filled().len();
        *meta = RecvMeta {
            addr: from,
            len: length,
            stride: length,
            ecn: None,
            dst_ip: None,
        };
        Poll::Ready(Ok(1))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// Wakes one task when the socket can be written to. Each has its own future, since a socket's poll
/// function keeps only the last waker.
struct Writable {
    socket: Arc<Plain>,
    waiting: Option<Waiting>,
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.socket.clone();
        let waiting = self
            .waiting
            .get_or_insert_with(|| Box::pin(async move { socket.socket.writable().await }));
        let outcome = ready!(waiting.as_mut().poll(context));
        self.waiting = None;
        Poll::Ready(outcome)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writable").finish_non_exhaustive()
    }
}
