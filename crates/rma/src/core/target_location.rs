//! What a program says of an operation's target (MPI 5.0, section 12.3): rank, displacement, count and datatype.

use weft_datatype::Type;

/// The target's side of an operation: `count` elements of `ty` at displacement `disp` of `rank`.
#[derive(Debug, Clone, Copy)]
pub struct TargetLocation<'a> {
    /// The target, as the window's communicator counts.
    pub rank: usize,
    /// In units of the target's displacement unit; in a dynamic window an address of the target.
    pub disp: i64,
    /// Elements of `ty`, which follow each other by its extent.
    pub count: usize,
    /// The layout of one element in the target's memory, as this process describes it.
    pub ty: &'a Type,
}

impl TargetLocation<'_> {
    /// Bytes of data.
    pub fn len(&self) -> usize {
        self.ty.size() * self.count
    }

    /// Whether there are no data, so that the target's memory is not touched.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
