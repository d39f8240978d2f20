//! The number of threads that take turns on a processor. The number changes while threads and processes come and go.

use std::sync::atomic::{AtomicU32, Ordering};

/// Count of the threads that communicate, beside the number of processors.
///
/// Contract: the numbers are independent of each other, and a reader may see an old number. The only use is a guess of costs.
#[derive(Debug)]
pub struct ProcessorTurns {
    /// Number of threads of this process that communicate.
    threads: AtomicU32,
    /// Number of processes on this machine that share the processors. Each is assumed to have as many threads as this process.
    processes: AtomicU32,
    processors: AtomicU32,
}

impl ProcessorTurns {
    /// Creates a count without threads. Until [`ProcessorTurns::share`] is called, each thread has a processor.
    pub const fn new() -> ProcessorTurns {
        ProcessorTurns {
            threads: AtomicU32::new(0),
            processes: AtomicU32::new(1),
            processors: AtomicU32::new(u32::MAX),
        }
    }

    /// Sets the number of processes of this machine, and the number of processors that they share.
    pub fn share(&self, processes: usize, processors: usize) {
        let number = |count: usize| u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        self.processes.store(number(processes), Ordering::Relaxed);
        self.processors.store(number(processors), Ordering::Relaxed);
    }

    /// Counts one more thread.
    pub fn begin_thread(&self) {
        self.threads.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends the count of a thread that [`ProcessorTurns::begin_thread`] has counted.
    pub fn end_thread(&self) {
        self.threads.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns true if more threads of this process communicate than there are processors for a process.
    pub fn is_crowded(&self) -> bool {
        let threads = self.threads.load(Ordering::Relaxed);
        threads > 1 && threads > self.processors_of_process()
    }

    fn processors_of_process(&self) -> u32 {
        self.processors.load(Ordering::Relaxed) / self.processes.load(Ordering::Relaxed)
    }

    /// Returns the maximum number of threads, of all processes, that take turns on a processor. The number is at least 1.
    pub fn each(&self) -> u32 {
        let threads = self.threads.load(Ordering::Relaxed).max(1);
        let all = threads.saturating_mul(self.processes.load(Ordering::Relaxed));
        all.div_ceil(self.processors.load(Ordering::Relaxed)).max(1)
    }
}

impl Default for ProcessorTurns {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::ProcessorTurns;

    /// Returns the numbers of turns and the crowding for some numbers of threads.
    fn with_threads(processes: usize, processors: usize) -> [(u32, bool); 4] {
        let turns = ProcessorTurns::new();
        turns.share(processes, processors);
        let mut begun = 0;
        [0, 1, 2, 5].map(|threads| {
            (begun..threads).for_each(|_| turns.begin_thread());
            begun = threads;
            (turns.each(), turns.is_crowded())
        })
    }

    #[test]
    fn threads_of_all_processes_share_the_processors() {
        assert_eq!(with_threads(2, 2), [(1, false), (1, false), (2, true), (5, true)]);
        assert_eq!(with_threads(2, 4), [(1, false), (1, false), (1, false), (3, true)]);
        assert_eq!(with_threads(4, 2), [(2, false), (2, false), (4, true), (10, true)]);
        assert_eq!(with_threads(1, 8), [(1, false); 4]);
    }

    #[test]
    fn threads_that_end_take_no_turns() {
        let turns = ProcessorTurns::new();
        (0..9).for_each(|_| turns.begin_thread());
        assert_eq!((turns.each(), turns.is_crowded()), (1, false), "the processors are unknown");
        turns.share(1, 2);
        assert_eq!((turns.each(), turns.is_crowded()), (5, true));
        (0..7).for_each(|_| turns.end_thread());
        assert_eq!((turns.each(), turns.is_crowded()), (1, false));
    }
}
