//! Pieces of a file as runs: pieces of one length at equal distances are one run.

use crate::byte_range::ByteRange;

/// Run of `count` pieces of `len` bytes, the first at `offset`, with starts `stride` bytes apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedRun {
    /// First byte in the file.
    pub offset: u64,
    /// Length of a piece in bytes; not 0.
    pub len: u64,
    /// Number of bytes from the start of a piece to the start of the next piece, at least `len`.
    pub stride: u64,
    /// Number of pieces; not 0.
    pub count: u64,
}

impl StridedRun {
    /// Number of words of an encoded run.
    pub const WORDS: usize = 4;

    /// Returns the number of bytes of data.
    pub fn bytes(&self) -> u64 {
        self.len * self.count
    }

    /// Returns the byte after the last byte.
    pub fn end(&self) -> u64 {
        self.offset + (self.count - 1) * self.stride + self.len
    }

    /// Lists the place and the length of each piece, in order.
    pub fn places(&self) -> impl Iterator<Item = (u64, u64)> + use<> {
        let run = *self;
        (0..run.count).map(move |i| (run.offset + i * run.stride, run.len))
    }

    /// Encodes the run for other ranks.
    pub fn words(&self) -> [u64; StridedRun::WORDS] {
        [self.offset, self.len, self.stride, self.count]
    }

    /// Decodes [`StridedRun::words`].
    pub fn from_words([offset, len, stride, count]: [u64; StridedRun::WORDS]) -> StridedRun {
        StridedRun { offset, len, stride, count }
    }
}

/// Runs in the order of the data. The order of the runs in the file is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StridedRuns {
    list: Vec<StridedRun>,
    bytes: u64,
}

impl StridedRuns {
    /// Creates a list of one piece.
    pub fn one(offset: u64, len: u64) -> StridedRuns {
        let mut runs = StridedRuns::default();
        runs.push(offset, len);
        runs
    }

    /// Creates a list from decoded runs.
    pub fn of(list: Vec<StridedRun>) -> StridedRuns {
        let bytes = list.iter().map(StridedRun::bytes).sum();
        StridedRuns { list, bytes }
    }

    /// Appends a piece.
    pub fn push(&mut self, offset: u64, len: u64) {
        if len == 0 {
            return;
        }
        self.bytes += len;
        if let Some(last) = self.list.last_mut() {
            let next = last.offset + last.stride * last.count;
            if last.count == 1 && last.offset + last.len == offset {
                last.len += len;
                last.stride = last.len;
                return;
            }
            if last.len == len {
                if last.count == 1 && offset >= last.offset + len {
                    (last.stride, last.count) = (offset - last.offset, 2);
                    return;
                }
                if last.count > 1 && offset == next {
                    last.count += 1;
                    return;
                }
            }
        }
        self.list.push(StridedRun { offset, len, stride: len, count: 1 });
    }

    /// Appends a run.
    pub fn push_run(&mut self, run: StridedRun) {
        if run.count == 1 {
            return self.push(run.offset, run.len);
        }
        self.bytes += run.bytes();
        if let Some(last) = self.list.last_mut()
            && (last.len, last.stride) == (run.len, run.stride)
            && last.offset + last.count * last.stride == run.offset
        {
            last.count += run.count;
            return;
        }
        self.list.push(run);
    }

    /// Returns the number of bytes of data.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the runs.
    pub fn list(&self) -> &[StridedRun] {
        &self.list
    }

    /// Counts the pieces.
    pub fn pieces(&self) -> u64 {
        self.list.iter().map(|run| run.count).sum()
    }

    /// Returns the range from the first to the last byte, or `None` if there are no data.
    pub fn bounds(&self) -> Option<ByteRange> {
        Some(ByteRange { first: self.list.first()?.offset, end: self.list.last()?.end() })
    }

    /// Lists the place and the length of each piece, in order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.list.iter().flat_map(StridedRun::places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_is_one_run_and_neighbours_join() {
        let mut runs = StridedRuns::default();
        (0..1000).for_each(|i| runs.push(7 + 64 * i, 8));
        assert_eq!(runs.list(), [StridedRun { offset: 7, len: 8, stride: 64, count: 1000 }]);
        assert_eq!((runs.bytes(), runs.pieces()), (8000, 1000));
        assert_eq!(runs.bounds(), Some(ByteRange { first: 7, end: 7 + 64 * 999 + 8 }));
        let mut joined = StridedRuns::default();
        let pieces = [(0, 4), (4, 4), (8, 2), (20, 3), (23, 3)];
        pieces.into_iter().for_each(|(at, len)| joined.push(at, len));
        assert_eq!(joined.iter().collect::<Vec<_>>(), [(0, 10), (20, 6)]);
    }

    #[test]
    fn runs_keep_all_pieces() {
        let mut rng = fastrand::Rng::with_seed(3);
        for _ in 0..200 {
            let (mut at, mut pieces, mut runs) = (0, Vec::new(), StridedRuns::default());
            for _ in 0..rng.usize(1..40) {
                at += rng.u64(1..3) * 8;
                let len = rng.u64(1..3) * 4;
                pieces.push((at, len));
                runs.push(at, len);
                at += len;
            }
            let bytes = |list: &[(u64, u64)]| -> Vec<u64> {
                list.iter().flat_map(|&(at, len)| at..at + len).collect()
            };
            let again: Vec<_> = runs.iter().collect();
            assert_eq!(bytes(&again), bytes(&pieces));
            let sent = runs.list().iter().map(|t| StridedRun::from_words(t.words())).collect();
            assert_eq!(StridedRuns::of(sent), runs);
        }
    }
}
