//! Access to the public fields of a status by functions (MPI 5.0, section 3.2.5).

use crate::error::Error;
use crate::status::MpiStatus;
use std::ffi::c_int;

/// Returns an error for NULL, which is also the value of MPI_STATUS_IGNORE.
fn given<T>(pointer: *const T, argument: &str) -> Result<(), Error> {
    match pointer.is_null() {
        true => Err(Error::null(argument)),
        false => Ok(()),
    }
}

/// MPI_Status_get_source.
pub(crate) unsafe fn status_get_source(
    status: *const MpiStatus,
    source: *mut c_int,
) -> Result<(), Error> {
    given(status, "status")?;
    given(source, "source")?;
    // SAFETY: neither pointer is NULL, so they point to a status and to an int, as MPI requires of the program.
    unsafe { *source = (*status).source };
    Ok(())
}

/// MPI_Status_get_tag.
pub(crate) unsafe fn status_get_tag(
    status: *const MpiStatus,
    tag: *mut c_int,
) -> Result<(), Error> {
    given(status, "status")?;
    given(tag, "tag")?;
    // SAFETY: neither pointer is NULL, so they point to a status and to an int, as MPI requires of the program.
    unsafe { *tag = (*status).tag };
    Ok(())
}

/// MPI_Status_get_error.
pub(crate) unsafe fn status_get_error(
    status: *const MpiStatus,
    error: *mut c_int,
) -> Result<(), Error> {
    given(status, "status")?;
    given(error, "err")?;
    // SAFETY: neither pointer is NULL, so they point to a status and to an int, as MPI requires of the program.
    unsafe { *error = (*status).error };
    Ok(())
}

/// MPI_Status_set_source.
pub(crate) unsafe fn status_set_source(status: *mut MpiStatus, source: c_int) -> Result<(), Error> {
    given(status, "status")?;
    // SAFETY: `status` is not NULL, so it points to a status, as MPI requires of the program.
    unsafe { (*status).source = source };
    Ok(())
}

/// MPI_Status_set_tag.
pub(crate) unsafe fn status_set_tag(status: *mut MpiStatus, tag: c_int) -> Result<(), Error> {
    given(status, "status")?;
    // SAFETY: `status` is not NULL, so it points to a status, as MPI requires of the program.
    unsafe { (*status).tag = tag };
    Ok(())
}

/// MPI_Status_set_error.
pub(crate) unsafe fn status_set_error(status: *mut MpiStatus, error: c_int) -> Result<(), Error> {
    given(status, "status")?;
    // SAFETY: `status` is not NULL, so it points to a status, as MPI requires of the program.
    unsafe { (*status).error = error };
    Ok(())
}
