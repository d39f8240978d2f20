//! Buffers with a block for each rank, as arguments describe them: equal blocks, blocks of different lengths, or blocks of
//! different lengths and types.

use super::count_array;
use super::fast_path::{List, element};
use crate::arguments::{buffer, count, not_null, plain};
use crate::constants::*;
use crate::elements::{Elements, RankBlocks, TypedBlocks};
use crate::error::Error;
use crate::widen_counts::Displs;
use std::ffi::c_void;
use weft_process::{Buffer, Lengths, RankBuffers};

pub(super) trait ToRankBuffers: Copy {
    const LENGTHS: Lengths;

    /// Returns the address of the buffer, and the name of the argument with this address.
    fn start(&self) -> (*const c_void, &'static str);

    /// Returns the name of the argument that gives the displacements, or `None` if blocks cannot overlap.
    fn places(&self) -> Option<&'static str>;

    /// Checks and returns the blocks of `ranks` ranks.
    fn rank_buffers(self, ranks: usize) -> Result<RankBuffers, Error>;

    /// Adds plain blocks to `blocks`. The list is a parameter and not the result, because a move of the result would have to wait
    /// for the stores that fill the list. Returns `None` in the same cases as [`plain`].
    fn list(self, ranks: usize, blocks: &mut List) -> Option<()>;
}

impl ToRankBuffers for Elements {
    const LENGTHS: Lengths = Lengths::Equal;

    #[inline(always)]
    fn start(&self) -> (*const c_void, &'static str) {
        (self.address, self.names[0])
    }

    fn places(&self) -> Option<&'static str> {
        None
    }

    /// Checks the buffer, and returns blocks of equal size that follow each other.
    fn rank_buffers(self, ranks: usize) -> Result<RankBuffers, Error> {
        count(self.count, self.names[1])?;
        // If there are no blocks, the buffer may be NULL.
        let count = if ranks == 0 { 0 } else { self.count };
        // SAFETY: `count` is at most `self.count`, and the program's buffer has `self.count` elements for each rank.
        Ok(RankBuffers::Equal { first: unsafe { self.of(count) }.buffer()?, ranks })
    }

    #[inline(always)]
    fn list(self, ranks: usize, blocks: &mut List) -> Option<()> {
        let count = self.count.checked_mul(ranks as i64)?;
        // SAFETY: the program's buffer has `self.count` elements for each of `ranks` ranks, as MPI requires.
        let all = unsafe { self.of(count) }.plain()?;
        let block = all.len() / ranks;
        (0..ranks).for_each(|rank| blocks.push(all.part(rank * block, block)));
        Some(())
    }
}

impl ToRankBuffers for RankBlocks {
    const LENGTHS: Lengths = Lengths::Varying;

    #[inline(always)]
    fn start(&self) -> (*const c_void, &'static str) {
        (self.address, self.names[0])
    }

    fn places(&self) -> Option<&'static str> {
        Some(self.displs_name)
    }

    fn rank_buffers(self, ranks: usize) -> Result<RankBuffers, Error> {
        let RankBlocks { address, counts, displs, ty, names, .. } = self;
        there(displs, ranks)?;
        // SAFETY: the arrays are NULL or have an entry for each rank, and the program promises the memory; the contract of
        // `RankBlocks::new` says so.
        let blocks: Vec<Buffer> = unsafe {
            let counts = count_array(counts, ranks, names[1])?;
            let most = counts.iter().copied().max().unwrap_or(0);
            let base = buffer(address, most as i64, ty, names)?;
            counts.iter().enumerate().map(|(r, &n)| base.block(displs.get(r), n)).collect()
        };
        Ok(blocks.into())
    }

    #[inline(always)]
    fn list(self, ranks: usize, blocks: &mut List) -> Option<()> {
        let RankBlocks { address, counts, displs, ty, .. } = self;
        if counts.is_null() || displs.is_null() || address.addr() <= MPI_IN_PLACE {
            return None;
        }
        let extent = element(ty) as isize;
        for rank in 0..ranks {
            // SAFETY: `rank` is less than `ranks`, and both arrays have `ranks` entries; the contract of `RankBlocks::new` says so.
            let block = unsafe {
                let at = (displs.get(rank) as isize).wrapping_mul(extent);
                plain(address.wrapping_byte_offset(at), counts.get(rank), ty)?
            };
            blocks.push(block);
        }
        Some(())
    }
}

impl ToRankBuffers for TypedBlocks {
    const LENGTHS: Lengths = Lengths::Varying;

    fn start(&self) -> (*const c_void, &'static str) {
        (self.address, self.names[0])
    }

    fn places(&self) -> Option<&'static str> {
        Some(self.displs_name)
    }

    fn rank_buffers(self, ranks: usize) -> Result<RankBuffers, Error> {
        let TypedBlocks { address, counts, displs, types, names, .. } = self;
        if ranks > 0 {
            not_null(types, names[2])?;
        }
        there(displs, ranks)?;
        if address.addr() == MPI_IN_PLACE {
            let text =
                format!("argument {} is MPI_IN_PLACE, which stands for sendbuf alone", names[0]);
            return Err(Error::new(MPI_ERR_BUFFER, text));
        }
        // SAFETY: the arrays have an entry for each rank, and the program promises the memory; the contract of
        // `TypedBlocks::new` says so.
        let blocks: Result<Vec<Buffer>, Error> = unsafe {
            let counts = count_array(counts, ranks, names[1])?;
            let each = |r: usize| {
                let at = address.wrapping_byte_offset(displs.get(r) as isize);
                buffer(at, counts[r] as i64, *types.add(r), names)
            };
            (0..ranks).map(each).collect()
        };
        blocks.map(RankBuffers::from)
    }

    fn list(self, _: usize, _: &mut List) -> Option<()> {
        None
    }
}

/// Checks that the displacements are not NULL, unless there are no ranks.
fn there(displs: Displs, ranks: usize) -> Result<(), Error> {
    if displs.is_null() && ranks > 0 {
        return Err(Error::new(MPI_ERR_ARG, "the array of displacements is NULL"));
    }
    Ok(())
}
