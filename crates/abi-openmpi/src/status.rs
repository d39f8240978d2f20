//! `MPI_Status` of Open MPI: 24 bytes.

use std::ffi::c_int;
use weft_legacy::runtime::{LegacyStatus, StatusFields};

/// Number of integers in a status, in C and in Fortran.
pub const STATUS_NUMBERS: usize = 6;

/// Result of a receive, probe or wait.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpenMpiStatus {
    source: c_int,
    tag: c_int,
    error: c_int,
    cancelled: c_int,
    /// Number of bytes: a `size_t` in C. Fortran's statuses are arrays of integers, which may lie between two multiples of 8.
    bytes: [u32; 2],
}

const _: () = assert!(size_of::<OpenMpiStatus>() == 4 * STATUS_NUMBERS);

impl LegacyStatus for OpenMpiStatus {
    const IGNORE: usize = 0;

    fn fields(&self) -> StatusFields {
        StatusFields {
            source: self.source,
            tag: self.tag,
            error: self.error,
            bytes: u64::from(self.bytes[0]) | u64::from(self.bytes[1]) << 32,
            cancelled: self.cancelled != 0,
        }
    }

    #[inline(always)]
    fn store(&mut self, fields: StatusFields) {
        let StatusFields { source, tag, bytes, cancelled, .. } = fields;
        (self.source, self.tag) = (source, tag);
        self.bytes = [bytes as u32, (bytes >> 32) as u32];
        self.cancelled = c_int::from(cancelled);
    }

    #[inline(always)]
    fn store_error(&mut self, error: c_int) {
        self.error = error;
    }
}
