//! The baton of a slot. Either the rank or the simulation runs, never both.
//!
//! Contract. The word has a side in its lowest bit, and in the next bit a mark that the other side sleeps. A side that runs owns all
//! other fields of the slot. It gives them up by [`Turn::pass`] (release), and owns them again after [`Turn::wait`] (acquire). A
//! side sets the mark only while the other side runs, by a compare-and-swap. So the side that passes sees each mark that was set
//! before, and wakes the sleeper.
//!
//! ```text
//!   rank                               simulation
//!   fields = request                   wait: RANK? mark it, futex wait
//!   word = swap(SIMULATION) ──────────▶ word is SIMULATION: fields belong to the simulation
//!   old had the mark: futex wake
//! ```

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A side of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum TurnSide {
    /// The simulation process.
    Simulation = 0,
    /// The rank.
    Rank = 1,
}

const SLEEPS: u32 = 2;

/// The word that says which side runs.
#[repr(transparent)]
pub struct Turn(AtomicU32);

impl Turn {
    /// Returns true if `side` runs.
    pub fn is(&self, side: TurnSide) -> bool {
        self.0.load(Ordering::Acquire) & 1 == side as u32
    }

    /// Gives the slot to the other side, `to`, and wakes it if it sleeps.
    pub fn pass(&self, to: TurnSide) {
        let before = self.0.swap(to as u32, Ordering::AcqRel);
        if before & SLEEPS != 0 {
            // SAFETY: FUTEX_WAKE only uses the address of the word, which is mapped.
            unsafe {
                libc::syscall(libc::SYS_futex, self.0.as_ptr(), libc::FUTEX_WAKE, 1);
            }
        }
    }

    /// Waits until `side` runs: looks for `spin`, then sleeps. Returns false if `limit` has passed before.
    pub fn wait(&self, side: TurnSide, spin: Duration, limit: Duration) -> bool {
        if self.is(side) {
            return true;
        }
        let began = Instant::now();
        if !spin.is_zero() {
            loop {
                for _ in 0..64 {
                    if self.is(side) {
                        return true;
                    }
                    std::hint::spin_loop();
                }
                if began.elapsed() >= spin {
                    break;
                }
            }
        }
        loop {
            let other = 1 - side as u32;
            let marked = other | SLEEPS;
            let mark = self.0.compare_exchange(other, marked, Ordering::AcqRel, Ordering::Acquire);
            if mark.is_err_and(|now| now & 1 == side as u32) {
                return true;
            }
            let Some(left) = limit.checked_sub(began.elapsed()) else { return self.is(side) };
            let time = libc::timespec {
                tv_sec: left.as_secs() as libc::time_t,
                tv_nsec: left.subsec_nanos() as libc::c_long,
            };
            // SAFETY: FUTEX_WAIT reads the word, which is mapped, and the local `time`.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.as_ptr(),
                    libc::FUTEX_WAIT,
                    marked,
                    &raw const time,
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::sync::Arc;

    struct Shared(Turn, UnsafeCell<u64>);
    // SAFETY: only the side that runs touches the number.
    unsafe impl Sync for Shared {}

    #[test]
    fn sides_take_turns_with_and_without_sleeping() {
        for spin in [Duration::ZERO, Duration::from_micros(50)] {
            let shared = Arc::new(Shared(Turn(AtomicU32::new(0)), UnsafeCell::new(0)));
            let other = shared.clone();
            let rank = std::thread::spawn(move || {
                for _ in 0..10_000 {
                    assert!(other.0.wait(TurnSide::Rank, spin, Duration::from_secs(60)));
                    // SAFETY: the rank runs.
                    unsafe { *other.1.get() += 1 };
                    other.0.pass(TurnSide::Simulation);
                }
            });
            for turn in 0..10_000 {
                // SAFETY: the simulation runs.
                unsafe { assert_eq!(*shared.1.get(), turn) };
                shared.0.pass(TurnSide::Rank);
                assert!(shared.0.wait(TurnSide::Simulation, spin, Duration::from_secs(60)));
            }
            rank.join().unwrap();
        }
    }

    #[test]
    fn a_wait_ends_at_its_limit() {
        let turn = Turn(AtomicU32::new(0));
        assert!(!turn.wait(TurnSide::Rank, Duration::ZERO, Duration::from_millis(5)));
        turn.pass(TurnSide::Rank);
        assert!(turn.wait(TurnSide::Rank, Duration::ZERO, Duration::ZERO));
    }
}
