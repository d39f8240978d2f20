//! What one handle has measured of a variable that others measure, too.
//!
//! ```text
//!   counter   0 ── start ── kept + (now - since) ── stop ── kept ── start ── ...
//!   mark      level ── start ── the greater of kept and the highest level since ── stop ── kept
//! ```
//! The library keeps one high mark, and each handle wants its own: before the library's begins anew for
//! one of them, all others take note of it ([`HighMark::note`]).

/// A handle's share of a count that only grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterShare {
    kept: u64,
    /// The count when it was started; `None`: stopped.
    since: Option<u64>,
}

impl CounterShare {
    /// It counts from `now` on; nothing happens if it does already.
    pub fn start(&mut self, now: u64) {
        self.since.get_or_insert(now);
    }

    /// It keeps what it has at `now`.
    pub fn stop(&mut self, now: u64) {
        self.kept = self.read(now);
        self.since = None;
    }

    /// What it has counted, in whole.
    pub fn read(&self, now: u64) -> u64 {
        self.kept.wrapping_add(self.since.map_or(0, |since| now.wrapping_sub(since)))
    }

    /// It has counted `value`.
    pub fn set(&mut self, value: u64, now: u64) {
        self.kept = value;
        self.since = self.since.map(|_| now);
    }
}

/// A handle's high mark of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HighMark {
    kept: u64,
    running: bool,
}

impl HighMark {
    /// Stopped, at the level of now.
    pub fn new(level: u64) -> HighMark {
        HighMark { kept: level, running: false }
    }

    /// Takes note of the library's mark, which is about to begin anew.
    pub fn note(&mut self, mark: u64) {
        self.kept = self.read(mark);
    }

    /// The library's mark has begun anew at `level`.
    pub fn start(&mut self, level: u64) {
        if !self.running {
            self.kept = self.kept.max(level);
            self.running = true;
        }
    }

    /// It keeps what it has, while the library's is `mark`.
    pub fn stop(&mut self, mark: u64) {
        self.note(mark);
        self.running = false;
    }

    /// The mark, while the library's is `mark`.
    pub fn read(&self, mark: u64) -> u64 {
        if self.running { self.kept.max(mark) } else { self.kept }
    }

    /// The library's mark has begun anew.
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

    /// The library's side of a mark, and a few handles, as in `performance`.
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
