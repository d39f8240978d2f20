//! `MPI_Status`, in the layout of the standard ABI.

use std::ffi::c_int;

/// What a receive, probe or wait says about a message. The public fields lie where every C and
/// Fortran program of the standard ABI expects them; `internal` is ours.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Status {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    pub internal: [c_int; 5],
}

const _: () = assert!(size_of::<Status>() == 32);
