//! The numbers, and what follows from them.

/// How far two processors' caches are from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Distance {
    /// They share their last level.
    #[default]
    Shared,
    /// They do not.
    Apart,
}

/// By distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct By<T> {
    pub shared: T,
    pub apart: T,
}

impl<T: Copy> By<T> {
    pub fn at(&self, distance: Distance) -> T {
        match distance {
            Distance::Shared => self.shared,
            Distance::Apart => self.apart,
        }
    }
}

/// Costs between ranks of one machine. Times in nanoseconds, rates in nanoseconds a byte, sizes in bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct CopyModel {
    /// A line that another processor has just written is read here: what a flag takes.
    pub line: By<f64>,
    /// Each line of 64 bytes that another processor has just read is written again, many in a row.
    pub rewrite: By<f64>,
    /// A byte that lies in another processor's cache is copied to here, many in a row.
    pub fetch: By<f64>,
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
    /// The largest cache that a processor has for itself.
    pub private: usize,
    /// The last level, which several share.
    pub last: usize,
}

/// Bytes of a page.
pub const PAGE: usize = 4096;

impl CopyModel {
    /// A processor that nobody has measured: what holds until one is.
    pub const GENERIC: CopyModel = CopyModel {
        line: By { shared: 60.0, apart: 200.0 },
        rewrite: By { shared: 8.0, apart: 30.0 },
        fetch: By { shared: 0.06, apart: 0.15 },
        cached: 0.03,
        memory: 0.1,
        past: 0.1,
        cma_call: 400.0,
        cma_page: 100.0,
        switch: 1500.0,
        yielding: 300.0,
        reduce: 0.05,
        private: 1 << 20,
        last: 32 << 20,
    };

    /// Nanoseconds to copy `len` bytes that this processor has in its caches, if they fit.
    pub fn copy(&self, len: usize) -> f64 {
        let rate = if len <= self.last { self.cached } else { self.memory };
        rate * len as f64
    }

    /// Nanoseconds to copy `len` bytes out of the caches of a processor at `distance`.
    pub fn fetch(&self, len: usize, distance: Distance) -> f64 {
        let rate = if len <= self.last { self.fetch.at(distance) } else { self.memory };
        rate * len as f64
    }

    /// Nanoseconds to write `len` bytes over what a processor at `distance` has read, by the cheaper of usual stores and
    /// such that no cache keeps.
    pub fn rewrite(&self, len: usize, distance: Distance) -> f64 {
        let usual = self.copy(len) + self.rewrite.at(distance) * len.div_ceil(64) as f64;
        usual.min(self.past * len as f64)
    }

    /// Nanoseconds to read or write `len` bytes of another process's own memory by a system call.
    pub fn cma(&self, len: usize, distance: Distance) -> f64 {
        self.cma_call + self.cma_page * len.div_ceil(PAGE) as f64 + self.fetch(len, distance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_grow_with_length_and_distance() {
        let model = CopyModel::GENERIC;
        for len in [1, 64, 4096, 1 << 20, 1 << 26] {
            let [near, far] = [Distance::Shared, Distance::Apart];
            assert!(model.fetch(len, near) <= model.fetch(len, far));
            assert!(model.cma(len, near) <= model.cma(len, far));
            assert!(model.rewrite(len, near) <= model.rewrite(len, far));
            assert!(model.copy(len) < model.copy(2 * len));
        }
    }
}
