//! Completion of the simple requests of an array in a single pass. The pass borrows the library's state only once.

use super::Arrays;
use crate::arguments::store_status;
use crate::constants::*;
use crate::objects::{RequestObject, SENT};
use crate::state::state;
use crate::status::store_empty;

impl Arrays {
    /// Ends requests from `first` on, in one pass, as long as they are simple and complete: sends that were complete when they were
    /// started, and receives that have their complete message. Returns the index of the first request of another kind, or the
    /// length of the array.
    ///
    /// # Safety
    /// The arrays are those of the program: `len` requests, and no statuses or `len` statuses.
    pub(super) unsafe fn end_plain(&self, first: usize) -> usize {
        let state = state();
        let Some(engine) = state.engine.get() else { return first };
        let (mut requests, mut ends) = (state.requests.borrow_mut(), engine.endpoint().ends());
        for i in first..self.len {
            let handle = self.request(i);
            if handle == MPI_REQUEST_NULL {
                // SAFETY: `i` is less than `len`, so the status is NULL or a place of the program's array; the contract of this
                // function says so.
                unsafe { store_empty(self.status(i)) };
                continue;
            }
            let status = if handle == SENT {
                weft_process::Status::default()
            } else {
                let received = |object: &RequestObject| ends.received(object.plain_receive()?);
                match requests.remove_if(handle.0, received) {
                    None => return i,
                    Some((status, object)) => {
                        object.forget_plain();
                        status
                    }
                }
            };
            // SAFETY: `i` is less than `len`, so both places are inside the program's arrays (contract of this function).
            unsafe {
                self.requests.add(i).write(MPI_REQUEST_NULL);
                let to = self.status(i);
                if !to.is_null() {
                    store_status(to, &status);
                    (*to).error = MPI_SUCCESS;
                }
            }
        }
        self.len
    }
}
