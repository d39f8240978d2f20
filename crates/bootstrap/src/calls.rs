//! System calls in a process whose signals, stops and descriptors belong to the program. Calls are repeated after a signal, waits
//! do not count the time of a stop, and descriptors 0 to 2 are not used.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{SocketAddr, UnixStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow};

use crate::limits;

/// Repeats a call until no signal has interrupted it. The call must have had no effect when it is interrupted. So close(2), and
/// connect(2) to a network address, must not be repeated by this function.
pub fn repeat<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Result of a C function that is negative if errno has the reason of a failure.
pub trait Returned: Copy + PartialOrd + Default {}
impl Returned for i32 {}
impl Returned for isize {}
impl Returned for i64 {}

/// Calls a C function once. A negative result is an error.
pub fn once<N: Returned>(call: impl FnOnce() -> N) -> io::Result<N> {
    let result = call();
    if result < N::default() { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Repeats a call of a C function until no signal has interrupted it.
pub fn repeat_c<N: Returned>(mut call: impl FnMut() -> N) -> io::Result<N> {
    repeat(|| once(&mut call))
}

/// Connects to a Unix socket. Waits while the queue of the socket is full.
pub fn connect(address: &SocketAddr) -> io::Result<UnixStream> {
    // Unlike connect(2) to a network address, connect(2) to a Unix socket has had no effect when it is interrupted.
    repeat(|| UnixStream::connect_addr(address))
}

/// Starts a thread of the library with all signals blocked, so that the program's threads handle them. An error names the limit
/// that was reached.
pub fn start_thread<T: Send + 'static>(
    name: &str,
    run: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    // The thread inherits the mask.
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    if let Ok(before) = before {
        let _ = before.thread_set_mask();
    }
    started.map_err(|error| io::Error::new(error.kind(), limits::explain(&error)))
}

/// A limit on waiting that counts only the time in which this process ran, and not the time in which the process was stopped or
/// the machine was suspended. For loops that wait for at most [`Patience::step`] in each turn.
#[derive(Debug)]
pub struct Patience {
    left: Duration,
    looked: Instant,
}

impl Patience {
    /// Maximum wait of one turn. A turn of more than twice this time was interrupted by a stop.
    const STEP: Duration = Duration::from_millis(200);

    /// Starts to count.
    pub fn new(limit: Duration) -> Self {
        Patience { left: limit, looked: Instant::now() }
    }

    /// Returns the time to wait before the next check. The time is not 0 before the limit has passed.
    pub fn step(&self) -> Duration {
        self.left.min(Self::STEP)
    }

    /// Returns the time to wait before the next check in milliseconds, for poll(2).
    pub fn millis(&self) -> i32 {
        self.step().as_micros().div_ceil(1000) as i32
    }

    /// Counts the time since the last call. Returns true if the limit has passed. Callers check for the awaited event before this
    /// call.
    pub fn is_over(&mut self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.looked);
        self.looked = now;
        self.left = self.left.saturating_sub(since.min(2 * Self::STEP));
        self.left.is_zero()
    }
}

/// Occupation of descriptors 0 to 2 while the value lives. So no file that this process opens meanwhile, even in foreign
/// libraries, becomes the program's standard output. Descriptors that the program had closed are closed again afterwards.
#[derive(Debug)]
pub struct Occupied(#[allow(dead_code, reason = "kept open")] Vec<OwnedFd>);

impl Occupied {
    /// Occupies the free descriptors of 0 to 2.
    pub fn standard() -> Self {
        let mut kept = Vec::new();
        loop {
            // SAFETY: F_GETFD accepts any number, and fails if the number is not an open descriptor.
            let closed = (0..3).any(|fd| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0);
            if !closed {
                return Occupied(kept);
            }
            let null = repeat(|| OpenOptions::new().read(true).write(true).open("/dev/null"));
            match null.map(OwnedFd::from) {
                Ok(null) if null.as_raw_fd() < 3 => kept.push(null),
                // Another thread has taken the descriptor, or there is no /dev/null.
                _ => return Occupied(kept),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupted_calls_are_repeated_and_others_return() {
        let mut results =
            [Err(ErrorKind::Interrupted), Err(ErrorKind::Interrupted), Ok(5)].into_iter();
        assert_eq!(repeat(|| results.next().unwrap().map_err(io::Error::from)).unwrap(), 5);
        let mut calls = 0;
        let failed = repeat(|| {
            calls += 1;
            Err::<(), _>(ErrorKind::NotFound.into())
        });
        assert_eq!((failed.unwrap_err().kind(), calls), (ErrorKind::NotFound, 1));
        // SAFETY: F_GETFD accepts any number, and fails if the number is not an open descriptor.
        assert!(repeat_c(|| unsafe { libc::fcntl(-1, libc::F_GETFD) }).is_err());
    }

    #[test]
    fn a_stop_costs_no_patience() {
        let mut patience = Patience::new(Duration::from_secs(10));
        let mut now = patience.looked;
        for _ in 0..3 {
            now += Duration::from_secs(3600);
            assert!(!patience.is_over_at(now));
        }
        let mut turns = 0;
        while !patience.is_over_at(now) {
            assert!(patience.step() > Duration::ZERO && patience.millis() > 0);
            now += patience.step();
            turns += 1;
        }
        assert!((40..=50).contains(&turns), "{turns}");
    }
}
