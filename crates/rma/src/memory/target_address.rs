//! A place in a rank's memory, found and checked: where it is, and how this process reaches it.

use crate::core::target_location::TargetLocation;
use weft_fabric::{Fault, RemoteAddr, Sge};
use weft_process::Buffer;

/// How this process reaches a piece of a rank's memory.
#[derive(Debug, Clone, Copy)]
pub enum TargetReach {
    /// It sees it.
    Mapped(Sge),
    /// The fabric reads and writes it. With [`weft_fabric::Capabilities::synchronous`] it has when the call returns.
    Direct { synchronous: bool, rails: usize },
    /// Only the rank's own process does.
    TargetAssisted,
    /// In several ways: it lies in several attached regions ([`super::regions`]).
    Scattered,
}

/// A place in a rank's memory.
#[derive(Debug, Clone, Copy)]
pub struct TargetAddress {
    pub reach: TargetReach,
    /// The process that `at` is an address of.
    pub peer: usize,
    /// The start of the memory: the window's part of that rank, or what it attached.
    pub at: RemoteAddr,
    /// Of the first element from that start on, in bytes. All data lie inside.
    pub offset: i64,
    /// That element as the rank itself names it: an offset in its part of the window, or an address of a dynamic
    /// window.
    pub own: i64,
    pub domain: AtomicityDomain,
}

/// Who updates elements that are words; the same for all origins of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtomicityDomain {
    /// Whoever holds the guard, as all other elements.
    Guarded,
    /// Processors at once: [`weft_datatype::Basic::is_word_at`].
    Processors,
    /// Adapters: `access/adapter_atomics.rs`.
    Adapters,
}

impl TargetAddress {
    /// The elements as this process sees them.
    pub fn view(&self, location: &TargetLocation) -> Option<Buffer> {
        match self.reach {
            TargetReach::Mapped(memory) => {
                Buffer::within(memory, self.offset, location.count, location.ty.clone())
            }
            _ => None,
        }
    }

    /// Calls `f(address, skip, length)` for each run of the packed bytes, in order, until it fails.
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
