//! Access to the memory of ranks: put, get, accumulate and similar operations (MPI 5.0, section 12.3), the operations in
//! flight, and their completion.
//!
//! ```text
//!   put_get.rs                MPI_Put, get: by the way in which the target's memory is reached
//!     fragments.rs            posts of one operation: over one rail or several
//!     several_regions.rs      data in several attached regions, also of accumulates
//!     target_assisted.rs      service of this rank for origins that cannot reach its memory
//!   accumulate.rs             MPI_Accumulate, get_accumulate, fetch_and_op, compare_and_swap
//!     accumulate_protocol.rs  choice and cost: single, whole, adapters, alone, guarded, target-assisted
//!     adapter_atomics.rs      by the adapters of a network
//!   deferred.rs               operations that wait until their epoch's synchronization issues them
//!   in_flight.rs              issued operations, and their completion
//!   immediates.rs             puts that the target's adapter counts
//! ```
//! Contract: an operation enters its epoch, finds its place in the target's memory, and is issued. The operation is complete when
//! its call returns, or once [`WindowAccess::drain`] has returned. This part neither opens nor ends an epoch.

mod accumulate;
pub mod accumulate_protocol;
pub mod adapter_atomics;
pub mod deferred;
mod fragments;
mod immediates;
mod in_flight;
mod put_get;
mod several_regions;
mod target_assisted;

pub use self::accumulate::TargetChange;
pub use self::immediates::EpochImmediates;
pub use self::in_flight::{Issued, WindowFlights};

use self::deferred::Deferred;
use crate::control::WindowControl;
use crate::core::WindowCore;
use crate::locks::Locks;
use crate::memory::WindowMemory;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// Access operations of one process on the memory of a window.
pub struct WindowAccess<F: Fabric> {
    core: Rc<WindowCore<F>>,
    control: Rc<WindowControl<F>>,
    memory: Rc<WindowMemory<F>>,
    locks: Rc<Locks<F>>,
    in_flight: WindowFlights<F>,
    deferred: Deferred,
    immediates: EpochImmediates,
}

impl<F: Fabric> WindowAccess<F> {
    /// Creates the access operations of a window. No operation is under way.
    pub fn new(
        core: Rc<WindowCore<F>>,
        control: Rc<WindowControl<F>>,
        memory: Rc<WindowMemory<F>>,
        locks: Rc<Locks<F>>,
    ) -> WindowAccess<F> {
        let (in_flight, ranks) = (WindowFlights::new(core.clone()), core.size());
        let (deferred, immediates) = (Deferred::new(ranks), EpochImmediates::new(ranks));
        WindowAccess { core, control, memory, locks, in_flight, deferred, immediates }
    }

    /// Returns the issued operations.
    pub fn in_flight(&self) -> &WindowFlights<F> {
        &self.in_flight
    }

    /// Returns the puts that the targets' adapters count.
    pub fn immediates(&self) -> &EpochImmediates {
        &self.immediates
    }

    /// Waits until all operations issued to a rank are complete at the rank and at this process.
    pub async fn drain(&self, rank: usize) -> Result<(), Error> {
        self.drain_to(rank, u64::MAX).await
    }

    async fn drain_to(&self, rank: usize, number: u64) -> Result<(), Error> {
        self.issue_deferred(rank)?;
        self.in_flight.drain(rank, number).await
    }

    /// Waits for all issued operations.
    pub async fn drain_all(&self) -> Result<(), Error> {
        loop {
            // The rank stays in the list until its operations are complete, because another thread may also wait for these
            // operations.
            let Some(rank) = self.in_flight.any_touched() else { return Ok(()) };
            self.drain(rank).await?;
            self.in_flight.untouch(rank);
        }
    }

    /// Waits until an operation and all earlier operations on the same rank are complete.
    pub async fn until_over(&self, issued: Issued) -> Result<(), Error> {
        self.drain_to(issued.rank, issued.number).await
    }

    /// Returns true if the operation is complete by now.
    pub fn is_over(&self, issued: Issued) -> bool {
        self.in_flight.has_settled(issued.rank, issued.number) || self.is_idle(issued.rank)
    }

    /// Returns true if no operation is under way to a rank.
    #[inline(always)]
    pub fn is_idle(&self, rank: usize) -> bool {
        // If all memory is mapped, operations are complete at once, and no rank is ever noted as touched.
        self.in_flight.is_untouched()
            || (self.in_flight.is_idle(rank) && self.deferred.is_empty(rank))
    }
}
