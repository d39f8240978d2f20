//! Requests of an array that end in one pass: the state of the library is taken once for all of them.

use super::{Arrays, store_empty};
use crate::arguments::store_status;
use crate::constants::*;
use crate::objects::{RequestObject, SENT};
use crate::state::state;

impl Arrays {
    /// Ends requests from `first` on, in one pass, as long as they are plain and over: sends that were over at once,
    /// receives that have all of their message. The place of the first that is not, or how many there are.
    ///
    /// # Safety
    /// The caller's arrays.
    pub(super) unsafe fn end_plain(&self, first: usize) -> usize {
        let state = state();
        let Some(engine) = state.engine.get() else { return first };
        let (mut requests, mut ends) = (state.requests.borrow_mut(), engine.endpoint().ends());
        for i in first..self.len {
            let handle = self.request(i);
            if handle == MPI_REQUEST_NULL {
                // SAFETY: by contract.
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
            // SAFETY: by contract.
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
