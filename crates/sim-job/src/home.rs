//! The home of a job: the processor on which the simulation stays, and to which ranks come for their turns.

use std::time::{Duration, Instant};
use weft_fabric_sim_client::ThreadStay;

/// Part of the time for which the simulation may wait for its processor, as a divisor. A thread that shares a processor with one busy
/// program waits for up to half of the time; the simulation waits for less, because its ranks run on the same processor.
const WAITS: u32 = 8;

/// Number of turns without a home, in which the system moves the simulation to a processor that has time.
const FREE_TURNS: u64 = 8;

/// The home, or the search for another home.
pub struct JobHome {
    stay: Option<ThreadStay>,
    processor: usize,
    checked: Instant,
    /// Time at the last check for which this thread had waited for its processor.
    delayed: Duration,
    /// Number of turns until the simulation settles. `u64::MAX`: the system lets no thread choose its processor.
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
            self.free_turns -= u64::from(self.free_turns < u64::MAX);
            return None;
        }
        if self.stay.is_none() {
            self.processor = ThreadStay::processor().unwrap_or(0);
            self.stay = ThreadStay::on(self.processor);
            if self.stay.is_none() {
                self.free_turns = u64::MAX;
            }
        }
        self.stay.as_ref().map(|_| self.processor)
    }

    /// Returns true if the simulation has a home.
    pub fn stays(&self) -> bool {
        self.stay.is_some()
    }

    /// Looks for another home if other programs need this processor. The caller calls this function now and then.
    pub fn check(&mut self) {
        let (elapsed, delayed) = (self.checked.elapsed(), delay());
        if is_taken(delayed.saturating_sub(self.delayed), elapsed) {
            self.leave();
        }
        (self.checked, self.delayed) = (Instant::now(), delayed);
    }

    /// Lets the system move the simulation to another processor.
    fn leave(&mut self) {
        if self.stay.take().is_some() {
            self.free_turns = FREE_TURNS;
        }
    }
}

/// Returns true if other programs need the processor, for which a thread has waited for a part of a time.
fn is_taken(waited: Duration, elapsed: Duration) -> bool {
    waited > elapsed / WAITS
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
        // A new thread has waited for a small part of an hour.
        home.checked -= Duration::from_secs(3600);
        home.check();
        assert!(home.stays());
        home.leave();
        assert!(!home.stays());
        home.free_turns = 2;
        assert_eq!((home.next_turn(), home.next_turn()), (None, None));
        assert!(home.next_turn().is_some());
    }

    #[test]
    fn a_processor_is_taken_if_the_thread_waits_for_it() {
        let second = Duration::from_secs(1);
        assert!(is_taken(second / 3, second) && !is_taken(second / 10, second));
    }

    #[test]
    fn a_system_that_refuses_is_asked_once() {
        let mut home = JobHome { free_turns: u64::MAX, ..JobHome::new() };
        assert_eq!((home.next_turn(), home.next_turn()), (None, None));
        assert_eq!(home.free_turns, u64::MAX);
    }
}
