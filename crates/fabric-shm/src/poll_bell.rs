//! A doorbell for a rank that sleeps in poll(2), because it also waits for a network. A peer that rings sends a datagram to an
//! abstract socket of the rank, in addition to the futex. The rank has two such sockets, for the program's threads and for the
//! helper.
//!
//! Contract. The owner binds its sockets, and notes this in its control block before the closing fence of the connection. The owner
//! arms its [`Doorbell`] before a sleep. A ring that sees the announcement makes the socket readable. The socket stays readable
//! until the owner has emptied it, after the sleep. So no ring is lost, and a ring that came too late ends the next sleep early.
//! Datagrams from strangers have no other effect.
//!
//! [`Doorbell`]: weft_fabric::wait::Doorbell

use crate::segment::Segment;
use crate::sync::Ordering;
use arrayvec::ArrayString;
use std::cell::OnceCell;
use std::fmt::Write;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use weft_bootstrap::calls::Occupied;

/// The sleeping part of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SleepingPart {
    Main,
    Helper,
}

/// Returns the address of a socket of `rank`. Only the job's ranks know the secret in its name.
fn address(segment: &Segment, rank: usize, who: SleepingPart) -> io::Result<SocketAddr> {
    let secret = segment.header().secret.load(Ordering::Relaxed);
    let who = match who {
        SleepingPart::Main => "bell",
        SleepingPart::Helper => "helper",
    };
    // Does not allocate memory, because signal handlers also ring.
    let mut name = ArrayString::<64>::new();
    write!(name, "weft-{who}-{secret:016x}-{rank}").map_err(|_| io::ErrorKind::InvalidInput)?;
    SocketAddr::from_abstract_name(name.as_str())
}

fn bound(segment: &Segment, rank: usize, who: SleepingPart) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::bind_addr(&address(segment, rank, who)?)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// This rank's end: the sockets on which it sleeps, and from which it rings for other ranks.
#[derive(Debug)]
struct PollBell {
    socket: UnixDatagram,
    /// The helper's socket; `None` if this rank itself does not sleep in poll(2).
    helper: Option<UnixDatagram>,
}

impl PollBell {
    /// Creates the end of a rank that only rings.
    fn sender() -> io::Result<PollBell> {
        let _occupied = Occupied::standard();
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(PollBell { socket, helper: None })
    }

    /// Creates the end of a rank that also sleeps on its sockets.
    fn bind(segment: &Segment, rank: usize) -> io::Result<PollBell> {
        let socket = bound(segment, rank, SleepingPart::Main)?;
        let helper = Some(bound(segment, rank, SleepingPart::Helper)?);
        segment.control(rank).facts.0.polls.store(1, Ordering::Release);
        Ok(PollBell { socket, helper })
    }

    /// Returns the descriptor that becomes readable when a peer rings for `who`. The reader empties the descriptor.
    fn descriptor(&self, who: SleepingPart) -> Option<BorrowedFd<'_>> {
        let helper = self.helper.as_ref()?;
        Some(if who == SleepingPart::Helper { helper.as_fd() } else { self.socket.as_fd() })
    }

    /// Rings for a sleeping part of `rank`. A socket with a full queue is readable already. If the rank has ended, the ring has no
    /// effect.
    fn ring(&self, segment: &Segment, rank: usize, who: SleepingPart) {
        if let Ok(address) = address(segment, rank, who) {
            let _ = self.socket.send_to_addr(&[1], &address);
        }
    }
}

/// The sockets of one process.
#[derive(Debug, Default)]
pub struct PollBells {
    /// Sockets of this process, made when first needed. `None` if the system gives no socket; then ranks that sleep in poll(2)
    /// sleep for a second at most.
    own: OnceCell<Option<PollBell>>,
}

impl PollBells {
    /// Creates the sockets of a rank that also sleeps on them.
    pub fn bind(segment: &Segment, rank: usize) -> io::Result<PollBells> {
        Ok(PollBells { own: OnceCell::from(Some(PollBell::bind(segment, rank)?)) })
    }

    /// Returns the descriptor that becomes readable when a sleeping part of this rank is rung for.
    pub fn descriptor(&self, who: SleepingPart) -> Option<BorrowedFd<'_>> {
        self.own.get()?.as_ref()?.descriptor(who)
    }

    /// Rings for a sleeping part of `rank`.
    pub fn ring(&self, segment: &Segment, rank: usize, who: SleepingPart) {
        if let Some(bell) = self.own.get_or_init(|| PollBell::sender().ok()) {
            bell.ring(segment, rank, who);
        }
    }
}
