//! Yields at random, for threads that wait while threads take turns on processors.
//!
//! ```text
//!   opposite phases            in phase
//!   processor 0   a b a b a    a a a a b b b     a, b: threads of rank 0
//!   processor 1   b a b a b    a a a b b b b     a, b: threads of rank 1; both a exchange messages, and both b
//! ```
//! A thread that waits spins for a while, because its peer may run on another processor, and then yields. If all threads spin equally
//! long, threads in opposite phases stay in them: both processors change their threads at the same time, and every message costs a spin
//! and a yield. So a thread yields at random. As soon as one processor changes its thread and the other one does not, both run threads
//! that exchange messages, which need no yield until their time slices end.
//!
//! Cost, in rounds of a wait. A thread looks every [`RandomYields::ROUNDS`] rounds, and yields at half of its looks. So a yield
//! comes after 2 looks in the mean. In opposite phases, the first look at which any thread yields ends the phases with a
//! probability of 2/3, so they last for 2 looks, and cost 1.5 changes of both processors, in the mean.

use std::cell::Cell;

/// The random numbers of a thread.
///
/// Contract: the numbers of different threads, also of different processes, are independent of each other if the seeds that they are given differ.
#[derive(Debug)]
pub struct RandomYields(Cell<u64>);

impl RandomYields {
    /// Number of rounds of a wait between two looks. In the time between two looks a processor must be able to change its thread, and the new
    /// thread to send its message: otherwise the peer may yield before it gets the message. More rounds cost time where the peer does not
    /// run.
    pub const ROUNDS: u32 = 64;

    /// Creates random numbers without a seed.
    pub const fn new() -> RandomYields {
        RandomYields(Cell::new(0))
    }

    /// Returns true if the thread should yield at this look. `seed` is called at the first look.
    #[inline]
    pub fn is_due(&self, seed: impl FnOnce() -> u64) -> bool {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = match self.0.get() {
            0 => seed(),
            state => state,
        };
        // The generator SplitMix64.
        let state = state.wrapping_add(STEP).max(1);
        self.0.set(state);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed >> 63 != 0
    }
}

impl Default for RandomYields {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::RandomYields;

    /// Returns the number of changes of threads until both processors run threads of one pair, at most `limit`. They begin in
    /// opposite phases. `yields` gets the processor, the pair whose thread runs there, and the number of looks since the last change.
    fn changes(limit: u32, mut yields: impl FnMut(usize, usize, u32) -> bool) -> u32 {
        let (mut runs, mut looks, mut changes) = ([0, 1], [0, 0], 0);
        while runs[0] != runs[1] && changes < limit {
            for processor in 0..2 {
                looks[processor] += 1;
                if yields(processor, runs[processor], looks[processor]) {
                    runs[processor] = 1 - runs[processor];
                    looks[processor] = 0;
                    changes += 1;
                }
            }
        }
        changes
    }

    #[test]
    fn threads_in_opposite_phases_find_each_other() {
        assert_eq!(
            changes(1000, |_, _, looks| looks == 2),
            1000,
            "all threads yield at the same times"
        );
        let found = (0..1000u64).map(|start| {
            let threads: [_; 4] = std::array::from_fn(|_| RandomYields::new());
            let seed = |thread: usize| start * 4 + thread as u64 + 1;
            changes(1000, |processor, pair, _| {
                let thread = 2 * processor + pair;
                threads[thread].is_due(|| seed(thread))
            })
        });
        let found: Vec<u32> = found.collect();
        let all: u32 = found.iter().sum();
        // 1/2 * 1 + 1/4 * (2 + as many again) + 1/4 * as many again = 2 in the mean.
        assert!((1900..=2100).contains(&all), "{all} changes in 1000 trials");
        assert!(found.iter().all(|&changes| changes < 50));
    }

    #[test]
    fn a_thread_yields_at_half_of_its_looks() {
        let one = RandomYields::new();
        let due = (0..10_000).filter(|_| one.is_due(|| 7)).count();
        assert!((4800..=5200).contains(&due), "{due} of 10000");
    }
}
