//! Failed tries to connect to a peer, and the routes to the peer.

use super::routes::TcpRoute;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Half of the first pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Maximum pause between two tries.
const PAUSE_MOST: Duration = Duration::from_secs(1);

/// A peer that was reached over a route other than the first.
pub struct Detour {
    pub number: u64,
    /// Address at which the peer was not reached, and the last errno.
    pub first: SocketAddr,
    pub error: i32,
    pub taken: SocketAddr,
    /// Interface of this process from which the used route starts. `None` means that the system chose the way, over a router.
    pub by: Option<String>,
}

impl Detour {
    /// Returns the error of the first route.
    pub fn why(&self) -> io::Error {
        io::Error::from_raw_os_error(self.error)
    }
}

/// Failed tries to connect to a peer, and the next step.
pub struct Tries {
    pub routes: Vec<TcpRoute>,
    /// Index of the present route.
    pub at: usize,
    /// Successive failures: number of failures, errno of the last failure, and time of the first failure.
    pub failed: u32,
    pub error: i32,
    since: Option<Instant>,
    /// Time at which the present step ends.
    pub due: Option<Instant>,
}

impl Tries {
    pub fn new(routes: Vec<TcpRoute>) -> Tries {
        Tries { routes, at: 0, failed: 0, error: 0, since: None, due: None }
    }

    /// Returns the present route.
    pub fn route(&self) -> TcpRoute {
        self.routes[self.at]
    }

    /// Begins with the route from `interface`, if there is such a route.
    pub fn prefer(&mut self, interface: usize) {
        let found = self.routes.iter().position(|route| route.from == Some(interface));
        self.at = found.unwrap_or(0);
    }

    /// Counts a failure, and goes on to the next route. Returns the time of the first of the successive failures.
    pub fn count_failure(&mut self, error: i32, now: Instant) -> Instant {
        let since = *self.since.get_or_insert(now);
        self.failed = self.failed.saturating_add(1);
        self.error = error;
        self.at = (self.at + 1) % self.routes.len();
        since
    }

    /// Counts a connection that the peer has ended during the greeting. So the peer's host is known to answer. Returns the pause
    /// before the next try.
    pub fn count_early_end(&mut self, error: i32) -> Duration {
        self.since = None;
        self.failed = self.failed.saturating_add(1);
        self.error = error;
        pause(self.failed)
    }

    /// Returns the pause after a failure, which is zero until all routes were tried.
    pub fn pause(&self) -> Duration {
        let rounds = self.failed / self.routes.len() as u32;
        match self.failed % self.routes.len() as u32 {
            0 => pause(rounds),
            _ => Duration::ZERO,
        }
    }
}

/// Returns the pause after `failed` successive failures.
fn pause(failed: u32) -> Duration {
    (PAUSE * 2u32.pow(failed.min(8))).min(PAUSE_MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_come_after_all_ways_and_grow() {
        let to = "10.0.0.1:1".parse().unwrap();
        let mut tries = Tries::new(vec![TcpRoute { to, from: Some(0) }; 3]);
        let pauses: Vec<Duration> = (1..=60)
            .map(|failed| {
                tries.failed = failed;
                tries.pause()
            })
            .collect();
        assert!(pauses.iter().enumerate().all(|(i, pause)| pause.is_zero() == ((i + 1) % 3 != 0)));
        assert_eq!((pauses[2], pauses[59]), (PAUSE * 2, PAUSE_MOST));
    }
}
