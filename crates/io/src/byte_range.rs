//! Ranges of bytes in a file.

/// Consecutive bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// First byte.
    pub first: u64,
    /// Byte after the last byte.
    pub end: u64,
}

impl ByteRange {
    /// Creates a range from its first byte and its length.
    pub fn at(first: u64, len: u64) -> ByteRange {
        ByteRange { first, end: first + len }
    }

    /// Returns the number of bytes.
    pub fn len(self) -> u64 {
        self.end - self.first
    }

    /// Reports whether two ranges have a byte in common.
    pub fn overlaps(self, other: ByteRange) -> bool {
        self.first.max(other.first) < self.end.min(other.end)
    }

    /// Returns the smallest range that contains all of `ranges`, or `None` if `ranges` is empty.
    pub fn hull(ranges: impl Iterator<Item = ByteRange>) -> Option<ByteRange> {
        ranges.reduce(|all, range| ByteRange {
            first: all.first.min(range.first),
            end: all.end.max(range.end),
        })
    }
}
