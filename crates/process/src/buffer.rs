//! The program's buffers: an address, a count and a datatype.

use weft_datatype::Type;
use weft_fabric::{Sge, Staging, StagingPool};

/// `count` elements of a datatype at an address. A clone is cheap, because clones share the type. The type exists as long as a
/// clone exists.
#[derive(Clone)]
pub struct Buffer {
    base: *mut u8,
    count: usize,
    ty: Type,
}

impl Buffer {
    /// # Safety
    /// The memory that `count` elements of `ty` at `base` touch must satisfy [`Sge::new`] until every operation on the buffer is
    /// complete. `base` may be null for absolute types.
    pub unsafe fn new(base: *mut u8, count: usize, ty: Type) -> Buffer {
        Buffer { base, count, ty }
    }

    /// Makes a buffer of as many elements of `ty` as `memory` holds, side by side. The memory is a valid [`Sge`] already, such as a
    /// region of a fabric or a staging buffer.
    ///
    /// # Panics
    /// Panics if `ty` has gaps, or `memory` does not hold whole elements.
    pub fn over(memory: Sge, ty: Type) -> Buffer {
        let count = memory.len() / ty.size().max(1);
        let whole = ty.as_run(count) == Some((0, memory.len()));
        assert!(whole, "{} bytes are no whole elements without gaps", memory.len());
        Buffer { base: memory.ptr(), count, ty }
    }

    /// Makes a buffer of `count` elements of `ty`. The first element begins at byte `offset` of `memory`. Returns `None` if an
    /// element touches memory outside of `memory`.
    pub fn within(memory: Sge, offset: i64, count: usize, ty: Type) -> Option<Buffer> {
        let (low, span) = ty.span(count).ok()?;
        let first = offset
            .checked_add(low)
            .filter(|_| span > 0)
            .map_or(Some(0), |first| usize::try_from(first).ok());
        let inside = first?.checked_add(span).is_some_and(|end| end <= memory.len());
        let base = memory.ptr().wrapping_offset(offset as isize);
        inside.then_some(Buffer { base, count, ty })
    }

    /// Makes a buffer of elements that have only a size, for studies in the simulator: nothing is copied.
    pub fn phantom(count: usize, ty: Type) -> Buffer {
        Buffer { base: std::ptr::null_mut(), count, ty }
    }

    /// Returns the number of elements of [`Buffer::ty`], not of bytes.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the type of an element. The buffer keeps the type alive.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Returns the number of bytes of data.
    pub fn len(&self) -> usize {
        self.ty.size() * self.count
    }

    /// Returns true if there are no bytes to move: no elements, or elements without data.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the buffer of `count` elements that begins `displacement` extents after this buffer.
    pub fn block(&self, displacement: i64, count: usize) -> Buffer {
        let bytes = displacement.wrapping_mul(self.ty.extent()) as isize;
        Buffer { base: self.base.wrapping_offset(bytes), count, ty: self.ty.clone() }
    }

    /// Returns the memory of the data, if the data lie there in order and without gaps.
    pub fn run(&self) -> Option<Sge> {
        let (offset, len) = self.ty.as_run(self.count)?;
        let start = if self.base.is_null() {
            std::ptr::with_exposed_provenance_mut(offset as usize)
        } else {
            self.base.wrapping_offset(offset as isize)
        };
        // SAFETY: these bytes belong to the elements, whose memory satisfies `Sge::new`: the caller of `Buffer::new` promises it.
        Some(if len == 0 { Sge::EMPTY } else { unsafe { Sge::new(start, len) } })
    }

    /// Packs the data to `out`, which has [`Buffer::len`] bytes.
    pub fn pack_to(&self, out: Sge) {
        assert_eq!(out.len(), self.len());
        // SAFETY: the elements are valid for reads: the caller of `Buffer::new` promises it. `out` is as long as the data
        // (asserted), and valid for writes by the promise of `Sge::new`. Staging and user memory do not overlap.
        unsafe { self.ty.pack(self.base, self.count, out.ptr()) }
    }

    /// Packs data from byte `skip` on until `out` is full.
    pub fn pack_at(&self, skip: usize, out: Sge) {
        // SAFETY: the elements are valid for reads by the promise of `Buffer::new`. `out` is valid for writes by the promise of
        // `Sge::new`.
        unsafe { self.ty.pack_range(self.base, self.count, skip, out) };
    }

    /// Unpacks `input` to the beginning of the data. `input` has at most [`Buffer::len`] bytes.
    pub fn unpack_from(&self, input: Sge) {
        self.unpack_at(0, input);
    }

    /// Unpacks `input` to the data from byte `skip` on.
    pub fn unpack_at(&self, skip: usize, input: Sge) {
        // SAFETY: the elements are valid for writes by the promise of `Buffer::new`. `input` is valid for reads by the promise of
        // `Sge::new`.
        unsafe { self.ty.unpack_range(self.base, self.count, skip, input) };
    }

    /// Copies the data to `to`, which has the same number of bytes. Each buffer keeps its own layout.
    pub fn copy_to(&self, to: &Buffer, pool: &StagingPool) {
        assert_eq!(self.len(), to.len());
        match (self.run(), to.run()) {
            (Some(from), Some(to)) => to.copy_from(from),
            (Some(from), None) => to.unpack_from(from),
            (None, Some(to)) => self.pack_to(to),
            (None, None) => to.unpack_from(self.readable(pool).sge),
        }
    }

    /// Returns the data as one piece of memory to send: in place, or packed.
    pub fn readable(&self, pool: &StagingPool) -> BufferPiece {
        let piece = self.writable(pool);
        if piece.staging.is_some() {
            self.pack_to(piece.sge);
        }
        piece
    }

    /// Returns one piece of memory to receive into. [`BufferPiece::unpack`] moves the received bytes to their place.
    pub fn writable(&self, pool: &StagingPool) -> BufferPiece {
        match self.run() {
            Some(sge) => BufferPiece { sge, staging: None },
            None => {
                let staging = pool.take(self.len());
                BufferPiece { sge: staging.sge(), staging: Some(staging) }
            }
        }
    }
}

/// A buffer's data in one piece: the buffer's own memory, or a staging buffer.
pub struct BufferPiece {
    /// The data without gaps, valid as long as the buffer's memory and `staging` are.
    pub sge: Sge,
    /// The staging buffer with the packed data, to which `sge` points. `None` if `sge` is the program's own memory.
    pub staging: Option<Staging>,
}

impl BufferPiece {
    /// Moves the first `bytes` received bytes to their place in `buffer`.
    pub fn unpack(&self, buffer: &Buffer, bytes: usize) {
        if self.staging.is_some() {
            buffer.unpack_from(self.sge.part(0, bytes));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use weft_datatype::{Basic, Datatype, Predefined, Width};

    pub(crate) fn int() -> Type {
        Predefined::only(Basic::INT)
    }

    #[test]
    fn memory_that_has_a_name_already_becomes_a_buffer() {
        let staging = StagingPool::default().take(12);
        let buffer = Buffer::over(staging.sge(), int());
        assert_eq!((buffer.count(), buffer.run()), (3, Some(staging.sge())));
        let phantom = Buffer::over(Sge::phantom(8), int());
        assert!(phantom.run().is_some_and(|sge| sge.is_phantom() && sge.len() == 8));
    }

    #[test]
    fn elements_within_memory_touch_nothing_else() {
        let staging = StagingPool::default().take(24);
        let memory = staging.sge();
        let every_other = Datatype::vector(Width::Int, 2, 1, 2, &int()).unwrap();
        let at = |offset, count, ty: &Type| Buffer::within(memory, offset, count, ty.clone());
        assert_eq!(at(4, 3, &int()).and_then(|b| b.run()), Some(memory.part(4, 12)));
        assert!(at(12, 3, &int()).is_some() && at(16, 3, &int()).is_none());
        assert!(at(-4, 1, &int()).is_none() && at(99, 0, &int()).is_some());
        assert!(at(12, 1, &every_other).is_some() && at(16, 1, &every_other).is_none());
    }

    #[test]
    #[should_panic(expected = "10 bytes are no whole elements")]
    fn half_an_element_is_no_element() {
        Buffer::over(StagingPool::default().take(10).sge(), int());
    }
}
