//! A clock that does not count the time in which this process was stopped (SIGSTOP, a frozen container, a suspended machine). A
//! stopped process cannot handle events, so no deadline may pass in this time.

use std::time::{Duration, Instant};

use nix::poll::PollTimeout;

/// Maximum length of a sleep while there is a deadline.
const STEP: Duration = Duration::from_millis(250);
/// Maximum delay of the end of a sleep on a busy machine. A longer delay means that the process was stopped.
const SLACK: Duration = Duration::from_millis(250);

/// Clock of an event loop, which calls [`Clock::look`] after each sleep.
pub struct Clock {
    now: Instant,
    looked: Instant,
    /// Length of the planned sleep.
    planned: Duration,
}

impl Clock {
    pub fn new() -> Self {
        let now = Instant::now();
        Clock { now, looked: now, planned: STEP }
    }

    /// Returns the time of the last [`Clock::look`]. It can be compared only with other times of the same clock.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the maximum time to sleep until `deadline` or `patient`. A sleep until `deadline` is divided into short steps. A
    /// sleep until `patient` is not divided. If the process is stopped during such a sleep, the clock may count the whole planned
    /// sleep.
    pub fn until(&mut self, deadline: Option<Instant>, patient: Option<Instant>) -> PollTimeout {
        let rest = |until: Instant| until.saturating_duration_since(self.now);
        let short = deadline.map(|deadline| rest(deadline).min(STEP));
        let sleep = short.into_iter().chain(patient.map(rest)).min();
        self.planned = sleep.unwrap_or(STEP).max(STEP);
        sleep.map_or(PollTimeout::NONE, |sleep| {
            // The time is rounded up, because the event loop would spin if a sleep ended too early.
            let milliseconds = sleep.as_micros().div_ceil(1000);
            i32::try_from(milliseconds)
                .ok()
                .and_then(|ms| ms.try_into().ok())
                .unwrap_or(PollTimeout::MAX)
        })
    }

    /// Advances the clock after a sleep, without the time in which the process was stopped.
    pub fn look(&mut self) {
        self.look_at(Instant::now());
    }

    fn look_at(&mut self, real: Instant) {
        let passed = real.saturating_duration_since(self.looked);
        self.looked = real;
        self.now += passed.min(self.planned + SLACK);
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
            // The process is stopped for an hour.
            real += Duration::from_secs(3600);
            clock.look_at(real);
        }
        assert!(clock.now() < deadline);
        let mut sleeps = 0;
        while clock.now() < deadline {
            let sleep = u64::from(clock.until(Some(deadline), None).as_millis().unwrap());
            assert!(sleep > 0);
            real += Duration::from_millis(sleep);
            clock.look_at(real);
            sleeps += 1;
        }
        assert!(sleeps >= 2);
        assert_eq!(clock.until(Some(deadline), None), PollTimeout::ZERO);
        assert_eq!(clock.until(None, None), PollTimeout::NONE);
    }

    #[test]
    fn a_patient_sleep_is_long_and_a_stop_is_one() {
        let mut clock = Clock::new();
        let (begin, second) = (clock.now(), Duration::from_secs(1));
        let far = Some(begin + 10 * second);
        assert_eq!(clock.until(None, far).as_millis(), Some(10_000));
        assert_eq!(clock.until(far, far).as_millis(), Some(250));
        let _ = clock.until(None, far);
        clock.look_at(begin + Duration::from_secs(3600));
        let passed = clock.now() - begin;
        assert!(passed >= 10 * second && passed < 11 * second, "{passed:?}");
    }
}
