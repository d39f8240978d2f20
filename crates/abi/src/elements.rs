//! Parts of the argument lists of many functions: a buffer with its count and type, blocks by rank, a target. The build groups the
//! arguments into these parts (`build/calls.rs`), so that a check gets the values of the arguments together with their names.

use crate::arguments::{buffer, plain, plain_of};
use crate::constants::MPI_BYTE;
use crate::error::Error;
use crate::state::ProcessState;
use crate::types::Datatype;
use crate::widen_counts::{Counts, Displs};
use std::ffi::{c_int, c_void};
use weft_fabric::Sge;
use weft_process::Buffer;

/// Arguments of a function and of its other forms.
pub trait Arguments: Copy + 'static {
    /// MPI's name of the blocking form.
    const NAME: &'static str;
}

/// Names of a buffer's arguments: address, count or counts, type or types.
pub type Names = [&'static str; 3];

/// A buffer of the program with unchecked arguments.
#[derive(Clone, Copy)]
pub struct Elements {
    /// First byte of the buffer, or MPI_BOTTOM, MPI_IN_PLACE.
    pub address: *const c_void,
    /// Number of elements. A negative number is an error of the program.
    pub count: i64,
    /// Datatype of each element.
    pub ty: Datatype,
    /// Names of the arguments, for error texts.
    pub names: &'static Names,
    /// Private field, so that only `Elements::new`, whose caller makes a promise, can create this structure.
    _promised: (),
}

impl Elements {
    /// # Safety
    /// The program keeps the memory of the elements valid until the operation is complete. The elements are not used after the
    /// operation.
    #[inline(always)]
    pub unsafe fn new(
        address: *const c_void,
        count: i64,
        ty: Datatype,
        names: &'static Names,
    ) -> Elements {
        Elements { address, count, ty, names, _promised: () }
    }

    /// Returns the buffer of a rank that has no elements in an operation.
    pub fn none() -> Elements {
        // SAFETY: no memory is used, since there are no elements.
        unsafe { Elements::new(std::ptr::null(), 0, MPI_BYTE, &["", "", ""]) }
    }

    /// Returns the buffer with another number of elements.
    ///
    /// # Safety
    /// As for [`Elements::new`].
    #[inline(always)]
    pub unsafe fn of(self, count: i64) -> Elements {
        Elements { count, ..self }
    }

    /// Returns the buffer, or an error if an argument is wrong.
    #[inline]
    pub fn buffer(self) -> Result<Buffer, Error> {
        // SAFETY: the memory is valid until the operation is complete: the caller of `Elements::new` promised it.
        unsafe { buffer(self.address, self.count, self.ty, self.names) }
    }

    /// Returns the memory of elements of a predefined type without gaps. `None` as for [`plain`].
    #[inline(always)]
    pub fn plain(self) -> Option<Sge> {
        // SAFETY: the memory is valid until the operation is complete: the caller of `Elements::new` promised it.
        unsafe { plain(self.address, self.count, self.ty) }
    }

    /// Returns the same as [`Elements::plain`], for a caller that already has the state.
    #[inline(always)]
    pub fn plain_of(self, state: &ProcessState) -> Option<Sge> {
        // SAFETY: the memory is valid until the operation is complete: the caller of `Elements::new` promised it.
        unsafe { plain_of(state, self.address, self.count, self.ty) }
    }
}

/// Blocks of one type with different lengths and displacements, one block per rank. Displacements are in extents of the type.
#[derive(Clone, Copy)]
pub struct RankBlocks {
    /// First byte of the buffer, or MPI_BOTTOM, MPI_IN_PLACE.
    pub address: *const c_void,
    /// Numbers of elements, one per rank.
    pub counts: Counts,
    /// Displacements of the blocks, one per rank.
    pub displs: Displs,
    /// Datatype of each element.
    pub ty: Datatype,
    /// Names of the arguments, for error texts.
    pub names: &'static Names,
    /// Name, in error texts, of the argument that holds the displacements.
    pub displs_name: &'static str,
}

impl RankBlocks {
    /// # Safety
    /// The arrays are NULL or have one entry per rank, and the program keeps the memory valid as for [`Elements::new`].
    #[inline(always)]
    pub unsafe fn new(
        address: *const c_void,
        counts: Counts,
        displs: Displs,
        ty: Datatype,
        names: &'static Names,
        displs_name: &'static str,
    ) -> RankBlocks {
        RankBlocks { address, counts, displs, ty, names, displs_name }
    }
}

/// Blocks with different lengths, displacements and types, one block per rank. Displacements are in bytes.
#[derive(Clone, Copy)]
pub struct TypedBlocks {
    /// First byte of the buffer, or MPI_BOTTOM, MPI_IN_PLACE.
    pub address: *const c_void,
    /// Numbers of elements, one per rank.
    pub counts: Counts,
    /// Displacements of the blocks, one per rank.
    pub displs: Displs,
    /// Datatypes, one per rank.
    pub types: *const Datatype,
    /// Names of the arguments, for error texts.
    pub names: &'static Names,
    /// Name, in error texts, of the argument that holds the displacements.
    pub displs_name: &'static str,
}

impl TypedBlocks {
    /// # Safety
    /// As for [`RankBlocks::new`].
    #[inline(always)]
    pub unsafe fn new(
        address: *const c_void,
        counts: Counts,
        displs: Displs,
        types: *const Datatype,
        names: &'static Names,
        displs_name: &'static str,
    ) -> TypedBlocks {
        TypedBlocks { address, counts, displs, types, names, displs_name }
    }
}

/// The target's side of a one-sided operation.
#[derive(Clone, Copy)]
pub struct TargetArgs {
    /// Rank of the target in the window.
    pub rank: c_int,
    /// Displacement, in the target's displacement units.
    pub disp: isize,
    /// Number of elements. A negative number is an error of the program.
    pub count: i64,
    /// Datatype of each element.
    pub ty: Datatype,
}

impl TargetArgs {
    /// Creates the target without a check of its arguments.
    #[inline(always)]
    pub fn new(rank: c_int, disp: isize, count: i64, ty: Datatype) -> TargetArgs {
        TargetArgs { rank, disp, count, ty }
    }
}
