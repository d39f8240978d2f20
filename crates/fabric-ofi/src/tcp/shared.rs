//! State that all connections of an endpoint share.

use super::frame::TcpFrame;
use crate::access::PollingThread;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use weft_fabric::Sge;

/// Pointer that identifies an operation of this process.
pub type OperationContext = *mut c_void;

/// Maximum number of bytes without a known destination that one read takes.
const STAGING: usize = 16 << 10;

/// State that all connections of an endpoint share.
pub struct ConnectionShared {
    /// Buffers for messages. The last buffer is used first, because it is still in the cache.
    pub posted: Vec<(Sge, OperationContext)>,
    /// Memory that peers may reach, by key.
    pub regions: HashMap<u64, Sge>,
    /// Completed operations, with their lengths.
    pub done: VecDeque<(OperationContext, usize)>,
    /// Failed operations, with errno.
    pub failed: VecDeque<(OperationContext, i32)>,
    /// Number of frames that wait for room, on all connections.
    pub unsent: Arc<AtomicUsize>,
    /// Threads that poll. If the helper polls, all reads are requested at once, since each answer would wake the helper to
    /// request more.
    pub poller: PollingThread,
    staging: Box<[u8]>,
    /// Room for bytes that were read to places of other bytes. It is used within one call of [`TcpPeer::read`].
    pub spill: Vec<u8>,
    /// Empty memory for gathered frames.
    pub gathered: Vec<u8>,
}

impl ConnectionShared {
    pub fn new() -> ConnectionShared {
        let (posted, regions, done, failed) = Default::default();
        let unsent = Arc::default();
        let (poller, staging) = (PollingThread::Program, vec![0; STAGING].into());
        let (spill, gathered) = Default::default();
        ConnectionShared { posted, regions, done, failed, unsent, poller, staging, spill, gathered }
    }

    /// Returns room for bytes without a known destination. It is used within one call of [`TcpPeer::read`].
    pub fn staging(&self) -> Sge {
        // SAFETY: `Sge::new` needs memory that stays until it is used. The buffer lives as long as `self`, and only `TcpPeer::read`
        // uses it.
        unsafe { Sge::new(self.staging.as_ptr().cast_mut(), STAGING) }
    }

    /// Returns the memory that a peer names, if the peer may reach it.
    pub fn find(&self, frame: &TcpFrame) -> Option<Sge> {
        let region = self.regions.get(&frame.key)?;
        let offset = usize::try_from(frame.at).ok()?.checked_sub(region.ptr().addr())?;
        let len = usize::try_from(frame.len).ok()?;
        (offset.checked_add(len)? <= region.len()).then(|| region.part(offset, len))
    }
}
