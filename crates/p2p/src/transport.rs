//! State that all parts of an endpoint use: the fabric, the limits, rails and temporary buffers.

use crate::limits::ProtocolLimits;
use std::cell::Cell;
use weft_channel::rails::{RailSet, Thresholds};
use weft_fabric::{
    CompareSwap, Counter, Counters, Fabric, FabricExt, Fault, FetchAdd, Head, RdmaDirection,
    Region, RemoteAddr, Sge, StagingPool,
};

/// Resources that belong to no single message.
#[repr(C)]
pub struct Transport<F: Fabric> {
    pub fabric: F,
    pub limits: Cell<ProtocolLimits>,
    /// Counter that advances for every message without a matching receive.
    pub arrivals: Counter,
    pub staging: StagingPool,
    pub rails: RailSet,
    /// True if the fabric has simulated time, which work must be charged to.
    pub is_simulated: bool,
}

impl<F: Fabric> Transport<F> {
    /// Creates the transport on `fabric`, and allocates one of its counters.
    pub fn new(fabric: F, limits: ProtocolLimits) -> Transport<F> {
        let arrivals = fabric.counters().allocate();
        let (staging, rails) = (StagingPool::default(), RailSet::default());
        if let Some(len) = fabric.fragment_min() {
            rails.set_thresholds(Thresholds { write: len, read: len, ..rails.thresholds() });
        }
        let is_simulated = fabric.facets().simulated.is_some();
        Transport { fabric, limits: Cell::new(limits), arrivals, staging, rails, is_simulated }
    }

    #[inline(always)]
    pub fn counters(&self) -> &Counters {
        self.fabric.counters()
    }

    /// Sends a head without payload.
    #[inline(never)]
    pub fn control(&self, peer: usize, head: Head) {
        self.fabric.send(peer, head, Sge::EMPTY, None);
    }

    /// Sends a head without payload, which also wakes the peer's helper.
    pub fn control_solicited(&self, peer: usize, head: Head) {
        self.fabric.send_solicited(peer, head, Sge::EMPTY, None);
    }

    /// Sends the end of a rendezvous. Wakes the peer's helper if [`ProtocolLimits::notifies_at_end`] is set.
    pub fn control_at_end(&self, peer: usize, head: Head) {
        match self.limits.get().notifies_at_end {
            true => self.control_solicited(peer, head),
            false => self.control(peer, head),
        }
    }

    /// Makes all waiters on [`Transport::arrivals`] look again.
    pub fn notify_probes(&self) {
        self.counters().add(self.arrivals, 1);
    }

    /// Registers memory of the program for a later transfer, if [`ProtocolLimits::prepares`] is set and the memory is large.
    pub fn prepared(&self, memory: Sge, way: RdmaDirection) -> Option<Region> {
        let asked = self.limits.get().prepares && memory.len() > self.limits.get().eager;
        asked.then(|| self.fabric.prepare(memory, way).ok().flatten()).flatten()
    }

    /// Returns the present value of a word in memory that the processes of this node share.
    pub fn look(&self, peer: usize, at: RemoteAddr) -> Result<u64, Fault> {
        self.atomic(|result| {
            self.fabric.fetch_add(peer, &FetchAdd { target: at, operand: 0, result, done: None })
        })
    }

    /// Stores `to` in a word if the value of the word is `from` (compare-and-swap). The word lies in memory that the processes of
    /// this node share. Returns the former value of the word.
    pub fn swap(&self, peer: usize, at: RemoteAddr, from: u64, to: u64) -> Result<u64, Fault> {
        self.atomic(|result| {
            let swap = CompareSwap { target: at, compare: from, swap: to, result, done: None };
            self.fabric.compare_swap(peer, &swap)
        })
    }

    /// Posts an atomic that is complete when the call returns. Returns the former value of the word.
    fn atomic(&self, post: impl FnOnce(Sge) -> Result<(), Fault>) -> Result<u64, Fault> {
        let mut before = [0u8; 8];
        // SAFETY: `before` has 8 bytes and outlives the call: words of the node's memory are reached synchronously,
        // so the result is written before `post` returns.
        post(unsafe { Sge::new(before.as_mut_ptr(), 8) })?;
        Ok(u64::from_ne_bytes(before))
    }
}
