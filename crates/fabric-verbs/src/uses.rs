//! What registered memory is for, and what it amounts to.

use crate::ffi::*;

/// What peers and adapters may do with registered memory: each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uses {
    /// Nothing for peers; the adapter sends from it and receives into it.
    Buffers,
    /// Read it.
    Reads,
    /// Write it, too.
    Writes,
    /// Do atomics on it, too.
    Atomics,
}

impl Uses {
    pub fn access(self) -> i32 {
        match self {
            Uses::Buffers => IBV_ACCESS_LOCAL_WRITE,
            Uses::Reads => IBV_ACCESS_REMOTE_READ,
            Uses::Writes => {
                IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
            }
            Uses::Atomics => Uses::Writes.access() | IBV_ACCESS_REMOTE_ATOMIC,
        }
    }
}

/// What the registrations amount to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegistrationTotals {
    /// In bytes; memory that is registered twice counts twice.
    pub registered: usize,
    /// Registrations that exist now, in use or kept for later.
    pub entries: usize,
    /// Registrations made so far, those that are gone included.
    pub made: u64,
    /// Uses that found a registration to share, so that none was made.
    pub found: u64,
}
