//! The two kinds of one-sided operations, and the memory that they name.

use std::ffi::c_void;
use weft_fabric::Sge;

/// Kind of a one-sided operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    Write,
    Read,
}

/// Memory of this process, and the provider's descriptor for the registration of this memory.
#[derive(Debug, Clone, Copy)]
pub struct LocalPiece {
    pub memory: Sge,
    pub descriptor: *mut c_void,
}

/// Memory of a peer: its address or offset, and the provider's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteKey {
    pub at: u64,
    pub key: u64,
}

/// Threads that poll for arrivals and completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollingThread {
    /// The program's own threads poll.
    Program,
    /// The program computes. Every arrival and completion wakes the helper thread, which polls.
    Helper,
}
