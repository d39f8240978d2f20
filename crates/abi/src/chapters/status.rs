//! The public fields of a status, by functions (MPI 5.0, section 3.2.5).

use crate::error::Error;
use crate::status::MpiStatus;
use std::ffi::c_int;

/// Refuses NULL, which is MPI_STATUS_IGNORE too.
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
    // SAFETY: neither is NULL; by MPI's rules they point to a status and to an int.
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
    // SAFETY: as above.
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
    // SAFETY: as above.
    unsafe { *error = (*status).error };
    Ok(())
}

/// MPI_Status_set_source.
pub(crate) unsafe fn status_set_source(status: *mut MpiStatus, source: c_int) -> Result<(), Error> {
    given(status, "status")?;
    // SAFETY: not NULL; by MPI's rules a status.
    unsafe { (*status).source = source };
    Ok(())
}

/// MPI_Status_set_tag.
pub(crate) unsafe fn status_set_tag(status: *mut MpiStatus, tag: c_int) -> Result<(), Error> {
    given(status, "status")?;
    // SAFETY: as above.
    unsafe { (*status).tag = tag };
    Ok(())
}

/// MPI_Status_set_error.
pub(crate) unsafe fn status_set_error(status: *mut MpiStatus, error: c_int) -> Result<(), Error> {
    given(status, "status")?;
    // SAFETY: as above.
    unsafe { (*status).error = error };
    Ok(())
}
