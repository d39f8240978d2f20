//! The program's buffers by rank, one block per rank.

use crate::Buffer;
use crate::buffer::BufferPiece;
use smallvec::SmallVec;
use std::rc::Rc;
use weft_fabric::{Sge, StagingPool};

/// Blocks by rank. Cheap to clone.
#[derive(Clone, Default)]
pub enum RankBuffers {
    /// This rank has no blocks in the operation.
    #[default]
    Nothing,
    /// `ranks` blocks like `first`, side by side.
    Equal {
        /// Block 0.
        first: Buffer,
        /// Number of blocks.
        ranks: usize,
    },
    /// Blocks with different places, lengths and types.
    Each(Rc<[Buffer]>),
}

impl From<Vec<Buffer>> for RankBuffers {
    fn from(blocks: Vec<Buffer>) -> RankBuffers {
        if blocks.is_empty() { RankBuffers::Nothing } else { RankBuffers::Each(blocks.into()) }
    }
}

impl RankBuffers {
    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        match self {
            RankBuffers::Nothing => 0,
            RankBuffers::Equal { ranks, .. } => *ranks,
            RankBuffers::Each(blocks) => blocks.len(),
        }
    }

    /// Returns the block of `rank`.
    pub fn get(&self, rank: usize) -> Option<Buffer> {
        match self {
            RankBuffers::Equal { first, ranks } if rank < *ranks => {
                Some(first.block(rank as i64 * first.count() as i64, first.count()))
            }
            RankBuffers::Each(blocks) => blocks.get(rank).cloned(),
            _ => None,
        }
    }

    /// Returns all blocks.
    pub fn iter(&self) -> impl Iterator<Item = Buffer> + '_ {
        (0..self.count()).filter_map(|rank| self.get(rank))
    }

    /// Returns the number of bytes in all blocks, and true if all blocks have the same number.
    pub(crate) fn bytes(&self) -> (usize, bool) {
        match self {
            RankBuffers::Nothing => (0, true),
            RankBuffers::Equal { first, ranks } => (first.len() * ranks, true),
            RankBuffers::Each(blocks) => {
                let equal = blocks.iter().all(|block| block.len() == blocks[0].len());
                (blocks.iter().map(Buffer::len).sum(), equal)
            }
        }
    }

    /// Returns the memory of the blocks, if they lie side by side without gaps.
    fn runs(&self) -> Option<Sges> {
        let RankBuffers::Equal { first, ranks } = self else { return None };
        // A count that overflows takes the slower path, which can report the error.
        let count = first.count().checked_mul(*ranks)?;
        count.checked_mul(first.ty().size().max(1)).filter(|&n| isize::try_from(n).is_ok())?;
        let all = first.block(0, count).run()?;
        let each = first.len();
        Some((0..*ranks).map(|rank| all.part(rank * each, each)).collect())
    }

    /// Returns the blocks' data to send. The data of each block are one piece: in place, or packed.
    pub(crate) fn readable(self, pool: &StagingPool) -> RankPieces {
        self.pieces(|buffer| buffer.readable(pool))
    }

    /// Returns one piece of memory to receive each block into. [`RankPieces::unpack`] moves the pieces to their places.
    pub(crate) fn writable(self, pool: &StagingPool) -> RankPieces {
        self.pieces(|buffer| buffer.writable(pool))
    }

    fn pieces(self, piece: impl FnMut(&Buffer) -> BufferPiece) -> RankPieces {
        if let Some(sges) = self.runs() {
            return RankPieces { sges, pieces: Vec::new(), buffers: RankBuffers::Nothing };
        }
        let buffers = match self {
            RankBuffers::Each(buffers) => buffers,
            other => other.iter().collect(),
        };
        let pieces: Vec<BufferPiece> = buffers.iter().map(piece).collect();
        let sges = pieces.iter().map(|piece| piece.sge).collect();
        RankPieces { sges, pieces, buffers: RankBuffers::Each(buffers) }
    }
}

/// Memory of blocks by rank. Up to eight blocks need no heap memory.
pub(crate) type Sges = SmallVec<[Sge; 8]>;

/// The blocks of this rank's buffer, each block in one piece.
pub(crate) struct RankPieces {
    /// Memory of the pieces, by rank.
    pub sges: Sges,
    /// The pieces. Empty if all blocks lie where they belong.
    pieces: Vec<BufferPiece>,
    buffers: RankBuffers,
}

impl RankPieces {
    /// Copies the blocks to staging memory, because the operation would overwrite data that are sent in place.
    pub fn aside(blocks: RankBuffers, pool: &StagingPool) -> RankPieces {
        let copy = |buffer: Buffer| {
            let copy = pool.take(buffer.len());
            buffer.pack_to(copy.sge());
            BufferPiece { sge: copy.sge(), staging: Some(copy) }
        };
        let pieces: Vec<BufferPiece> = blocks.iter().map(copy).collect();
        RankPieces { sges: pieces.iter().map(|piece| piece.sge).collect(), pieces, buffers: blocks }
    }

    /// Returns true if block `rank` is received into staging memory.
    pub fn is_apart(&self, rank: usize) -> bool {
        self.pieces.get(rank).is_some_and(|piece| piece.staging.is_some())
    }

    /// Packs block `rank` of the program, if this block is received into staging memory.
    pub fn pack(&self, rank: usize) {
        if let (true, Some(buffer)) = (self.is_apart(rank), self.buffers.get(rank)) {
            buffer.pack_to(self.sges[rank]);
        }
    }

    /// Moves received blocks to their places.
    pub fn unpack(&self) {
        self.unpack_except(usize::MAX);
    }

    /// Moves received blocks to their places, except block `skip`.
    pub fn unpack_except(&self, skip: usize) {
        for (rank, piece) in self.pieces.iter().enumerate() {
            if let (true, Some(buffer)) =
                (rank != skip && self.is_apart(rank), self.buffers.get(rank))
            {
                piece.unpack(&buffer, buffer.len());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::tests::int;
    use weft_datatype::{Datatype, Width};

    #[test]
    fn blocks_without_gaps_are_taken_as_they_lie() {
        let pool = StagingPool::default();
        let memory = pool.take(24);
        memory.sge().fill(&[7; 24]);
        let pieces =
            RankBuffers::Equal { first: Buffer::over(memory.sge().part(0, 8), int()), ranks: 3 };
        assert_eq!((pieces.count(), pieces.bytes()), (3, (24, true)));
        let pieces = pieces.writable(&pool);
        let whole: Vec<Sge> = (0..3).map(|i| memory.sge().part(8 * i, 8)).collect();
        assert_eq!(pieces.sges[..], whole);
        assert!((0..4).all(|rank| !pieces.is_apart(rank)));
    }

    #[test]
    fn blocks_with_gaps_are_packed_beside() {
        let pool = StagingPool::default();
        let memory = pool.take(36);
        memory.sge().fill(&(0..36).collect::<Vec<u8>>());
        let every_other = Datatype::vector(Width::Int, 2, 1, 2, &int()).unwrap();
        every_other.commit();
        // SAFETY: three elements are within `memory`, which outlives the buffer.
        let first = unsafe { Buffer::new(memory.sge().ptr(), 1, every_other) };
        let spread = RankBuffers::Equal { first, ranks: 3 };
        assert_eq!(spread.get(2).unwrap().len(), 8);
        assert!(spread.get(3).is_none());
        let pieces = spread.readable(&pool);
        let mut found = [0; 8];
        pieces.sges[1].read(&mut found);
        assert_eq!(found, [12, 13, 14, 15, 20, 21, 22, 23]);
        assert!(pieces.is_apart(1));
    }
}
