//! `MPI_Status` of Open MPI: 24 bytes.

use std::ffi::c_int;
use weft_legacy::runtime::{LegacyStatus, StatusFields};

/// Number of integers in a status, in C and in Fortran.
pub const STATUS_NUMBERS: usize = 6;

/// Result of a receive, probe or wait.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Status {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    bytes: u64,
}

const _: () = assert!(size_of::<Status>() == 4 * STATUS_NUMBERS);

impl LegacyStatus for Status {
    const IGNORE: usize = 0;

    fn fields(&self) -> StatusFields {
        StatusFields {
            source: self.source,
            tag: self.tag,
            error: self.error,
            bytes: self.bytes,
            cancelled: self.cancelled != 0,
        }
    }

    #[inline(always)]
    fn store(&mut self, fields: StatusFields) {
        let StatusFields { source, tag, bytes, cancelled, .. } = fields;
        (self.source, self.tag, self.bytes) = (source, tag, bytes);
        self.cancelled = c_int::from(cancelled);
    }

    #[inline(always)]
    fn store_error(&mut self, error: c_int) {
        self.error = error;
    }
}
