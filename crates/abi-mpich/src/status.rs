//! `MPI_Status` of MPICH: 20 bytes.

use std::ffi::c_int;
use weft_legacy::runtime::{LegacyStatus, StatusFields};

/// Number of integers in a status, in C and in Fortran.
pub const STATUS_NUMBERS: usize = 5;

/// Result of a receive, probe or wait.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct MpichStatus {
    count_low: c_int,
    /// Upper half of the number of bytes, shifted by one; the lowest bit is the cancelled flag.
    count_high_and_cancelled: c_int,
    source: c_int,
    tag: c_int,
    error: c_int,
}

const _: () = assert!(size_of::<MpichStatus>() == 4 * STATUS_NUMBERS);

impl LegacyStatus for MpichStatus {
    const IGNORE: usize = 1;

    fn fields(&self) -> StatusFields {
        let high = self.count_high_and_cancelled as u32 >> 1;
        StatusFields {
            source: self.source,
            tag: self.tag,
            error: self.error,
            bytes: u64::from(self.count_low as u32) | u64::from(high) << 32,
            cancelled: self.count_high_and_cancelled & 1 != 0,
        }
    }

    #[inline(always)]
    fn store(&mut self, fields: StatusFields) {
        let StatusFields { source, tag, bytes, cancelled, .. } = fields;
        (self.source, self.tag) = (source, tag);
        self.count_low = bytes as u32 as c_int;
        self.count_high_and_cancelled = ((bytes >> 32) as c_int) << 1 | c_int::from(cancelled);
    }

    #[inline(always)]
    fn store_error(&mut self, error: c_int) {
        self.error = error;
    }
}
