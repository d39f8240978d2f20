//! `MPI_Status`, in the layout of the standard ABI.

use std::ffi::c_int;

/// Result of a receive, probe or wait. The public fields lie where every C and Fortran program of the standard ABI expects them.
/// `internal` belongs to the library.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MpiStatus {
    /// MPI_SOURCE: rank of the sender.
    pub source: c_int,
    /// MPI_TAG.
    pub tag: c_int,
    /// MPI_ERROR: set only by calls with several statuses.
    pub error: c_int,
    /// Number of bytes and flags, at the indices below. Programs do not use this field.
    pub internal: [c_int; 5],
}

const _: () = assert!(size_of::<MpiStatus>() == 32);

/// Indices in `internal`: the two halves of the number of bytes, and the flags of [`weft_process::StatusFlags`].
const BYTES_LOW: usize = 0;
const BYTES_HIGH: usize = 1;
const FLAGS: usize = 2;

impl MpiStatus {
    /// The empty status, such as the status of an inactive request (MPI 5.0, section 3.7.3).
    pub const EMPTY: MpiStatus = MpiStatus {
        source: crate::constants::MPI_ANY_SOURCE,
        tag: crate::constants::MPI_ANY_TAG,
        error: 0,
        internal: [0; 5],
    };

    /// Stores how an operation ended. The error field is not written.
    pub fn set(&mut self, from: &weft_process::Status) {
        self.source = from.source;
        self.tag = from.tag;
        self.set_bytes(from.bytes);
        self.internal[FLAGS] = from.flags.bits() as c_int;
    }

    /// Returns the number of bytes received.
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[BYTES_LOW] as u32)
            | u64::from(self.internal[BYTES_HIGH] as u32) << 32
    }

    /// Sets the number of bytes received.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[BYTES_LOW] = bytes as u32 as c_int;
        self.internal[BYTES_HIGH] = (bytes >> 32) as c_int;
    }

    /// Returns true if the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.internal[FLAGS] & 1 != 0
    }

    /// Sets the flag of a cancelled operation.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[FLAGS] = c_int::from(cancelled);
    }
}

/// Writes an empty status, unless it is ignored.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn store_empty(to: *mut MpiStatus) {
    if !to.is_null() {
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { to.write(MpiStatus::EMPTY) }
    }
}
