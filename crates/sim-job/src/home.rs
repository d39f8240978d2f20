//! The home of a job: the processor on which the simulation stays, and to which ranks come for their turns.

use std::time::{Duration, Instant};
use weft_fabric_sim_client::ThreadStay;

/// Interval between two checks of the home.
const CHECK: Duration = Duration::from_millis(200);

/// Number of turns without a home, in which the system moves the simulation to a processor that has time.
const FREE_TURNS: u64 = 8;

/// The home, or the search for another home.
pub struct JobHome {
    stay: Option<ThreadStay>,
    processor: usize,
    checked: Instant,
    /// Time at the last check for which this thread had waited for its processor.
    delayed: Duration,
    /// Number of turns until the simulation settles.
    free_turns: u64,
}

impl JobHome {
    /// Begins without a home.
    pub fn new() -> JobHome {
        JobHome {
            stay: None,
            processor: 0,
            checked: Instant::now(),
            delayed: delay(),
            free_turns: 0,
        }
    }

    /// Returns the home for the next turn, which begins now.
    pub fn next_turn(&mut self) -> Option<usize> {
        if self.free_turns > 0 {
            self.free_turns -= 1;
            return None;
        }
        if self.stay.is_none() {
            self.processor = ThreadStay::processor()?;
            self.stay = ThreadStay::on(self.processor);
        }
        self.stay.as_ref().map(|_| self.processor)
    }

    /// Returns true if the simulation has a home.
    pub fn stays(&self) -> bool {
        self.stay.is_some()
    }

    /// Looks for another home if other programs need this processor.
    pub fn check(&mut self) {
        let elapsed = self.checked.elapsed();
        if elapsed < CHECK {
            return;
        }
        let delayed = delay();
        if delayed.saturating_sub(self.delayed) > elapsed / 2 {
            self.stay = None;
            self.free_turns = FREE_TURNS;
        }
        (self.checked, self.delayed) = (Instant::now(), delayed);
    }
}

/// Returns the time for which this thread could run, but its processor was taken; 0 if the system does not count it.
fn delay() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "sched_setaffinity")]
    fn a_home_is_found_and_left() {
        let mut home = JobHome::new();
        let first = home.next_turn().expect("a processor");
        assert_eq!(ThreadStay::processor(), Some(first));
        assert!(home.stays() && home.next_turn() == Some(first));
        // A check too early has no effect.
        home.check();
        assert!(home.stays());
        // As if the thread had waited all the time.
        home.checked -= 2 * CHECK;
        home.delayed = Duration::ZERO;
        let waited = delay();
        home.check();
        assert_eq!(home.stays(), waited <= CHECK);
        home.stay = None;
        home.free_turns = 2;
        assert_eq!((home.next_turn(), home.next_turn()), (None, None));
        assert!(home.next_turn().is_some());
    }
}
