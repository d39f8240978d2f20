//! Packing and unpacking: the compiled program carried out on memory.

use crate::layout::Block;
use crate::walk::{Sink, elements};
use crate::{Datatype, Error};
use std::ptr;
use weft_fabric::Sge;

impl Datatype {
    /// Packed bytes of `count` elements.
    pub fn packed_size(&self, count: usize) -> Result<usize, Error> {
        let bytes = self.size().checked_mul(count).filter(|&b| i64::try_from(b).is_ok());
        bytes.ok_or(Error::Overflow { what: "packed size" })
    }

    /// The bytes that `count` elements may touch, as an offset from the base address and a length;
    /// `(0, 0)` if they have no data.
    pub fn span(&self, count: usize) -> Result<(i64, usize), Error> {
        if self.size() == 0 || count == 0 {
            return Ok((0, 0));
        }
        let overflow = Error::Overflow { what: "span" };
        let Ok(last) = i64::try_from(count - 1) else { return Err(overflow) };
        let Some(far) = last.checked_mul(self.extent()) else { return Err(overflow) };
        let low = self.true_lb().checked_add(far.min(0));
        let high = self.true_ub().checked_add(far.max(0));
        match low.zip(high).and_then(|(l, h)| Some((l, h.checked_sub(l)?))) {
            Some((low, len)) => Ok((low, len as usize)),
            None => Err(overflow),
        }
    }

    /// Where all data of `count` elements lie, if memory holds them in packed order without gaps:
    /// then they can be sent from there.
    pub fn as_run(&self, count: usize) -> Option<(i64, usize)> {
        if self.size() == 0 || count == 0 {
            return Some((0, 0));
        }
        let node = self.program();
        let joined = count == 1 || self.extent() == node.size as i64;
        let run = joined && matches!(node.kind, crate::layout::Kind::Run);
        run.then(|| node.size.checked_mul(count)).flatten().map(|len| (node.offset, len))
    }

    /// Calls `f(offset, length)` for the runs of memory that hold packed bytes `skip` to
    /// `skip + take` of `count` elements, in order; neighbours that touch may come separately.
    ///
    /// # Panics
    /// If the elements have fewer packed bytes.
    pub fn runs(&self, count: usize, skip: usize, take: usize, f: impl FnMut(i64, usize)) {
        struct Each<F>(F);
        impl<F: FnMut(i64, usize)> Sink for Each<F> {
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
        let mut sink = Pack { base: base.cast_mut(), out };
        elements(self.program(), self.extent(), 0, self.size() * count, &mut sink);
    }

    /// Unpacks `count` elements from `input` to `base`. Gaps of the type are not touched. Where
    /// entries of the type overlap (which MPI forbids in a receive), any one of them may win.
    ///
    /// # Safety
    /// As for [`pack`](Datatype::pack), with reading and writing exchanged.
    pub unsafe fn unpack(&self, base: *mut u8, count: usize, input: *const u8) {
        let mut sink = Unpack { base, input };
        elements(self.program(), self.extent(), 0, self.size() * count, &mut sink);
    }

    /// Packs the bytes of the packed stream from `skip` on that fit in `out`; says how many. 0 at
    /// the end of the stream.
    ///
    /// # Safety
    /// As for [`pack`](Datatype::pack).
    ///
    /// # Panics
    /// If `skip` lies beyond the stream.
    pub unsafe fn pack_range(&self, base: *const u8, count: usize, skip: usize, out: Sge) -> usize {
        let take = self.rest(count, skip).min(out.len());
        let mut sink = Pack { base: base.cast_mut(), out: out.ptr() };
        elements(self.program(), self.extent(), skip, take, &mut sink);
        take
    }

    /// Unpacks `input`, which is the packed stream from `skip` on; says how many bytes belonged to
    /// the elements (fewer than `input` holds, if it is longer than the stream).
    ///
    /// # Safety
    /// As for [`unpack`](Datatype::unpack).
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
        let mut sink = Unpack { base, input: input.ptr() };
        elements(self.program(), self.extent(), skip, take, &mut sink);
        take
    }

    fn rest(&self, count: usize, skip: usize) -> usize {
        self.check_range(count, skip, 0);
        self.size() * count - skip
    }
}

/// The address `offset` bytes from `base`.
fn at(base: *mut u8, offset: i64) -> *mut u8 {
    if base.is_null() {
        // MPI_BOTTOM: the offset is an address that MPI_Get_address gave out.
        return ptr::with_exposed_provenance_mut(offset as usize);
    }
    base.wrapping_offset(offset as isize)
}

struct Pack {
    base: *mut u8,
    out: *mut u8,
}

struct Unpack {
    base: *mut u8,
    input: *const u8,
}

impl Sink for Pack {
    fn run(&mut self, offset: i64, len: usize) {
        // SAFETY: `pack`'s caller promised the memory of the type and the room in `out`, of which
        // the walk hands out each byte once.
        unsafe {
            copy(at(self.base, offset), self.out, len);
            self.out = self.out.add(len);
        }
    }

    fn strided(&mut self, offset: i64, stride: i64, count: usize, block: usize) {
        let from = Steps { first: at(self.base, offset), step: stride as isize };
        let to = Steps { first: self.out, step: block as isize };
        // SAFETY: as for `run`, for `count` runs.
        unsafe {
            copy_strided(from, to, count, block);
            self.out = self.out.add(count * block);
        }
    }

    fn scattered(&mut self, base: i64, offsets: &[i64], block: usize) {
        let from = at(self.base, base);
        with_length(block, |block| {
            // A local, which the copies cannot change.
            let mut out = self.out;
            for &offset in offsets {
                // SAFETY: as for `run`, for the runs of all offsets.
                unsafe {
                    ptr::copy_nonoverlapping(from.wrapping_offset(offset as isize), out, block);
                    out = out.add(block);
                }
            }
            self.out = out;
        });
    }

    fn structs(&mut self, base: i64, stride: i64, count: usize, size: usize, blocks: &[Block]) {
        tiles(base, stride, count, |base, count| {
            for block in blocks {
                let from = at(self.base, base.wrapping_add(block.offset));
                let from = Steps { first: from, step: stride as isize };
                let to = Steps { first: self.out.wrapping_add(block.start), step: size as isize };
                // SAFETY: as for `run`, for this block of `count` elements.
                unsafe { copy_strided(from, to, count, block.len) }
            }
            self.out = self.out.wrapping_add(count * size);
        });
    }
}

impl Sink for Unpack {
    fn run(&mut self, offset: i64, len: usize) {
        // SAFETY: `unpack`'s caller promised the memory of the type and of the packed stream.
        unsafe {
            copy(self.input, at(self.base, offset), len);
            self.input = self.input.add(len);
        }
    }

    fn strided(&mut self, offset: i64, stride: i64, count: usize, block: usize) {
        let from = Steps { first: self.input.cast_mut(), step: block as isize };
        let to = Steps { first: at(self.base, offset), step: stride as isize };
        // SAFETY: as for `run`, for `count` runs.
        unsafe {
            copy_strided(from, to, count, block);
            self.input = self.input.add(count * block);
        }
    }

    fn scattered(&mut self, base: i64, offsets: &[i64], block: usize) {
        let to = at(self.base, base);
        with_length(block, |block| {
            // A local, which the copies cannot change.
            let mut input = self.input;
            for &offset in offsets {
                // SAFETY: as for `run`, for the runs of all offsets.
                unsafe {
                    ptr::copy_nonoverlapping(input, to.wrapping_offset(offset as isize), block);
                    input = input.add(block);
                }
            }
            self.input = input;
        });
    }

    fn structs(&mut self, base: i64, stride: i64, count: usize, size: usize, blocks: &[Block]) {
        tiles(base, stride, count, |base, count| {
            for block in blocks {
                let from = self.input.wrapping_add(block.start).cast_mut();
                let from = Steps { first: from, step: size as isize };
                let to = at(self.base, base.wrapping_add(block.offset));
                let to = Steps { first: to, step: stride as isize };
                // SAFETY: as for `run`, for this block of `count` elements.
                unsafe { copy_strided(from, to, count, block.len) }
            }
            self.input = self.input.wrapping_add(count * size);
        });
    }
}

/// Cuts a loop into pieces that stay in the nearest cache, so that each can be gone through once
/// for every member of a struct, in a loop of copies of one known length.
fn tiles(base: i64, stride: i64, count: usize, mut f: impl FnMut(i64, usize)) {
    const TILE: usize = 64;
    for first in (0..count).step_by(TILE) {
        let place = base.wrapping_add((first as i64).wrapping_mul(stride));
        f(place, TILE.min(count - first));
    }
}

/// Copies `len` bytes; the usual lengths without a call.
///
/// # Safety
/// As for `ptr::copy_nonoverlapping`.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's promise; every arm copies `len` bytes.
    unsafe {
        match len {
            1 => ptr::copy_nonoverlapping(from, to, 1),
            2 => ptr::copy_nonoverlapping(from, to, 2),
            4 => ptr::copy_nonoverlapping(from, to, 4),
            8 => ptr::copy_nonoverlapping(from, to, 8),
            12 => ptr::copy_nonoverlapping(from, to, 12),
            16 => ptr::copy_nonoverlapping(from, to, 16),
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// Addresses at equal distance.
#[derive(Clone, Copy)]
struct Steps {
    first: *mut u8,
    step: isize,
}

/// Calls `f(length)`, compiled once for each of the usual lengths, for which its copies become
/// single moves.
#[inline(always)]
fn with_length(length: usize, mut f: impl FnMut(usize)) {
    match length {
        1 => f(1),
        2 => f(2),
        4 => f(4),
        8 => f(8),
        12 => f(12),
        16 => f(16),
        24 => f(24),
        32 => f(32),
        48 => f(48),
        64 => f(64),
        _ => f(length),
    }
}

/// Copies `count` blocks of `block` bytes from the places of `from` to those of `to`.
///
/// # Safety
/// Every block must be readable and writable respectively, and no block of one side may overlap
/// one of the other.
unsafe fn copy_strided(from: Steps, to: Steps, count: usize, block: usize) {
    with_length(block, |block| {
        let (mut a, mut b) = (from.first, to.first);
        for _ in 0..count {
            // SAFETY: the caller's promise.
            unsafe { ptr::copy_nonoverlapping(a, b, block) }
            // The places after the last are not used, and may not exist.
            a = a.wrapping_offset(from.step);
            b = b.wrapping_offset(to.step);
        }
    });
}
