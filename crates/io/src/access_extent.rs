//! Place and size of a rank's part of a collective access, which ranks exchange before they choose a method.

use crate::byte_range::ByteRange;

/// A rank's part of a collective access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccessExtent {
    /// First byte of the part in the file.
    pub first: u64,
    /// Byte after the last byte of the part in the file.
    pub end: u64,
    /// Number of bytes of data; 0 if the rank has no data.
    pub bytes: u64,
    /// Number of pieces of the part in the file.
    pub pieces: u64,
}

impl AccessExtent {
    /// Number of words of an encoded extent.
    pub const WORDS: usize = 4;

    /// Encodes the extent for other ranks.
    pub fn words(self) -> [u64; AccessExtent::WORDS] {
        [self.first, self.end, self.bytes, self.pieces]
    }

    /// Decodes another rank's extent.
    pub fn from_words([first, end, bytes, pieces]: [u64; AccessExtent::WORDS]) -> AccessExtent {
        AccessExtent { first, end, bytes, pieces }
    }

    /// Returns the range from the first to the last byte.
    pub fn range(self) -> ByteRange {
        ByteRange { first: self.first, end: self.end }
    }

    /// Reports whether the part may have data in `window`.
    pub fn touches(self, window: ByteRange) -> bool {
        self.range().overlaps(window)
    }

    /// Reports whether the part has no data.
    pub fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// Returns the number of bytes from the first to the last byte of the part, gaps included.
    pub fn span(self) -> u64 {
        self.end - self.first
    }
}
