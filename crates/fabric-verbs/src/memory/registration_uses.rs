//! Access rights of registered memory, and totals of registrations.

use crate::ffi::*;

/// Allowed operations of peers and adapters on registered memory. Each variant also allows the operations of the variants before
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uses {
    /// Peers have no access. The adapter sends from the memory, and receives into the memory.
    Buffers,
    /// Peers may read the memory.
    Reads,
    /// Peers may also write the memory.
    Writes,
    /// Peers may also do atomics on the memory.
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

/// Totals of the registrations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegistrationTotals {
    /// Number of registered bytes. Memory that is registered twice counts twice.
    pub registered: usize,
    /// Number of registrations that exist now, in use or kept.
    pub entries: usize,
    /// Number of registrations made so far, including dropped registrations.
    pub made: u64,
    /// Number of uses that found an existing registration to share.
    pub found: u64,
}
