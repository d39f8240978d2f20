//! `MPI_Status`, in the layout of the standard ABI.

use std::ffi::c_int;

/// What a receive, probe or wait says about a message. The public fields lie where every C and
/// Fortran program of the standard ABI expects them; `internal` is ours.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MpiStatus {
    /// MPI_SOURCE: rank of the sender.
    pub source: c_int,
    /// MPI_TAG.
    pub tag: c_int,
    /// MPI_ERROR: set by calls with several statuses alone.
    pub error: c_int,
    /// Bytes and flags, see below; the program does not look.
    pub internal: [c_int; 5],
}

const _: () = assert!(size_of::<MpiStatus>() == 32);

/// What a program reads from `internal`: bytes in two halves, then whether it was cancelled.
const BYTES_LOW: usize = 0;
const BYTES_HIGH: usize = 1;
const CANCELLED: usize = 2;

impl MpiStatus {
    /// The status of nothing (MPI 5.0, section 3.7.3): of an inactive request.
    pub const EMPTY: MpiStatus = MpiStatus {
        source: crate::constants::MPI_ANY_SOURCE,
        tag: crate::constants::MPI_ANY_TAG,
        error: 0,
        internal: [0; 5],
    };

    /// Takes over how an operation ended; the error field is left alone.
    pub fn set(&mut self, from: &weft_process::Status) {
        self.source = from.source;
        self.tag = from.tag;
        self.set_bytes(from.bytes);
        self.set_cancelled(from.cancelled);
    }

    /// Bytes received.
    pub fn bytes(&self) -> u64 {
        u64::from(self.internal[BYTES_LOW] as u32)
            | u64::from(self.internal[BYTES_HIGH] as u32) << 32
    }

    /// Says how many bytes were received.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.internal[BYTES_LOW] = bytes as u32 as c_int;
        self.internal[BYTES_HIGH] = (bytes >> 32) as c_int;
    }

    /// Whether the operation was cancelled.
    pub fn cancelled(&self) -> bool {
        self.internal[CANCELLED] != 0
    }

    /// Says whether it was.
    pub fn set_cancelled(&mut self, cancelled: bool) {
        self.internal[CANCELLED] = c_int::from(cancelled);
    }
}
