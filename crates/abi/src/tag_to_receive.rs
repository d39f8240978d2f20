//! The tag for which a receive or a probe asks (MPI 5.0, section 3.2.4).

use crate::arguments::tag;
use crate::constants::{MPI_ANY_TAG, MPI_ERR_TAG};
use crate::engine::CommObject;
use crate::error::Error;
use crate::lanes;
use std::ffi::c_int;

/// Checks a tag to receive. Returns `None` for `MPI_ANY_TAG`. Errors: TAG, also for MPI_ANY_TAG on a communicator whose members all
/// promised not to use it, if the promise decides how the messages travel.
#[inline]
pub fn any_tag(comm: &CommObject, value: c_int, argument: &str) -> Result<Option<i32>, Error> {
    if value != MPI_ANY_TAG {
        return tag(value, argument).map(Some);
    }
    if lanes::needs_tag(comm) {
        return Err(broken_promise(argument));
    }
    Ok(None)
}

#[cold]
fn broken_promise(argument: &str) -> Error {
    let text = format!(
        "argument {argument} = MPI_ANY_TAG: all processes made this communicator with \
         mpi_assert_no_any_tag = true: name a tag, or leave the assertion out"
    );
    Error::new(MPI_ERR_TAG, text)
}
