//! A buffer in blocks, one block per rank. Neighbouring blocks travel as one message.

use crate::{CommView, local_ops, rank};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use weft_fabric::{Fabric, Sge, Staging};

/// A buffer, `whole`, cut into blocks that may differ in length.
pub struct BlockList {
    whole: Sge,
    /// Offset in bytes of each block, and of the end of the last block.
    cuts: Vec<usize>,
}

impl BlockList {
    /// Makes blocks of these lengths in bytes, whose sum must be the length of `whole`.
    pub fn of(whole: Sge, lengths: impl IntoIterator<Item = usize>) -> BlockList {
        let mut cuts = vec![0];
        let ends = lengths.into_iter().scan(0, |at, len| {
            *at += len;
            Some(*at)
        });
        cuts.extend(ends);
        assert_eq!(cuts.last(), Some(&whole.len()), "blocks fill the buffer");
        BlockList { whole, cuts }
    }

    /// Makes `parts` blocks that differ by at most one element of `element` bytes. A remainder of less than an element belongs
    /// to the last block.
    pub fn even(whole: Sge, element: usize, parts: usize) -> BlockList {
        let cuts = (0..=parts).map(|i| rank::cut(whole.len(), element, parts, i)).collect();
        BlockList { whole, cuts }
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        self.cuts.len() - 1
    }

    /// Returns the whole buffer.
    pub fn whole(&self) -> Sge {
        self.whole
    }

    /// Returns block `i`.
    pub fn block(&self, i: usize) -> Sge {
        self.range(i, i + 1)
    }

    /// Returns all blocks in their order.
    pub fn iter(&self) -> impl Iterator<Item = Sge> {
        (0..self.count()).map(|i| self.block(i))
    }

    /// Returns blocks `from` to `to - 1`.
    pub fn range(&self, from: usize, to: usize) -> Sge {
        self.range_in(self.whole, from, to)
    }

    /// Returns `count` blocks from block `from` on, in one piece or in two. Block 0 follows the last block.
    pub fn around(&self, from: usize, count: usize) -> SmallVec<[Sge; 2]> {
        let from = from % self.count();
        let before = count.min(self.count() - from);
        let mut pieces = smallvec![self.range(from, from + before)];
        if before < count {
            pieces.push(self.range(0, count - before));
        }
        pieces
    }

    /// Returns the range of blocks `from` to `to - 1` in `other`, a buffer of the same length.
    pub fn range_in(&self, other: Sge, from: usize, to: usize) -> Sge {
        let bytes = self.extent(from, to);
        other.part(bytes.start, bytes.len())
    }

    /// Returns the range of bytes of blocks `from` to `to - 1`.
    pub fn extent(&self, from: usize, to: usize) -> Range<usize> {
        self.cuts[from]..self.cuts[to]
    }
}

/// Blocks in a temporary buffer, for blocks that are not contiguous.
pub struct Packed {
    /// Contiguous blocks by rank; their memory goes back to the pool when this value is dropped.
    pub blocks: BlockList,
    _memory: Staging,
}

impl Packed {
    /// Allocates a buffer for the blocks `apart`, and copies this rank's block into this buffer.
    pub fn own<F: Fabric>(link: &CommView<F>, apart: &[Sge]) -> Packed {
        let total = apart.iter().map(|b| b.len()).sum();
        let memory = local_ops::stage(link, apart[link.rank], total);
        let blocks = BlockList::of(memory.sge(), apart.iter().map(|b| b.len()));
        local_ops::copy(link, apart[link.rank], blocks.block(link.rank));
        Packed { blocks, _memory: memory }
    }

    /// Copies the other ranks' blocks to their places in `apart`.
    pub fn deliver<F: Fabric>(&self, link: &CommView<F>, apart: &[Sge]) {
        for (i, &to) in apart.iter().enumerate() {
            if i != link.rank {
                local_ops::copy(link, self.blocks.block(i), to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_around_the_end_is_in_two_pieces() {
        let blocks = BlockList::of(Sge::phantom(15), [1, 2, 3, 4, 5]);
        let lengths = |from, count| -> Vec<usize> {
            blocks.around(from, count).iter().map(|piece| piece.len()).collect()
        };
        assert_eq!(lengths(1, 4), [14]);
        assert_eq!(lengths(1, 5), [14, 1]);
        assert_eq!(lengths(9, 3), [5, 3]);
        assert_eq!(lengths(5, 2), [3]);
    }
}
