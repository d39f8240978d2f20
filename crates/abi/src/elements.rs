//! The parts of argument lists that many functions have: a buffer with its count and type, blocks by rank, a target. The
//! build groups them (`build/calls.rs`), so that a check finds the names of the arguments beside their values.

use crate::arguments::{buffer, plain, plain_of};
use crate::constants::MPI_BYTE;
use crate::error::Error;
use crate::state::ProcessState;
use crate::types::Datatype;
use crate::widen::{Counts, Displs};
use std::ffi::{c_int, c_void};
use weft_fabric::Sge;
use weft_process::Buffer;

/// The arguments of a function and its other forms.
pub trait Arguments: Copy + 'static {
    /// MPI's name of the blocking form.
    const NAME: &'static str;
}

/// Names of a buffer's arguments: address, count or counts, type or types.
pub type Names = [&'static str; 3];

/// A buffer of the program, as it was given: nothing of it is checked.
#[derive(Clone, Copy)]
pub struct Elements {
    /// Its first byte, or MPI_BOTTOM, MPI_IN_PLACE.
    pub address: *const c_void,
    /// Elements; below 0 is an error of the program.
    pub count: i64,
    /// Of each element.
    pub ty: Datatype,
    /// What the arguments are called in errors.
    pub names: &'static Names,
    /// Made here alone, by who has that promise.
    _promised: (),
}

impl Elements {
    /// # Safety
    /// The program promises the memory of the elements until the operation is over; nobody uses them after that.
    #[inline(always)]
    pub unsafe fn new(
        address: *const c_void,
        count: i64,
        ty: Datatype,
        names: &'static Names,
    ) -> Elements {
        Elements { address, count, ty, names, _promised: () }
    }

    /// The buffer of who has no elements in an operation.
    pub fn none() -> Elements {
        // SAFETY: of no elements.
        unsafe { Elements::new(std::ptr::null(), 0, MPI_BYTE, &["", "", ""]) }
    }

    /// The same of another number of elements.
    ///
    /// # Safety
    /// As for [`Elements::new`].
    #[inline(always)]
    pub unsafe fn of(self, count: i64) -> Elements {
        Elements { count, ..self }
    }

    /// The buffer, if nothing is wrong with it.
    #[inline]
    pub fn buffer(self) -> Result<Buffer, Error> {
        // SAFETY: by the contract of `new`.
        unsafe { buffer(self.address, self.count, self.ty, self.names) }
    }

    /// The memory of elements of a predefined type without gaps; `None` as [`plain`] says.
    #[inline(always)]
    pub fn plain(self) -> Option<Sge> {
        // SAFETY: by the contract of `new`.
        unsafe { plain(self.address, self.count, self.ty) }
    }

    /// The same for who has the state already.
    #[inline(always)]
    pub fn plain_of(self, state: &ProcessState) -> Option<Sge> {
        // SAFETY: by the contract of `new`.
        unsafe { plain_of(state, self.address, self.count, self.ty) }
    }
}

/// Blocks of their own length and place, one a rank, in extents of the type.
#[derive(Clone, Copy)]
pub struct RankBlocks {
    /// Its first byte, or MPI_BOTTOM, MPI_IN_PLACE.
    pub address: *const c_void,
    /// Elements, one a rank.
    pub counts: Counts,
    /// Where each block begins, one a rank.
    pub displs: Displs,
    /// Of each element.
    pub ty: Datatype,
    /// What the arguments are called in errors.
    pub names: &'static Names,
    /// What the argument of places is called in errors.
    pub displs_name: &'static str,
}

impl RankBlocks {
    /// # Safety
    /// The arrays are NULL or have one entry a rank, and the program promises the memory as for [`Elements::new`].
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

/// Blocks of their own type, too, with places in bytes.
#[derive(Clone, Copy)]
pub struct TypedBlocks {
    /// Its first byte, or MPI_BOTTOM, MPI_IN_PLACE.
    pub address: *const c_void,
    /// Elements, one a rank.
    pub counts: Counts,
    /// Where each block begins, one a rank.
    pub displs: Displs,
    /// One a rank.
    pub types: *const Datatype,
    /// What the arguments are called in errors.
    pub names: &'static Names,
    /// What the argument of places is called in errors.
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
    /// In units of the target's.
    pub disp: isize,
    /// Elements; below 0 is an error of the program.
    pub count: i64,
    /// Of each element.
    pub ty: Datatype,
}

impl TargetArgs {
    /// Nothing of it is checked.
    #[inline(always)]
    pub fn new(rank: c_int, disp: isize, count: i64, ty: Datatype) -> TargetArgs {
        TargetArgs { rank, disp, count, ty }
    }
}
