//! What it costs to move pieces one by one, and in one go with the gaps between them.
//!
//! ```text
//!   one by one   a call a piece, and its bytes
//!   in one go    a call, and the bytes of the whole with its gaps; to write, it is read first, under a lock
//! ```

/// Costs of a file system as a program meets it: calls in nanoseconds, bytes a nanosecond.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// A call that moves nothing.
    pub call: f64,
    /// A lock and its end.
    pub lock: f64,
    /// Bytes a nanosecond that a read moves.
    pub read: f64,
    /// The same of a write.
    pub write: f64,
}

impl Default for Costs {
    /// Of a page cache: memory's speed, and the way into the system.
    fn default() -> Costs {
        Costs { call: 600.0, lock: 1200.0, read: 6.0, write: 3.0 }
    }
}

impl Costs {
    /// Of pieces that are read one by one.
    pub fn reads(&self, pieces: u64, bytes: u64) -> f64 {
        pieces as f64 * self.call + bytes as f64 / self.read
    }

    /// Of a read with all gaps.
    pub fn read_sieved(&self, span: u64) -> f64 {
        self.call + span as f64 / self.read
    }

    /// Of pieces that are written one by one.
    pub fn writes(&self, pieces: u64, bytes: u64) -> f64 {
        pieces as f64 * self.call + bytes as f64 / self.write
    }

    /// Of a read, a change and a write of the whole, with the lock that keeps others out meanwhile.
    pub fn write_sieved(&self, span: u64) -> f64 {
        2.0 * self.call + self.lock + span as f64 / self.read + span as f64 / self.write
    }

    /// A gap that may be read for the sake of a call less.
    pub fn gap_to_read(&self) -> u64 {
        (self.call * self.read) as u64
    }

    /// A gap that may be read and written for the sake of a call less.
    pub fn gap_to_write(&self) -> u64 {
        (self.call / (1.0 / self.read + 1.0 / self.write)) as u64
    }
}
