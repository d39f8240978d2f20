//! Time as this process has lived through it: a stop (SIGSTOP, a frozen container, a machine that
//! slept) is none. So nothing is late only because nobody was there to see that it came in time.

use std::time::{Duration, Instant};

use nix::poll::PollTimeout;

/// Longest sleep while something is due at some time.
const STEP: Duration = Duration::from_millis(250);
/// What a sleep may take longer on a machine with much else to do. The rest was a stop.
const SLACK: Duration = Duration::from_millis(250);

/// The clock of one loop, which looks at it after each sleep.
pub struct Clock {
    now: Instant,
    looked: Instant,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        Clock { now, looked: now }
    }

    /// The time of the last look. It means something only against other times of this clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// How long to sleep at most, if something is due at `deadline`.
    pub fn until(&self, deadline: Option<Instant>) -> PollTimeout {
        deadline.map_or(PollTimeout::NONE, |deadline| {
            let rest = deadline.saturating_duration_since(self.now).min(STEP);
            // Rounded up: earlier would mean to turn until it has passed.
            PollTimeout::from(rest.as_micros().div_ceil(1000) as u16)
        })
    }

    /// Looks at the clock, after a sleep.
    pub fn look(&mut self) {
        self.look_at(Instant::now());
    }

    fn look_at(&mut self, real: Instant) {
        let passed = real.saturating_duration_since(self.looked);
        self.looked = real;
        self.now += passed.min(STEP + SLACK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_is_no_time_and_sleeps_are() {
        let mut clock = Clock::new();
        let (begin, mut real) = (clock.now(), clock.looked);
        let deadline = begin + Duration::from_secs(2);
        for _ in 0..3 {
            // An hour of being stopped.
            real += Duration::from_secs(3600);
            clock.look_at(real);
        }
        assert!(clock.now() < deadline);
        let mut sleeps = 0;
        while clock.now() < deadline {
            let sleep = u64::from(clock.until(Some(deadline)).as_millis().unwrap());
            assert!(sleep > 0);
            real += Duration::from_millis(sleep);
            clock.look_at(real);
            sleeps += 1;
        }
        assert!(sleeps >= 2);
        assert_eq!(clock.until(Some(deadline)), PollTimeout::ZERO);
        assert_eq!(clock.until(None), PollTimeout::NONE);
    }
}
