//! What ranks tell each other of an access: where it is, and how much.

use crate::operation::Operation;

/// A rank's part of a collective access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Bounds {
    /// First byte of the file.
    pub first: u64,
    /// Past the last one.
    pub end: u64,
    /// Bytes of data; 0: the rank has none.
    pub bytes: u64,
    /// Pieces of the file that have them.
    pub pieces: u64,
}

impl Bounds {
    /// Of an operation of this rank.
    pub fn of(operation: &Operation) -> Bounds {
        let Operation { view, from, len: bytes, .. } = operation;
        let bytes = *bytes;
        if bytes == 0 {
            return Bounds::default();
        }
        let (first, end) = (view.place(*from), view.place(from + bytes - 1) + 1);
        Bounds { first, end, bytes, pieces: view.pieces(bytes) }
    }

    /// For others.
    pub fn words(self) -> [u64; 4] {
        [self.first, self.end, self.bytes, self.pieces]
    }

    /// Of another rank.
    pub fn from_words([first, end, bytes, pieces]: [u64; 4]) -> Bounds {
        Bounds { first, end, bytes, pieces }
    }

    /// Whether there may be data in a window.
    pub fn touches(self, (first, end): (u64, u64)) -> bool {
        self.first.max(first) < self.end.min(end)
    }

    /// Whether there are no data.
    pub fn is_empty(self) -> bool {
        self.bytes == 0
    }

    /// Bytes from the first to the last.
    pub fn span(self) -> u64 {
        self.end - self.first
    }
}
