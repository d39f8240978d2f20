//! A doorbell for a rank that sleeps in poll(2), because it waits for a network, too: whoever rings
//! sends a datagram to the rank's abstract socket, beside the futex.
//!
//! Contract. The owner binds its socket and says so in its control block before the closing fence of
//! the connection. It arms its [`Doorbell`] before a sleep; a ring that sees that makes the socket
//! readable, and it stays so until the owner has emptied it, after the sleep. So no ring is lost, and
//! one that came too late ends the next sleep early. What strangers send has no other effect.
//!
//! [`Doorbell`]: weft_fabric::wait::Doorbell

use crate::segment::Segment;
use crate::sync::Ordering;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The socket of `rank`, whose name only the job's ranks are told.
fn address(segment: &Segment, rank: usize) -> io::Result<SocketAddr> {
    let secret = segment.header().secret.load(Ordering::Relaxed);
    SocketAddr::from_abstract_name(format!("weft-bell-{secret:016x}-{rank}"))
}

/// This rank's end: what it sleeps on, and from where it rings for others.
#[derive(Debug)]
pub struct PollBell {
    socket: UnixDatagram,
    /// Whether this rank itself sleeps on it.
    own: bool,
}

impl PollBell {
    /// For a rank that only rings.
    pub fn sender() -> io::Result<PollBell> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(PollBell { socket, own: false })
    }

    /// For a rank that sleeps on it, too.
    pub fn bind(segment: &Segment, rank: usize) -> io::Result<PollBell> {
        let socket = UnixDatagram::bind_addr(&address(segment, rank)?)?;
        socket.set_nonblocking(true)?;
        segment.control(rank).facts.0.polls.store(1, Ordering::Release);
        Ok(PollBell { socket, own: true })
    }

    /// What becomes readable; reading empties it.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.own.then(|| self.socket.as_fd())
    }

    /// Rings for `rank`. A full queue is readable already, and a rank that is gone hears nothing.
    pub fn ring(&self, segment: &Segment, rank: usize) {
        if let Ok(address) = address(segment, rank) {
            let _ = self.socket.send_to_addr(&[1], &address);
        }
    }
}
