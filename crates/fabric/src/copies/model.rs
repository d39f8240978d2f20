//! The numbers, and what follows from them.

use super::ways::GAIN;
use std::time::Duration;

/// How far two processors' caches are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CacheDistance {
    /// They share their last level.
    #[default]
    Shared,
    /// They do not.
    Apart,
}

/// By distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ByDistance<T> {
    /// The value between processors with a common last cache level.
    pub shared: T,
    /// The value between processors without a common cache.
    pub apart: T,
}

impl<T: Copy> ByDistance<T> {
    /// Picks the value that holds at `distance`.
    pub fn at(&self, distance: CacheDistance) -> T {
        match distance {
            CacheDistance::Shared => self.shared,
            CacheDistance::Apart => self.apart,
        }
    }
}

/// Costs between ranks of one machine. Times in nanoseconds, rates in nanoseconds a byte, sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyModel {
    /// A line that another processor has just written is read here: what a flag takes.
    pub line: ByDistance<f64>,
    /// Each line of 64 bytes that another processor has just read is written again, many in a row.
    pub rewrite: ByDistance<f64>,
    /// The same if all of them, up to a few pages, are asked for at once before the first is written.
    pub rewrite_asked: ByDistance<f64>,
    /// The same if their reader has taken them to itself after it had read them; that, too, is in it.
    pub rewrite_returned: ByDistance<f64>,
    /// A byte that lies in another processor's cache is copied to here, many in a row.
    pub fetch: ByDistance<f64>,
    /// The same from many pages at once, a few lines of each in turn.
    pub fetch_pages: ByDistance<f64>,
    /// The same by the system, out of another process's memory, beside its pages.
    pub cma_fetch: ByDistance<f64>,
    /// A byte is copied within the own caches.
    pub cached: f64,
    /// A byte is copied from memory to memory.
    pub memory: f64,
    /// A byte is copied by stores that no cache keeps.
    pub past: f64,
    /// A system call that reads or writes another process's memory, without its pages.
    pub cma_call: f64,
    /// Each page of that, beside its bytes.
    pub cma_page: f64,
    /// The processor goes from one process to another and back, half of that.
    pub switch: f64,
    /// A yield when nobody else is there.
    pub yielding: f64,
    /// A byte of one operand is combined with another, both in the caches.
    pub reduce: f64,
    /// The time is asked for twice, and nothing happens in between.
    pub clock: f64,
    /// The largest cache that a processor has for itself.
    pub private: usize,
    /// The last level, which several share.
    pub last: usize,
}

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Bytes of a cache line.
pub const LINE: usize = 64;

impl CopyModel {
    /// A processor that nobody has measured: what holds until one is.
    pub const GENERIC: CopyModel = CopyModel {
        line: ByDistance { shared: 60.0, apart: 200.0 },
        rewrite: ByDistance { shared: 8.0, apart: 30.0 },
        rewrite_asked: ByDistance { shared: 8.0, apart: 30.0 },
        rewrite_returned: ByDistance { shared: 2.5, apart: 6.0 },
        fetch: ByDistance { shared: 0.06, apart: 0.15 },
        fetch_pages: ByDistance { shared: 0.06, apart: 0.15 },
        cma_fetch: ByDistance { shared: 0.06, apart: 0.15 },
        cached: 0.03,
        memory: 0.1,
        past: 0.1,
        cma_call: 400.0,
        cma_page: 100.0,
        switch: 1500.0,
        yielding: 300.0,
        reduce: 0.05,
        clock: 25.0,
        private: 1 << 20,
        last: 32 << 20,
    };

    /// Nanoseconds to copy `len` bytes that this processor has in its caches, if they fit.
    pub fn copy(&self, len: usize) -> f64 {
        let rate = if len <= self.last { self.cached } else { self.memory };
        rate * len as f64
    }

    /// Nanoseconds to copy `len` bytes out of the caches of a processor at `distance`.
    pub fn fetch(&self, len: usize, distance: CacheDistance) -> f64 {
        let rate = if len <= self.last { self.fetch.at(distance) } else { self.memory };
        rate * len as f64
    }

    /// Nanoseconds to write `len` bytes over what a processor at `distance` has read, by the cheaper of usual stores and
    /// such that no cache keeps.
    pub fn rewrite(&self, len: usize, distance: CacheDistance) -> f64 {
        let usual = self.copy(len) + self.rewrite_best(distance) * len.div_ceil(LINE) as f64;
        usual.min(self.past * len as f64)
    }

    /// The same of what that one alone has read, which may have given its lines back.
    pub fn rewrite_for_one(&self, len: usize, distance: CacheDistance) -> f64 {
        let usual = self.copy(len) + self.rewrite_one(distance) * len.div_ceil(LINE) as f64;
        usual.min(self.past * len as f64)
    }

    /// Nanoseconds to read or write `len` bytes of another process's own memory by a system call.
    pub fn cma(&self, len: usize, distance: CacheDistance) -> f64 {
        let rate = if len <= self.last { self.cma_fetch.at(distance) } else { self.memory };
        self.cma_call + self.cma_page * len.div_ceil(PAGE) as f64 + rate * len as f64
    }

    /// Nanoseconds for each line that another has read to be written again, asked for or not; and if it has one reader, that
    /// may give it back.
    pub(super) fn rewrite_best(&self, distance: CacheDistance) -> f64 {
        self.rewrite.at(distance).min(self.rewrite_asked.at(distance))
    }

    pub(super) fn rewrite_one(&self, distance: CacheDistance) -> f64 {
        self.rewrite_best(distance).min(self.rewrite_returned.at(distance))
    }

    /// Whether long payloads at `distance` are best read in place by the system, rather than put down and read.
    pub fn fetches(&self, distance: CacheDistance) -> bool {
        let fetch = self.fetch.at(distance);
        let through = self.cached + self.rewrite_one(distance) / LINE as f64 + fetch;
        let put = through.min(self.past + self.memory);
        self.cma_page / PAGE as f64 + self.cma_fetch.at(distance) < GAIN * put
    }

    /// Whether a page that the system reads in another process costs more than to copy one in the caches. Then payloads of any
    /// length are put down, which is that copy: where ranks take turns on processors, nothing else is lost by it.
    pub fn pages_are_dear(&self) -> bool {
        GAIN * self.cma_page > self.cached * PAGE as f64
    }

    /// Whether between near caches memory that a reader has read is best left until it is out of the caches that a processor
    /// has for itself. To write what lies in the cache behind takes between a copy in the caches and one in memory.
    pub fn writes_anew(&self) -> bool {
        let left = (self.cached + self.memory) / 2.0 * LINE as f64;
        GAIN * self.rewrite_returned.shared > left
    }

    /// Whether copies tell near caches from far ones.
    pub(super) fn tells_distances(&self) -> bool {
        self.fetch.shared < GAIN * self.fetch.apart
    }

    /// Whether it took so long to copy `len` bytes as if they were in a far cache: longer than the mean of both, which is as
    /// many times the one as the other is of it.
    pub(super) fn is_slow_copy(&self, len: usize, time: Duration) -> bool {
        let mean = (self.fetch.shared * self.fetch.apart).sqrt();
        time.as_nanos() as f64 > self.clock + mean * len as f64
    }

    /// The same of a look at each of their lines. Where far ranks hand lines over, they are found in the cache behind both, which
    /// takes little longer than to get them from a near one.
    pub(super) fn is_slow_look(&self, len: usize, time: Duration, handed: bool) -> bool {
        let [near, far] = [CacheDistance::Shared, CacheDistance::Apart]
            .map(|at| self.line.at(at) + self.fetch.at(at) * len as f64);
        let most = if handed { near / GAIN } else { (near * far).sqrt() };
        time.as_nanos() as f64 > self.clock + most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_grow_with_length_and_distance() {
        let model = CopyModel::GENERIC;
        for len in [1, 64, 4096, 1 << 20, 1 << 26] {
            let [near, far] = [CacheDistance::Shared, CacheDistance::Apart];
            assert!(model.fetch(len, near) <= model.fetch(len, far));
            assert!(model.cma(len, near) <= model.cma(len, far));
            assert!(model.rewrite(len, near) <= model.rewrite(len, far));
            assert!(model.copy(len) < model.copy(2 * len));
        }
    }

    /// Measured where near caches are one core's and far ones 0.2 us apart: of 512 B, 1 KiB and 4 KiB.
    #[test]
    fn looks_are_told_apart() {
        let model = CopyModel {
            line: ByDistance { shared: 15.0, apart: 220.0 },
            fetch: ByDistance { shared: 0.03, apart: 0.08 },
            ..CopyModel::GENERIC
        };
        let slow = |(len, ns): &(usize, u64), handed| {
            model.is_slow_look(*len, Duration::from_nanos(*ns), handed)
        };
        let near = [(512, 27), (1024, 28), (4096, 41), (64, 0)];
        assert!(near.iter().all(|look| !slow(look, false) && !slow(look, true)));
        assert!([(512, 193), (1024, 245), (4096, 545)].iter().all(|look| slow(look, false)));
        assert!([(512, 90), (1024, 103), (4096, 410)].iter().all(|look| slow(look, true)));
    }

    #[test]
    fn copies_are_told_apart() {
        let slow = |us| CopyModel::GENERIC.is_slow_copy(65536, Duration::from_micros(us));
        assert!(slow(30) && slow(9) && !slow(4) && !slow(0));
    }
}
