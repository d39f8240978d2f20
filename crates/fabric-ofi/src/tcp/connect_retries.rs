//! Retries: a connection that cannot be made is tried again, also over other routes, for the time that `WEFT_OFI_TIMEOUT` sets.
//!
//! ```text
//!   connect ── an error, or nothing within ATTEMPT ──► the next route, at once; after the last route a pause, and all routes again
//!           ── the greeting is cut short ────────────► the same route: the peer's host is there, and had too many strangers
//!   the first failure is longer ago than the patience ──► the peer is lost
//! ```
//! Before a connection is made, no message is sent over it, so no message is lost or doubled. A connection is tried again after
//! every error except an invalid address ([`is_final`]), because the cause may pass: a cable is plugged in again, a firewall is
//! loaded, ports and descriptors become free.

use super::TcpInner;
use super::connection::TcpConnectionState;
use super::tries::Detour;
use nix::sys::socket::sockopt::SocketError;
use nix::sys::socket::{SockaddrStorage, getpeername, getsockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{Expiration, TimerSetTimeFlags};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Maximum time for one try. Within a try the system repeats its request only after 1, 3, 7, 15 seconds, so it would notice late
/// that a network works again.
const ATTEMPT: Duration = Duration::from_secs(2);

/// Returns true if the error says that the address itself is invalid.
fn is_final(error: i32) -> bool {
    matches!(error, libc::EINVAL | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT)
}

impl TcpInner {
    /// Begins to connect to a peer for the first time. If an interface other than the first has led to earlier peers, prefers this
    /// interface.
    pub fn connect_first(&mut self, at: usize) {
        if let Some(better) = self.better {
            self.peers[at].tries.prefer(better);
        }
        self.trying.push(at as u32);
        self.connect(at);
    }

    /// Limits the time in which the system must connect.
    pub fn begins(&mut self, at: usize) {
        self.comes_back(at, ATTEMPT);
    }

    /// Schedules the next step for a peer after `time`.
    fn comes_back(&mut self, at: usize, time: Duration) {
        let due = Some(Instant::now() + time);
        self.peers[at].tries.due = due;
        self.set_timer(due);
    }

    /// Handles a failed try: takes the next route after a pause, or gives the peer up.
    pub fn fails(&mut self, at: usize, error: i32) {
        let (now, patience) = (Instant::now(), self.times.patience);
        let tries = &mut self.peers[at].tries;
        let since = tries.count_failure(error, now);
        if is_final(error) || now.duration_since(since) >= patience {
            return self.end(at, error);
        }
        let pause = tries.pause();
        self.pauses(at, pause);
    }

    /// Handles a connection that has ended during the greeting. If the peer has closed the connection, the peer's host can be
    /// reached, so the same route is tried again.
    pub fn ends_early(&mut self, at: usize, error: i32) {
        if !matches!(error, libc::ECONNRESET | libc::EPIPE) {
            return self.fails(at, error);
        }
        let pause = self.peers[at].tries.count_early_end(error);
        self.pauses(at, pause);
    }

    fn pauses(&mut self, at: usize, pause: Duration) {
        self.unwatch(at);
        self.peers[at].link = TcpConnectionState::Paused;
        self.comes_back(at, pause);
    }

    /// Waits for a while for the connection that the peer makes at the same time.
    pub fn awaits(&mut self, at: usize) {
        self.unwatch(at);
        self.peers[at].link = TcpConnectionState::Awaited;
        self.comes_back(at, ATTEMPT);
    }

    /// Notes a peer that was reached over a route other than the first.
    pub fn notes_detour(&mut self, at: usize) {
        let tries = &self.peers[at].tries;
        if tries.at == 0 {
            return;
        }
        let (first, route, error) = (tries.routes[0], tries.route(), tries.error);
        let from = route.from;
        self.better = from;
        let by = from.map(|from| self.own[from].name.clone());
        let detour = Detour { number: at as u64, first: first.to, error, taken: route.to, by };
        self.detours.push_back(detour);
    }

    /// Does the steps whose time has come.
    pub fn tend(&mut self) {
        // The number of expirations does not matter.
        let _ = self.timer.wait();
        self.timer_at = None;
        let now = Instant::now();
        self.expire_strangers(now);
        for &at in &std::mem::take(&mut self.trying) {
            let peer = &self.peers[at as usize];
            let at = at as usize;
            let is_due = peer.tries.due.is_some_and(|due| due <= now);
            match peer.link {
                TcpConnectionState::None
                | TcpConnectionState::Open(_)
                | TcpConnectionState::Ended(_) => continue,
                TcpConnectionState::Paused | TcpConnectionState::Awaited if is_due => {
                    self.connect(at)
                }
                TcpConnectionState::Connecting(_) if is_due => self.has_taken_too_long(at),
                _ => {}
            }
            if !matches!(self.peers[at].link, TcpConnectionState::Ended(_)) {
                self.trying.push(at as u32);
            }
        }
        let changes = |at: &&u32| {
            let link = &self.peers[**at as usize].link;
            matches!(
                link,
                TcpConnectionState::Paused
                    | TcpConnectionState::Awaited
                    | TcpConnectionState::Connecting(_)
            )
        };
        let tries = self.trying.iter().filter(changes);
        let due = tries.filter_map(|&at| self.peers[at as usize].tries.due).min();
        self.set_timer(due.into_iter().chain(self.door.due()).min());
    }

    /// Ends a try whose time has run out. If this process has not polled for a while, the system may have connected long ago.
    fn has_taken_too_long(&mut self, at: usize) {
        let TcpConnectionState::Connecting(socket) = &self.peers[at].link else { return };
        if getpeername::<SockaddrStorage>(socket.as_raw_fd()).is_ok() {
            return self.is_connected(at);
        }
        let error = getsockopt(socket, SocketError).unwrap_or(0);
        self.fails(at, if error == 0 { libc::ETIMEDOUT } else { error });
    }

    /// Sets the timer for `due`, so that even a sleeping process polls then.
    pub fn set_timer(&mut self, due: Option<Instant>) {
        let Some(due) = due else { return };
        if self.timer_at.is_some_and(|before| before <= due) {
            return;
        }
        self.timer_at = Some(due);
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1));
        let once = Expiration::OneShot(TimeSpec::from_duration(left));
        // timerfd_settime fails only for invalid arguments.
        let _ = self.timer.set(once, TimerSetTimeFlags::empty());
    }

    /// Stops the timer if nothing waits for it any more. Otherwise it would wake a sleeping thread for nothing.
    pub fn stop_idle_timer(&mut self) {
        if self.trying.is_empty()
            && self.door.strangers.is_empty()
            && self.timer_at.take().is_some()
        {
            // timerfd_settime fails only for invalid arguments.
            let _ = self.timer.unset();
        }
    }
}
