//! Processor time of a thread, with few system calls.
//!
//! ```text
//!   program    ── computes ─┐         ┌─ computes ─┐                       ┌─ computes for long ─┐
//!   library                 └─ call  ─┘            └─ call that sleeps ... ┘                     └─ call
//!   clock         steady        steady     steady         processor time        processor time
//! ```
//! The steady clock is read without a system call, but it also counts the turns of other programs. So pieces of up to [`SHORT`] are
//! measured by the steady clock, and longer pieces by the thread's processor time.

use crate::system_clock::steady_time;
use std::cell::Cell;

/// Longest piece that the steady clock measures, in nanoseconds. The processor time takes a system call, which would be longer than what
/// it measures.
const SHORT: u64 = 20_000;

/// Highest cost of the measurement itself, in nanoseconds: about ten misses of the caches. A program that always computes for longer between
/// its calls loses no more than this.
const MOST_COST: u64 = 300;

thread_local! {
    /// Cost of the measurement itself, in nanoseconds: the least time so far between two calls. It cannot be measured before the program
    /// runs, because the code of a call leaves the caches during a turn of another rank.
    static COST: Cell<u64> = const { Cell::new(MOST_COST) };
}

/// Both clocks of a thread at a moment, in nanoseconds.
#[derive(Clone, Copy)]
pub struct ThreadClock {
    processor: u64,
    steady: u64,
}

impl ThreadClock {
    /// Returns the clocks now. `last` are the clocks at a moment before, if there is such a moment.
    pub fn after(last: Option<ThreadClock>) -> ThreadClock {
        let steady = steady_time();
        if let Some(last) = last
            && let passed = steady.saturating_sub(last.steady)
            && passed <= SHORT
        {
            return ThreadClock { processor: last.processor + passed, steady };
        }
        let processor = processor_time();
        ThreadClock { processor, steady: steady_time() }
    }

    /// Returns the computing since that moment, in nanoseconds, without the cost of the measurement.
    pub fn computed(self) -> u64 {
        let steady = steady_time().saturating_sub(self.steady);
        if steady > SHORT {
            return processor_time().saturating_sub(self.processor);
        }
        let cost = COST.get().min(steady);
        COST.set(cost);
        steady - cost
    }
}

/// Returns the processor time of the calling thread in nanoseconds.
fn processor_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The system call itself, because this library may replace the C library's function.
    // SAFETY: `now` is a local variable. Linux always has this clock.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Computes until the thread's processor time has advanced by `nanos`.
    fn compute(nanos: u64) {
        let end = processor_time() + nanos;
        while processor_time() < end {}
    }

    #[test]
    fn sleep_is_no_computing_and_no_part_of_a_later_piece() {
        let call = ThreadClock::after(None);
        std::thread::sleep(Duration::from_millis(20));
        assert!(call.computed() < 10_000_000, "the sleep was counted");
        // A call that sleeps, and then computing for long.
        let end = ThreadClock::after(Some(call));
        compute(3_000_000);
        let computed = end.computed();
        assert!((3_000_000..10_000_000).contains(&computed), "{computed} ns");
    }

    #[test]
    fn short_pieces_follow_the_steady_clock_and_long_pieces_the_processor() {
        let mut last = ThreadClock::after(None);
        let mut short = 0;
        for round in 0..1_000 {
            if round % 100 == 99 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let next = ThreadClock::after(Some(last));
            let passed = next.steady - last.steady;
            if passed <= SHORT {
                assert_eq!(next.processor - last.processor, passed);
                short += 1;
            } else {
                assert!(next.processor <= processor_time(), "time that the thread has not used");
            }
            last = next;
        }
        assert!((1..=990).contains(&short), "{short} short pieces");
    }
}
