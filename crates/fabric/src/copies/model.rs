//! The numbers of a copy model, and the costs and choices that follow from them.

use super::by_level::ByLevel;
use super::copy_methods::GAIN;
use std::time::Duration;
use weft_topology::TopologyLevel;

/// The distance between the caches of two processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CacheDistance {
    /// The processors share their last cache level.
    #[default]
    Shared,
    /// The processors share no cache.
    Apart,
}

/// A value for each distance.
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
    /// Time to read a line that another processor has just written: the cost of a flag.
    pub line: ByDistance<f64>,
    /// The time of `line` by level.
    pub line_by_level: ByLevel,
    /// Time to write again a line of 64 bytes that another processor has just read, as one of many in a row.
    pub rewrite: ByDistance<f64>,
    /// The time of `rewrite` if all lines, up to a few pages, are requested together before the first line is written.
    pub rewrite_asked: ByDistance<f64>,
    /// The time of `rewrite` if the reader took the lines into its own cache for writing after it had read them. The time that
    /// the reader takes for this is included.
    pub rewrite_returned: ByDistance<f64>,
    /// Time to copy a byte from another processor's cache, as one of many in a row.
    pub fetch: ByDistance<f64>,
    /// The time of `fetch` by level.
    pub fetch_by_level: ByLevel,
    /// The time of `fetch` if many pages are read at once, a few lines of each in turn.
    pub fetch_pages: ByDistance<f64>,
    /// The time of `fetch` if the system reads another process's memory, without the cost of its pages (`cma_page`).
    pub cma_fetch: ByDistance<f64>,
    /// Time to copy a byte within the processor's own caches.
    pub cached: f64,
    /// Time to copy a byte from memory to memory.
    pub memory: f64,
    /// Time to copy a byte by stores that go past the caches.
    pub past: f64,
    /// Time of a system call that reads or writes another process's memory, without the time for its pages.
    pub cma_call: f64,
    /// Additional time of `cma_call` for each page, without the time for the page's bytes.
    pub cma_page: f64,
    /// Half the time in which the processor switches from one process to another and back.
    pub switch: f64,
    /// Time of a yield when no other thread wants the processor.
    pub yielding: f64,
    /// Time to combine a byte of one operand with another operand, both in the caches.
    pub reduce: f64,
    /// Time of a processor for a message at either end, without its bytes: post, match and completion.
    pub message: f64,
    /// Time of a byte of all transfers together out of the processors of a common cache, or into them.
    pub cache_link: f64,
    /// Time of a byte of all transfers together out of the processors of a socket, or into them.
    pub socket_link: f64,
    /// Time of two successive readings of the clock.
    pub clock: f64,
    /// Size of the largest cache that a processor has for itself.
    pub private: usize,
    /// Size of the last cache level, which several processors share.
    pub last: usize,
}

/// Size of a page, in bytes.
pub const PAGE: usize = 4096;

/// Size of a cache line, in bytes.
pub const LINE: usize = 64;

impl CopyModel {
    /// A model of an unmeasured processor, used until there is a measurement.
    pub const GENERIC: CopyModel = CopyModel {
        line: ByDistance { shared: 60.0, apart: 200.0 },
        line_by_level: ByLevel::of(60.0, 200.0),
        rewrite: ByDistance { shared: 8.0, apart: 30.0 },
        rewrite_asked: ByDistance { shared: 8.0, apart: 30.0 },
        rewrite_returned: ByDistance { shared: 2.5, apart: 6.0 },
        fetch: ByDistance { shared: 0.06, apart: 0.15 },
        fetch_by_level: ByLevel::of(0.06, 0.15),
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
        message: 40.0,
        cache_link: 0.03,
        socket_link: 0.03,
        clock: 25.0,
        private: 1 << 20,
        last: 32 << 20,
    };

    /// Returns the nanoseconds until a processor sees a line that another has just written, if `level` is the lowest level at which
    /// both meet.
    pub fn line_at(&self, level: TopologyLevel) -> f64 {
        self.line_by_level.at(level, self.line.shared)
    }

    /// Returns the nanoseconds to copy a byte from the caches of another processor, if `level` is the lowest level at which both
    /// meet.
    pub fn fetch_at(&self, level: TopologyLevel) -> f64 {
        self.fetch_by_level.at(level, self.fetch.shared)
    }

    /// Returns the nanoseconds to copy `len` bytes that this processor has in its caches, if they fit.
    pub fn copy(&self, len: usize) -> f64 {
        let rate = if len <= self.last { self.cached } else { self.memory };
        rate * len as f64
    }

    /// Returns the nanoseconds to copy `len` bytes out of the caches of a processor at `distance`.
    pub fn fetch(&self, len: usize, distance: CacheDistance) -> f64 {
        let rate = if len <= self.last { self.fetch.at(distance) } else { self.memory };
        rate * len as f64
    }

    /// Returns the nanoseconds to write `len` bytes to memory that a processor at `distance` has read, by the cheaper of two
    /// methods: usual stores, and stores that go past the caches.
    pub fn rewrite(&self, len: usize, distance: CacheDistance) -> f64 {
        let usual = self.copy(len) + self.rewrite_best(distance) * len.div_ceil(LINE) as f64;
        usual.min(self.past * len as f64)
    }

    /// Returns the nanoseconds of [`CopyModel::rewrite`] if the processor at `distance` is the only reader of the bytes, and may
    /// have given the lines back to the writer.
    pub fn rewrite_for_one(&self, len: usize, distance: CacheDistance) -> f64 {
        let usual = self.copy(len) + self.rewrite_one(distance) * len.div_ceil(LINE) as f64;
        usual.min(self.past * len as f64)
    }

    /// Returns the nanoseconds to read or write `len` bytes of another process's own memory by a system call.
    pub fn cma(&self, len: usize, distance: CacheDistance) -> f64 {
        let rate = if len <= self.last { self.cma_fetch.at(distance) } else { self.memory };
        self.cma_call + self.cma_page * len.div_ceil(PAGE) as f64 + rate * len as f64
    }

    /// Returns the nanoseconds to write again a line that another processor has read, by the cheaper method: requested ahead, or
    /// not.
    pub fn rewrite_best(&self, distance: CacheDistance) -> f64 {
        self.rewrite.at(distance).min(self.rewrite_asked.at(distance))
    }

    pub(super) fn rewrite_one(&self, distance: CacheDistance) -> f64 {
        self.rewrite_best(distance).min(self.rewrite_returned.at(distance))
    }

    /// Returns true if long payloads at `distance` are best read in place by the system, rather than copied to shared memory
    /// and read there.
    pub fn fetches(&self, distance: CacheDistance) -> bool {
        let fetch = self.fetch.at(distance);
        let through = self.cached + self.rewrite_one(distance) / LINE as f64 + fetch;
        let put = through.min(self.past + self.memory);
        self.cma_page / PAGE as f64 + self.cma_fetch.at(distance) < GAIN * put
    }

    /// Returns true if the system needs more time for a page of another process than a copy of a page takes in the caches. Then
    /// it is better to copy payloads of any length to shared memory. This costs no other time if ranks take turns on processors.
    pub fn pages_are_dear(&self) -> bool {
        GAIN * self.cma_page > self.cached * PAGE as f64
    }

    /// Returns true if, between near caches, it is better not to write again to memory that a reader has read until the memory
    /// has left the private caches. A write to memory that lies only in the shared level takes a time between a copy in the
    /// caches and a copy in memory.
    pub fn writes_anew(&self) -> bool {
        let left = (self.cached + self.memory) / 2.0 * LINE as f64;
        GAIN * self.rewrite_returned.shared > left
    }

    /// Returns true if the times of copies distinguish near caches from far caches.
    pub(super) fn tells_distances(&self) -> bool {
        self.fetch.shared < GAIN * self.fetch.apart
    }

    /// Returns true if a copy of `len` bytes took as long as a copy from a far cache: longer than the geometric mean of the costs
    /// at both distances.
    pub(super) fn is_slow_copy(&self, len: usize, time: Duration) -> bool {
        let mean = (self.fetch.shared * self.fetch.apart).sqrt();
        time.as_nanos() as f64 > self.clock + mean * len as f64
    }

    /// Returns true if a read of a byte of each line of `len` bytes took as long as from a far cache. `handed` is true if far
    /// ranks demote lines to the cache level behind both processors, from where a read takes little longer than from a near
    /// cache.
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

    #[test]
    fn levels_have_costs_between_both_distances() {
        let far = ByLevel { core: 20.0, numa: 150.0, socket: 180.0, node: 400.0 };
        let model = CopyModel { line_by_level: far, ..CopyModel::GENERIC };
        let costs = TopologyLevel::ALL.map(|level| model.line_at(level));
        assert_eq!(costs, [20.0, 20.0, 60.0, 60.0, 150.0, 180.0, 400.0]);
        assert_eq!(model.fetch_at(TopologyLevel::Core), model.fetch.shared);
        assert_eq!(model.fetch_at(TopologyLevel::Node), model.fetch.apart);
    }

    /// Checks measured looks of 512 B, 1 KiB and 4 KiB. The near caches were caches of the same core; the far caches were 0.2 us
    /// apart.
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
