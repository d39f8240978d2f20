//! Part of a variable's changes that a handle measures. Several handles can measure the same variable.
//!
//! ```text
//!   counter   0 ── start ── kept + (now - since) ── stop ── kept ── start ── ...
//!   mark      level ── start ── the greater of kept and the highest level since ── stop ── kept
//! ```
//! The library keeps a single high mark for a variable, but each handle needs its own mark. Before the library's mark is reset
//! for a handle, all other handles record it ([`HighMark::note`]).

/// Part of a growing count. A handle measures this part while it is started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterShare {
    kept: u64,
    /// Count at the start; `None` if the handle is stopped.
    since: Option<u64>,
}

impl CounterShare {
    /// Starts to measure. The library's count is `now`. Does nothing if the handle is already started.
    pub fn start(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    /// Stops measuring, and keeps the measured count. The library's count is `now`.
    pub fn stop(&mut self, now: u64) {
        self.kept = self.read(now);
        self.since = None;
    }

    /// Returns the complete measured count. The library's count is `now`.
    pub fn read(&self, now: u64) -> u64 {
        self.kept.wrapping_add(self.since.map_or(0, |since| now.wrapping_sub(since)))
    }

    /// Sets the count to `value`.
    pub fn set(&mut self, value: u64, now: u64) {
        self.kept = value;
        self.since = self.since.map(|_| now);
    }
}

/// High-water mark of a level variable. Each handle measures its own mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighMark {
    kept: u64,
    running: bool,
}

impl HighMark {
    /// Creates a stopped mark with the present level as its value.
    pub fn new(level: u64) -> HighMark {
        HighMark { kept: level, running: false }
    }

    /// Records the library's mark, which is about to be reset.
    pub fn note(&mut self, mark: u64) {
        self.kept = self.read(mark);
    }

    /// Starts the mark. The caller has reset the library's mark to `level`.
    pub fn start(&mut self, level: u64) {
        if !self.running {
            self.kept = self.kept.max(level);
            self.running = true;
        }
    }

    /// Stops the mark. The library's mark is `mark`.
    pub fn stop(&mut self, mark: u64) {
        self.note(mark);
        self.running = false;
    }

    /// Returns the handle's mark. The library's mark is `mark`.
    pub fn read(&self, mark: u64) -> u64 {
        if self.running { self.kept.max(mark) } else { self.kept }
    }

    /// Sets the mark. The caller has reset the library's mark.
    pub fn set(&mut self, value: u64) {
        self.kept = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_counts_while_it_runs() {
        let mut counter = CounterShare::default();
        assert_eq!(counter.read(5), 0);
        counter.start(5);
        assert_eq!(counter.read(8), 3);
        counter.start(9);
        assert_eq!(counter.read(9), 4, "it was started already");
        counter.stop(10);
        assert_eq!(counter.read(20), 5);
        counter.stop(20);
        assert_eq!(counter.read(20), 5, "it was stopped already");
        counter.start(20);
        counter.set(100, 21);
        assert_eq!(counter.read(22), 101);
        counter.stop(22);
        counter.set(0, 23);
        assert_eq!(counter.read(24), 0);
    }

    /// Model of the library's side of a mark, and of two handles, as in `performance`.
    struct Library {
        level: u64,
        mark: u64,
        handles: [HighMark; 2],
    }

    impl Library {
        fn level(&mut self, level: u64) {
            self.level = level;
            self.mark = self.mark.max(level);
        }

        fn anew(&mut self) -> u64 {
            let mark = self.mark;
            self.handles.iter_mut().for_each(|handle| handle.note(mark));
            self.mark = self.level;
            self.level
        }

        fn start(&mut self, i: usize) {
            let level = self.anew();
            self.handles[i].start(level);
        }

        fn reset(&mut self, i: usize) {
            let level = self.anew();
            self.handles[i].set(level);
        }

        fn read(&self) -> [u64; 2] {
            self.handles.map(|handle| handle.read(self.mark))
        }
    }

    #[test]
    fn each_handle_has_a_mark_of_its_own() {
        let mut library = Library { level: 3, mark: 9, handles: [HighMark::new(3); 2] };
        library.start(0);
        assert_eq!(library.read(), [3, 3], "what was higher before is none of theirs");
        library.level(7);
        library.level(1);
        assert_eq!(library.read(), [7, 3], "the second does not run");
        library.start(1);
        library.level(2);
        assert_eq!(library.read(), [7, 3]);
        library.level(5);
        library.level(0);
        assert_eq!(library.read(), [7, 5]);
        library.reset(0);
        assert_eq!(library.read(), [0, 5]);
        library.level(4);
        assert_eq!(library.read(), [4, 5]);
        let mark = library.mark;
        library.handles[0].stop(mark);
        library.level(8);
        assert_eq!(library.read(), [4, 8]);
        library.start(0);
        assert_eq!(library.read(), [8, 8], "the level at its start counts");
    }
}
