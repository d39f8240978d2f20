//! One-sided operations as callers post them: the work requests of verbs.

use crate::{Completion, RemoteAddr, RemoteFlag, Sge};

/// Direction of an operation that moves a payload, seen from the process that posts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RdmaDirection {
    /// Writes from the memory of the posting process.
    Write,
    /// Reads into the memory of the posting process.
    Read,
}

/// An RDMA write of `src` to `dst`.
#[derive(Debug, Clone, Copy)]
pub struct RemoteWrite {
    /// Memory of the posting process. May be empty if a flag or an immediate follows.
    pub src: Sge,
    /// Memory of the peer.
    pub dst: RemoteAddr,
    /// Advances when `src` may be reused and `dst` holds the data.
    pub done: Completion,
}

impl RemoteWrite {
    /// Creates a write of `src` to `dst`.
    pub const fn new(src: Sge, dst: RemoteAddr, done: Completion) -> RemoteWrite {
        RemoteWrite { src, dst, done }
    }
}

/// An RDMA read of `src` into `dst`.
#[derive(Debug, Clone, Copy)]
pub struct RemoteRead {
    /// Memory of the posting process.
    pub dst: Sge,
    /// Memory of the peer.
    pub src: RemoteAddr,
    /// Advances when `dst` holds the data.
    pub done: Completion,
}

impl RemoteRead {
    /// Creates a read of `src` into `dst`.
    pub const fn new(dst: Sge, src: RemoteAddr, done: Completion) -> RemoteRead {
        RemoteRead { dst, src, done }
    }
}

/// A value for a flag of a peer.
#[derive(Debug, Clone, Copy)]
pub struct FlagWrite {
    /// The flag, as the peer named it.
    pub flag: RemoteFlag,
    /// The value that the flag gets.
    pub value: u64,
}

impl RemoteFlag {
    /// Returns the request to set the flag to `value`.
    pub const fn with(self, value: u64) -> FlagWrite {
        FlagWrite { flag: self, value }
    }
}

/// An atomic addition to a word of a peer.
#[derive(Debug, Clone, Copy)]
pub struct FetchAdd {
    /// The word, which is aligned to 8 bytes.
    pub target: RemoteAddr,
    /// The number that is added, modulo 2^64.
    pub operand: u64,
    /// 8 bytes of the posting process for the word's former value.
    pub result: Sge,
    /// Advances when `result` holds the former value.
    pub done: Completion,
}

/// An atomic replacement of a word of a peer if the word has an expected value.
#[derive(Debug, Clone, Copy)]
pub struct CompareSwap {
    /// The word, which is aligned to 8 bytes.
    pub target: RemoteAddr,
    /// The expected value.
    pub compare: u64,
    /// The value that replaces the expected value.
    pub swap: u64,
    /// 8 bytes of the posting process for the word's former value.
    pub result: Sge,
    /// Advances when `result` holds the former value.
    pub done: Completion,
}
