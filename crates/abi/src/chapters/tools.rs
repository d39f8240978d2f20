//! Tool support (MPI 5.0, chapter 15).

use crate::error::Error;
use std::ffi::c_int;

/// For profiling libraries to define; what it does without one is nothing, for every level.
pub(crate) unsafe fn pcontrol(_level: c_int) -> Result<(), Error> {
    Ok(())
}
