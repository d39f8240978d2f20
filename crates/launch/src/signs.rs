//! Signs of life between `mpiexec` and its agents, in both directions. A host that loses its power or its cables does not close its
//! connections. Only its silence shows that the host is gone.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The variable with the interval between two signs of life.
pub const INTERVAL: &str = "WEFT_ALIVE_INTERVAL";
/// The variable with the maximum time of silence. After this time the job ends.
pub const TIMEOUT: &str = "WEFT_ALIVE_TIMEOUT";

/// Times of the signs of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliveTimes {
    /// Time between two signs.
    pub interval: Duration,
    /// Maximum time of silence, after which the other end counts as lost. Zero means that it never counts as lost.
    pub timeout: Duration,
}

impl Default for AliveTimes {
    fn default() -> Self {
        AliveTimes { interval: Duration::from_secs(10), timeout: Duration::from_secs(60) }
    }
}

impl AliveTimes {
    /// Checks that the maximum time of silence is long enough for several signs.
    pub fn check(self) -> Result<(), String> {
        let AliveTimes { interval, timeout } = self;
        if timeout.is_zero() || (!interval.is_zero() && interval <= timeout / 2) {
            return Ok(());
        }
        Err(format!(
            "signs of life each {} s (-alive-interval, {INTERVAL}) do not suit an end after {} s without \
             (-alive-timeout, {TIMEOUT}): the first is more than 0, and at most half of the second",
            interval.as_secs_f64(),
            timeout.as_secs_f64()
        ))
    }
}

/// Signs of life on one connection. All times are on the owner's clock.
#[derive(Debug)]
pub struct Pulse {
    signs: AliveTimes,
    heard: Instant,
    next: Instant,
}

impl Pulse {
    /// Creates a pulse at the time `now`, at which the other end sent its last message.
    pub fn new(signs: AliveTimes, now: Instant) -> Self {
        Pulse { signs, heard: now, next: now + signs.interval }
    }

    /// Records that bytes have arrived from the other end.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Returns true if a sign must be sent now. In this case, schedules the next sign after another interval.
    pub fn is_due(&mut self, now: Instant) -> bool {
        let is_due = !self.signs.timeout.is_zero() && self.next <= now;
        if is_due {
            self.next = now + self.signs.interval;
        }
        is_due
    }

    /// Returns true if the other end has been silent for too long, or will have been silent for too long after `spare` more
    /// intervals.
    pub fn is_silent(&self, now: Instant, spare: u32) -> bool {
        let AliveTimes { interval, timeout } = self.signs;
        let silence = now.saturating_duration_since(self.heard) + interval * spare;
        !timeout.is_zero() && silence >= timeout
    }

    /// Returns the earlier of two times: when a sign must be sent, and when the other end counts as lost.
    pub fn deadline(&self) -> Option<Instant> {
        let AliveTimes { timeout, .. } = self.signs;
        (!timeout.is_zero()).then(|| self.next.min(self.heard + timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_given_in_time_and_a_silence_is_seen() {
        let second = Duration::from_secs(1);
        let begin = Instant::now();
        let mut pulse = Pulse::new(AliveTimes { interval: second, timeout: 3 * second }, begin);
        let given = (0..30).filter(|tenths| pulse.is_due(begin + second / 10 * *tenths)).count();
        assert_eq!(given, 2);
        pulse.heard(begin + second);
        assert!(!pulse.is_silent(begin + 3 * second, 0) && pulse.is_silent(begin + 3 * second, 1));
        assert!(pulse.is_silent(begin + 4 * second, 0));
        assert_eq!(pulse.deadline(), Some(begin + 3 * second));
        let never = AliveTimes { interval: second, timeout: Duration::ZERO };
        let mut pulse = Pulse::new(never, begin);
        let later = begin + Duration::from_secs(1 << 20);
        assert!(!pulse.is_due(later) && !pulse.is_silent(later, 1) && pulse.deadline().is_none());
    }

    #[test]
    fn times_that_do_not_suit_each_other_are_refused() {
        let signs = |interval, timeout| AliveTimes {
            interval: Duration::from_millis(interval),
            timeout: Duration::from_millis(timeout),
        };
        for good in [signs(10, 20), signs(0, 0), signs(5, 0)] {
            assert_eq!(good.check(), Ok(()));
        }
        for bad in [signs(10, 19), signs(0, 5)] {
            assert!(bad.check().unwrap_err().contains(TIMEOUT));
        }
    }
}
