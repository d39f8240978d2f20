//! The state of a TCP connection to a peer, and the times after which the kernel gives the connection up.

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{
    KeepAlive, TcpKeepCount, TcpKeepIdle, TcpKeepInterval, TcpUserTimeout,
};
use std::os::fd::AsFd;
use std::time::Duration;

/// State of the connection to a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// The provider does not use TCP, or this process cannot see the provider's connections.
    Unknown,
    There,
    /// The peer's host has not answered yet.
    BeingMade,
    Gone,
}

/// Number of unanswered probes of an idle connection, after which the connection counts as broken.
const PROBES: u32 = 5;

/// Times after which a silent peer is probed, and after which a host that acknowledges nothing counts as lost.
#[derive(Debug, Clone, Copy)]
pub struct KeepaliveTimes {
    pub keepalive: Duration,
    pub patience: Duration,
}

/// Sets the times after which the kernel gives up a connection. If the kernel refuses, the connection keeps the system's times.
pub fn limit(fd: &impl AsFd, times: KeepaliveTimes) {
    let seconds =
        |time: Duration| u32::try_from(time.as_secs().max(1)).unwrap_or(u32::MAX).min(32_000);
    let patience = seconds(times.patience);
    let _ = setsockopt(fd, TcpUserTimeout, &patience.saturating_mul(1000));
    let _ = setsockopt(fd, TcpKeepIdle, &seconds(times.keepalive));
    let _ = setsockopt(fd, TcpKeepInterval, &(patience / PROBES).max(1));
    let _ = setsockopt(fd, TcpKeepCount, &PROBES);
    let _ = setsockopt(fd, KeepAlive, &true);
}
