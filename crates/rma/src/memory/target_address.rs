//! A place in a rank's memory, found and checked: its address, and the way in which this process reaches it.

use crate::core::target_location::TargetLocation;
use weft_fabric::{Fault, RemoteAddr, Sge};
use weft_process::Buffer;

/// Way in which this process reaches a piece of a rank's memory.
#[derive(Debug, Clone, Copy)]
pub enum TargetReach {
    /// This process sees the memory.
    Mapped(Sge),
    /// The fabric reads and writes the memory. If `synchronous` ([`weft_fabric::Capabilities::synchronous`]), the operation is
    /// complete when the call returns.
    Direct { synchronous: bool, rails: usize },
    /// Only the rank's own process reaches the memory.
    TargetAssisted,
    /// The data lie in several attached regions, which may be reached in several ways ([`super::regions`]).
    Scattered,
}

/// A place in a rank's memory.
#[derive(Debug, Clone, Copy)]
pub struct TargetAddress {
    pub reach: TargetReach,
    /// Fabric rank of the process to which the address `at` belongs.
    pub peer: usize,
    /// Start of the memory: the window's part of that rank, or an attached piece.
    pub at: RemoteAddr,
    /// Offset of the first element from `at`, in bytes. All data lie inside the memory.
    pub offset: i64,
    /// Place of the first element as the rank itself names it: an offset in its part of the window, or an address of a dynamic
    /// window.
    pub own: i64,
    pub domain: AtomicityDomain,
}

/// Agent that updates elements of the size of a word. All origins of an element use the same agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicityDomain {
    /// Ranks that hold the guard. Elements that do not have the size of a word are always updated under the guard.
    Guarded,
    /// Processors, by atomic instructions ([`weft_datatype::Basic::is_word_at`]).
    Processors,
    /// Adapters (`access/adapter_atomics.rs`).
    Adapters,
}

impl TargetAddress {
    /// Returns the elements, if this process sees them.
    pub fn view(&self, location: &TargetLocation) -> Option<Buffer> {
        match self.reach {
            TargetReach::Mapped(memory) => {
                Buffer::within(memory, self.offset, location.count, location.ty.clone())
            }
            _ => None,
        }
    }

    /// Calls `f(address, skip, length)` for each run of the packed bytes, in order, until `f` fails.
    pub fn each_run(
        &self,
        location: &TargetLocation,
        mut f: impl FnMut(RemoteAddr, usize, usize) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let (mut done, mut result) = (0, Ok(()));
        location.ty.runs(location.count, 0, location.len(), |offset, len| {
            if result.is_ok() {
                result = f(self.at.offset(self.offset.wrapping_add(offset) as u64), done, len);
                done += len;
            }
        });
        result
    }
}
