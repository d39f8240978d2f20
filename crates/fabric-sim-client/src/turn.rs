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
//! The side that has passed its turn may have given up its wait before, so that the mark stands and nobody sleeps: a wake too many.
//! The models at the end of this file check that no turn is lost, and that each field belongs to one side at a time.

use std::time::{Duration, Instant};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering};

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
#[cfg_attr(not(loom), repr(transparent))]
pub struct Turn {
    word: AtomicU32,
    #[cfg(loom)]
    queue: model::FutexQueue,
}

impl Turn {
    /// Returns a word of which the simulation runs first. In a slots file the word is memory of zeros.
    #[cfg(any(test, loom))]
    fn new() -> Turn {
        Turn {
            word: AtomicU32::new(TurnSide::Simulation as u32),
            #[cfg(loom)]
            queue: model::FutexQueue::default(),
        }
    }

    /// Returns true if `side` runs.
    pub fn is(&self, side: TurnSide) -> bool {
        self.word.load(Ordering::Acquire) & 1 == side as u32
    }

    /// Gives the slot to the other side, `to`, and wakes it if it sleeps.
    pub fn pass(&self, to: TurnSide) {
        let before = self.word.swap(to as u32, Ordering::AcqRel);
        if before & SLEEPS != 0 {
            self.futex_wake();
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
            let mark =
                self.word.compare_exchange(other, marked, Ordering::AcqRel, Ordering::Acquire);
            if mark.is_err_and(|now| now & 1 == side as u32) {
                return true;
            }
            let left = limit.checked_sub(began.elapsed()).filter(|left| !left.is_zero());
            let Some(left) = left else { return self.is(side) };
            self.futex_wait(marked, left);
        }
    }
}

#[cfg(not(loom))]
impl Turn {
    fn futex_wait(&self, expected: u32, limit: Duration) {
        let time = libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: limit.subsec_nanos() as libc::c_long,
        };
        // SAFETY: FUTEX_WAIT reads the word, which is mapped, and the local `time`.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.word.as_ptr(),
                libc::FUTEX_WAIT,
                expected,
                &raw const time,
            );
        }
    }

    fn futex_wake(&self) {
        // SAFETY: FUTEX_WAKE only uses the address of the word, which is mapped.
        unsafe {
            libc::syscall(libc::SYS_futex, self.word.as_ptr(), libc::FUTEX_WAKE, 1);
        }
    }
}

/// A model of the kernel's futex for the model checker: the comparison and the start of the sleep are a single step with respect
/// to a wake, and there is no spurious wake.
#[cfg(loom)]
mod model {
    use super::{Ordering, Turn};
    use std::time::Duration;

    #[derive(Debug, Default)]
    pub struct FutexQueue {
        lock: loom::sync::Mutex<()>,
        sleepers: loom::sync::Condvar,
    }

    impl Turn {
        pub(super) fn futex_wait(&self, expected: u32, _limit: Duration) {
            let guard = self.queue.lock.lock().unwrap();
            if self.word.load(Ordering::Relaxed) == expected {
                drop(self.queue.sleepers.wait(guard).unwrap());
            }
        }

        pub(super) fn futex_wake(&self) {
            let _guard = self.queue.lock.lock().unwrap();
            self.queue.sleepers.notify_one();
        }
    }
}

#[cfg(all(test, not(loom)))]
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
            let shared = Arc::new(Shared(Turn::new(), UnsafeCell::new(0)));
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
        let turn = Turn::new();
        assert!(!turn.wait(TurnSide::Rank, Duration::ZERO, Duration::from_millis(5)));
        turn.pass(TurnSide::Rank);
        assert!(turn.wait(TurnSide::Rank, Duration::ZERO, Duration::ZERO));
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// Limit of a wait that ends only when the other side passes its turn.
    const NO_LIMIT: Duration = Duration::from_secs(1 << 40);

    /// Maximum number of switches from a side that could go on, in one order of steps that the model checker tries.
    const PREEMPTIONS: usize = 3;

    /// A slot with one field, which belongs to the side that runs.
    struct ModelSlot {
        turn: Turn,
        field: UnsafeCell<u64>,
    }

    impl ModelSlot {
        fn add_one(&self) {
            // SAFETY: the caller's side runs. The model checker looks for a case in which the other side does, too.
            self.field.with_mut(|field| unsafe { *field += 1 });
        }

        /// Waits for a turn of `side`. Gives up `tries` times before, as a simulation does that looks for the end of processes.
        fn wait(&self, side: TurnSide, tries: usize) {
            let ended = (0..tries).any(|_| self.turn.wait(side, Duration::ZERO, Duration::ZERO));
            if !ended {
                assert!(self.turn.wait(side, Duration::ZERO, NO_LIMIT));
            }
        }
    }

    /// Checks that the sides run in turns for some rounds, that no turn is lost, and that the field belongs to one side at a time.
    fn sides_run_in_turns(rounds: u64, tries: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let turn = Turn::new();
            let slot = Arc::new(ModelSlot { turn, field: UnsafeCell::new(0) });
            let other = slot.clone();
            let rank = loom::thread::spawn(move || {
                for _ in 0..rounds {
                    other.wait(TurnSide::Rank, 0);
                    other.add_one();
                    other.turn.pass(TurnSide::Simulation);
                }
            });
            for _ in 0..rounds {
                slot.add_one();
                slot.turn.pass(TurnSide::Rank);
                slot.wait(TurnSide::Simulation, tries);
            }
            rank.join().unwrap();
            // SAFETY: the other side has ended.
            slot.field.with(|field| assert_eq!(unsafe { *field }, 2 * rounds));
        });
    }

    #[test]
    fn loom_no_turn_is_lost() {
        sides_run_in_turns(2, 0);
    }

    #[test]
    fn loom_a_wait_may_give_up_and_begin_again() {
        sides_run_in_turns(2, 1);
    }
}
