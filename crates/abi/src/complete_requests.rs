//! Ends of requests whose operations were complete when they began ([`SENT`]). Such a request needs no lock.

use crate::arguments::store_status;
use crate::constants::{MPI_REQUEST_NULL, MPI_SUCCESS};
use crate::objects::SENT;
use crate::status::{MpiStatus, store_empty};
use crate::types::Request;
use weft_process::Status;

/// Ends a request of an operation that was complete when it began, which needs no lock.
///
/// # Safety
/// `request` may be written; `status` is `MPI_STATUS_IGNORE` or may be written.
#[inline(always)]
pub unsafe fn end_complete(request: *mut Request, status: *mut MpiStatus) {
    // SAFETY: `request` may be written, and `status` may be ignored or written; the contract of this function says so.
    unsafe {
        request.write(MPI_REQUEST_NULL);
        store_status(status, &Status::default());
    }
}

/// Ends the requests of an array, which are null or of operations that were complete when they began.
///
/// # Safety
/// `requests` has `len` elements; `statuses` is `MPI_STATUSES_IGNORE` or has `len` elements.
#[cold]
pub unsafe fn end_all_complete(
    len: usize,
    requests: *mut Request,
    statuses: *mut MpiStatus,
) -> usize {
    for i in 0..len {
        let to = if statuses.is_null() { statuses } else { statuses.wrapping_add(i) };
        // SAFETY: `i` is less than `len`, so both arrays have this place, or statuses are ignored.
        unsafe {
            match *requests.add(i) {
                SENT => {
                    end_complete(requests.add(i), to);
                    if !to.is_null() {
                        (*to).error = MPI_SUCCESS;
                    }
                }
                _ => store_empty(to),
            }
        }
    }
    len
}
