//! Packing and unpacking: execution of the compiled program on memory.

use crate::copies::{self, BlockGrid, BlockRow, MemberPair, TILE};
use crate::layout::ProgramBlock;
use crate::walk::{Rows, RunSink, Structs, all, elements};
use crate::{Datatype, DatatypeError};
use std::ptr;
use weft_fabric::Sge;

impl Datatype {
    /// Returns the number of packed bytes of `count` elements.
    pub fn packed_size(&self, count: usize) -> Result<usize, DatatypeError> {
        let bytes = self.size().checked_mul(count).filter(|&b| i64::try_from(b).is_ok());
        bytes.ok_or(DatatypeError::Overflow { what: "packed size" })
    }

    /// Returns the range of bytes that `count` elements may touch, as an offset from the base address and a length; `(0, 0)` if the
    /// elements have no data.
    pub fn span(&self, count: usize) -> Result<(i64, usize), DatatypeError> {
        if self.size() == 0 || count == 0 {
            return Ok((0, 0));
        }
        let overflow = DatatypeError::Overflow { what: "span" };
        let Ok(last) = i64::try_from(count - 1) else { return Err(overflow) };
        let Some(far) = last.checked_mul(self.extent()) else { return Err(overflow) };
        let low = self.true_lb().checked_add(far.min(0));
        let high = self.true_ub().checked_add(far.max(0));
        match low.zip(high).and_then(|(l, h)| Some((l, h.checked_sub(l)?))) {
            Some((low, len)) => Ok((low, len as usize)),
            None => Err(overflow),
        }
    }

    /// Returns offset and length of all data of `count` elements, if memory holds the data in packed order without gaps. Then the
    /// data can be sent without a copy.
    pub fn as_run(&self, count: usize) -> Option<(i64, usize)> {
        if self.size() == 0 || count == 0 {
            return Some((0, 0));
        }
        let node = self.program();
        let joined = count == 1 || self.extent() == node.size as i64;
        let run = joined && matches!(node.kind, crate::layout::ProgramNodeKind::Run);
        run.then(|| node.size.checked_mul(count)).flatten().map(|len| (node.offset, len))
    }

    /// Calls `f(offset, length)` for the runs of memory that hold packed bytes `skip` to `skip + take` of `count` elements,
    /// in order. Adjacent runs may be reported separately.
    ///
    /// # Panics
    /// If the elements have fewer packed bytes.
    pub fn runs(&self, count: usize, skip: usize, take: usize, f: impl FnMut(i64, usize)) {
        struct Each<F>(F);
        impl<F: FnMut(i64, usize)> RunSink for Each<F> {
            fn run(&mut self, offset: i64, len: usize) {
                (self.0)(offset, len)
            }
        }
        self.check_range(count, skip, take);
        elements(self.program(), self.extent(), skip, take, &mut Each(f));
    }

    fn check_range(&self, count: usize, skip: usize, take: usize) {
        let total = self.size().checked_mul(count).expect("the packed size was checked");
        assert!(
            skip <= total && take <= total - skip,
            "packed bytes {skip}+{take} of {total}: out of range"
        );
    }

    /// Packs `count` elements at `base` to `out`.
    ///
    /// # Safety
    /// The memory of `count` elements at `base` ([`span`](Datatype::span)) must be readable, `out`
    /// must be writable for [`packed_size`](Datatype::packed_size), and the two must not overlap.
    /// `base` may be null (`MPI_BOTTOM`) if the type holds absolute addresses.
    pub unsafe fn pack(&self, base: *const u8, count: usize, out: *mut u8) {
        let mut sink = Copy::<true> { base: base.cast_mut(), packed: out };
        all(self.program(), self.extent(), count, &mut sink);
    }

    /// Unpacks `count` elements from `input` to `base`. Gaps of the type are not touched. If entries of the type overlap, which MPI
    /// forbids in a receive, memory gets the bytes of any of these entries.
    ///
    /// # Safety
    /// The memory of `count` elements at `base` must be writable, `input` must be readable for the packed size, and the two
    /// must not overlap. `base` may be null as for [`pack`](Datatype::pack).
    pub unsafe fn unpack(&self, base: *mut u8, count: usize, input: *const u8) {
        let mut sink = Copy::<false> { base, packed: input.cast_mut() };
        all(self.program(), self.extent(), count, &mut sink);
    }

    /// Packs as many bytes of the packed stream, from position `skip` on, as fit in `out`. Returns the number of bytes, which is 0
    /// at the end of the stream.
    ///
    /// # Safety
    /// As for [`pack`](Datatype::pack), except that `out` must be writable for its own length.
    ///
    /// # Panics
    /// If `skip` lies beyond the stream.
    pub unsafe fn pack_range(&self, base: *const u8, count: usize, skip: usize, out: Sge) -> usize {
        let take = self.rest(count, skip).min(out.len());
        let mut sink = Copy::<true> { base: base.cast_mut(), packed: out.ptr() };
        if take == self.size() * count {
            all(self.program(), self.extent(), count, &mut sink);
        } else {
            elements(self.program(), self.extent(), skip, take, &mut sink);
        }
        take
    }

    /// Unpacks `input`, which is the packed stream from `skip` on. Returns the number of bytes that belong to the elements
    /// (fewer than `input` has, if `input` is longer than the stream).
    ///
    /// # Safety
    /// As for [`unpack`](Datatype::unpack), except that `input` must be readable for its own length.
    ///
    /// # Panics
    /// If `skip` lies beyond the stream.
    pub unsafe fn unpack_range(
        &self,
        base: *mut u8,
        count: usize,
        skip: usize,
        input: Sge,
    ) -> usize {
        let take = self.rest(count, skip).min(input.len());
        let mut sink = Copy::<false> { base, packed: input.ptr() };
        if take == self.size() * count {
            all(self.program(), self.extent(), count, &mut sink);
        } else {
            elements(self.program(), self.extent(), skip, take, &mut sink);
        }
        take
    }

    fn rest(&self, count: usize, skip: usize) -> usize {
        self.check_range(count, skip, 0);
        self.size() * count - skip
    }
}

/// Returns the address `offset` bytes from `base`.
fn at(base: *mut u8, offset: i64) -> *mut u8 {
    if base.is_null() {
        // If `base` is MPI_BOTTOM, the offset is an address from MPI_Get_address.
        return ptr::with_exposed_provenance_mut(offset as usize);
    }
    base.wrapping_offset(offset as isize)
}

/// Sink that packs or unpacks. `base` is the address of the elements, and `packed` is the current position in the stream.
struct Copy<const PACK: bool> {
    base: *mut u8,
    packed: *mut u8,
}

impl<const PACK: bool> Copy<PACK> {
    #[inline(always)]
    fn step(&mut self, bytes: usize) -> *mut u8 {
        let packed = self.packed;
        self.packed = packed.wrapping_add(bytes);
        packed
    }
}

impl<const PACK: bool> RunSink for Copy<PACK> {
    fn run(&mut self, offset: i64, len: usize) {
        let (memory, packed) = (at(self.base, offset), self.step(len));
        let (from, to) = if PACK { (memory, packed) } else { (packed, memory) };
        // SAFETY: `run` needs a readable source and a writable destination of `len` bytes: the caller of `pack` or `unpack`
        // promises the memory of the type and of the packed stream, and the walk emits each byte once.
        unsafe { copies::run(from, to, len) }
    }

    #[inline]
    fn rows(&mut self, rows: Rows) {
        let packed = self.step(rows.rows * rows.columns * rows.block);
        let grid = BlockGrid {
            memory: at(self.base, rows.offset),
            step: rows.stride as isize,
            columns: rows.columns,
            row: rows.row as isize,
            rows: rows.rows,
        };
        // SAFETY: `grid` needs valid blocks: the caller of `pack` or `unpack` promises the memory of the type and of the
        // packed stream, and all runs of the grid lie in it.
        unsafe { copies::grid::<PACK>(grid, packed, rows.block) }
    }

    fn scattered(&mut self, base: i64, offsets: &[i64], block: usize) {
        let packed = self.step(offsets.len() * block);
        // SAFETY: `listed` needs valid blocks: the caller of `pack` or `unpack` promises the memory of the type and of the
        // packed stream, and the runs at all offsets lie in it.
        unsafe { copies::listed::<PACK>(at(self.base, base), offsets, packed, block) }
    }

    // Each member, or each pair of members, has its own loop over a tile of elements. The tile stays in the nearest cache from loop
    // to loop.
    fn structs(&mut self, structs: Structs<'_>) {
        let Structs { base, stride, count, size, blocks } = structs;
        // With at most two members each element is accessed once, so tiles are not needed.
        let tile = if blocks.len() <= 2 { count.max(1) } else { TILE };
        for first in (0..count).step_by(tile) {
            let count = tile.min(count - first);
            let place = base.wrapping_add((first as i64).wrapping_mul(stride));
            let packed = self.step(count * size);
            let place = |block: &ProgramBlock| {
                let memory = at(self.base, place.wrapping_add(block.offset));
                (
                    BlockRow { first: memory, step: stride as isize },
                    BlockRow { first: packed.wrapping_add(block.start), step: size as isize },
                )
            };
            let mut rest = blocks;
            while let [block, others @ ..] = rest {
                let (memory, packed) = place(block);
                rest = others;
                if let [next, others @ ..] = rest {
                    let gap = next.offset.wrapping_sub(block.offset) as isize;
                    let (lengths, apart) = ([block.len, next.len], block.len as isize);
                    let pair = MemberPair { lengths, gap, apart };
                    // SAFETY: `spread_two` needs valid blocks: the caller of `pack` or `unpack` promises the memory, and the
                    // two members of these elements lie in it.
                    if unsafe { copies::spread_two::<PACK>(memory, packed, count, pair) } {
                        rest = others;
                        continue;
                    }
                }
                // SAFETY: `spread` needs valid blocks: the caller of `pack` or `unpack` promises the memory, and this member
                // of these elements lies in it.
                unsafe { copies::spread::<PACK>(memory, packed, count, block.len) }
            }
        }
    }
}
