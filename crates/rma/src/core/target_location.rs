//! The program's description of an operation's target (MPI 5.0, section 12.3): rank, displacement, count and datatype.

use weft_datatype::Type;

/// The target's side of an operation: `count` elements of `ty` at displacement `disp` of `rank`.
#[derive(Debug, Clone, Copy)]
pub struct TargetLocation<'a> {
    /// The target's rank in the window's communicator.
    pub rank: usize,
    /// Displacement, in units of the target's displacement unit; in a dynamic window an address of the target.
    pub disp: i64,
    /// Number of elements of `ty`. The distance between elements is the extent of `ty`.
    pub count: usize,
    /// The layout of one element in the target's memory, as this process describes it.
    pub ty: &'a Type,
}

/// The target's side of an operation on plain bytes: `len` bytes at displacement `disp` of `rank`.
#[derive(Debug, Clone, Copy)]
pub struct TargetBytes {
    /// The target's rank in the window's communicator.
    pub rank: usize,
    /// Displacement, in units of the target's displacement unit.
    pub disp: i64,
    /// Number of bytes.
    pub len: usize,
}

impl TargetLocation<'_> {
    /// Returns the number of bytes of data.
    pub fn len(&self) -> usize {
        self.ty.size() * self.count
    }

    /// Returns true if there are no data, so that the target's memory is not accessed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
