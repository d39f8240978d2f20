//! Windows: their epochs, and the accesses in them.
//!
//! Each origin records its accesses: the bytes at the target, the kind, the operator and the call site. The target compares them:
//!
//! - In a fence epoch, all ranks exchange their records at the closing MPI_Win_fence. All accesses of such an epoch are concurrent.
//! - In an epoch of post, start, complete and wait, the origin sends its records at MPI_Win_complete, and the target compares the records
//!   of the whole group at MPI_Win_wait. MPI_Win_complete says nothing about the target, so these accesses are concurrent, too.
//! - In a passive epoch, ranks keep their records until the next blocking collective call over the window's communicator, or the next
//!   fence. Accesses of two ranks between two such calls are concurrent if neither rank has made a call after the end of its access that
//!   could carry a message, and neither held an exclusive lock. So an order by messages, atomic accesses or flags never leads to a false
//!   report, and some conflicts are not seen.
//! - Accesses of one origin conflict if neither a flush nor the end of the epoch is between them. The origin finds such conflicts.
//!
//! MC-Checker (Chen et al., SC 2014) and MUST-RMA (Schwitanski et al., 2022) order accesses by vector clocks, and RMA-Analyzer (Aitkaci et al.,
//! ICPP Workshops 2021) keeps them in a tree of intervals. All three need loads and stores of the instrumented program. This layer has no
//! instrumentation. It sees stores of the target by their effect: bytes that an origin reads in an active epoch differ at its end,
//! or bytes that a single MPI_Put wrote differ from the origin's data.
//!
//! Not seen: loads of the target, its stores in passive epochs, stores of the value that was there before, memory over [`SNAPSHOT`] bytes,
//! data over [`DATA`] bytes, types with over 1,024 blocks, and accesses to shared memory. Processes with a window of
//! MPI_Win_allocate_shared compare no passive accesses, since their loads and stores can order them. An order of passive accesses by means
//! outside MPI, such as sockets, is not known to the layer.

mod access;
mod conflicts;

pub use access::{AccessKind, CheckedAccess, CheckedEpoch, LocalUse, decode, encode, hash_data};
pub use conflicts::{
    PassiveRule, concurrent_conflicts, own_conflict, single_put, uncovered_change,
};

use crate::call_site::CallSite;
use crate::objects::ObjectHandle;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of bytes of a window that are compared between the begin and the end of an exposure.
pub const SNAPSHOT: usize = 1 << 20;

/// Maximum number of bytes of an access whose data are compared.
pub const DATA: i64 = 1 << 13;

/// Maximum number of accesses of a window that are recorded. Later ones are not compared.
pub const ACCESSES: usize = 1 << 16;

/// Number of accesses of a window at which those of passive epochs that are complete are forgotten.
pub const COMPLETE_ACCESSES: usize = 1 << 12;

const ACCESS: &[&str] = &[
    "Accumulate",
    "Compare_and_swap",
    "Fetch_and_op",
    "Get",
    "Get_accumulate",
    "Put",
    "Raccumulate",
    "Rget",
    "Rget_accumulate",
    "Rput",
];

const SYNCHRONIZATION: &[&str] = &[
    "Win_complete",
    "Win_fence",
    "Win_flush",
    "Win_flush_all",
    "Win_flush_local",
    "Win_flush_local_all",
    "Win_lock",
    "Win_lock_all",
    "Win_post",
    "Win_start",
    "Win_test",
    "Win_unlock",
    "Win_unlock_all",
    "Win_wait",
];

/// Returns true for functions that access a window.
pub fn is_access(stem: &str) -> bool {
    ACCESS.contains(&stem)
}

/// Returns true for functions that begin, end or complete within an epoch.
pub fn is_synchronization(stem: &str) -> bool {
    SYNCHRONIZATION.contains(&stem)
}

/// Number of calls of this process so far that may have sent a message.
static MESSAGES: AtomicU64 = AtomicU64::new(0);

/// Notes a call that may send a message. Accesses that are complete before it may be ordered before accesses of other ranks. Every call that
/// may send must come here, on every path through the checks, or right programs would be reported.
pub fn note_message() {
    MESSAGES.fetch_add(1, Ordering::Relaxed);
}

/// Returns the number of calls so far that may have sent a message.
pub fn messages() -> u64 {
    MESSAGES.load(Ordering::Relaxed)
}

/// A lock that this process holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeldLock {
    pub site: CallSite,
    pub is_exclusive: bool,
}

/// An epoch for a group of ranks.
#[derive(Clone, Debug)]
pub struct GroupEpoch {
    pub ranks: Vec<i32>,
    pub site: CallSite,
    pub assert: i64,
}

/// The call that has opened a fence epoch.
#[derive(Clone, Copy, Debug)]
pub struct CheckedFence {
    pub site: CallSite,
    pub assert: i64,
}

/// A window.
#[derive(Default)]
pub struct WindowFacts {
    /// Number of the window among those that this process has made.
    pub number: u64,
    /// The program's communicator of the window.
    pub comm: usize,
    /// The checker's communicator.
    pub ours: usize,
    pub base: usize,
    pub size: usize,
    pub is_shared: bool,
    pub is_dynamic: bool,
    /// Displacement units of all ranks.
    pub units: Vec<i64>,
    pub fence: Option<CheckedFence>,
    pub started: Option<GroupEpoch>,
    pub exposed: Option<GroupEpoch>,
    pub locks: HashMap<i32, HeldLock>,
    pub lock_all: Option<CallSite>,
    pub accesses: Vec<CheckedAccess>,
    /// Number of accesses whose local memory is watched.
    pub watched: usize,
    /// The fence that runs now: its call site and assertions.
    pub closing_fence: Option<(CallSite, i64)>,
    /// Accesses that have arrived at the fence that runs now.
    pub arrived: Vec<CheckedAccess>,
    /// Memory of the window when the present exposure began.
    pub snapshot: Option<Vec<u8>>,
    /// Records under way to targets, each with its request.
    pub sent: Vec<(Vec<u64>, usize)>,
}

impl WindowFacts {
    /// Returns the epoch of an access to a target, if there is an epoch.
    pub fn epoch(&self, target: i32) -> Option<CheckedEpoch> {
        if let Some(lock) = self.locks.get(&target) {
            let is_exclusive = lock.is_exclusive;
            return Some(CheckedEpoch::Passive { is_exclusive });
        }
        if self.lock_all.is_some() {
            return Some(CheckedEpoch::Passive { is_exclusive: false });
        }
        if self.started.as_ref().is_some_and(|started| started.ranks.contains(&target)) {
            return Some(CheckedEpoch::Group);
        }
        self.fence.map(|_| CheckedEpoch::Fence)
    }

    /// Returns true if the window has accesses of a fence epoch that is open.
    pub fn has_fence_accesses(&self) -> bool {
        self.accesses.iter().any(|access| access.epoch == CheckedEpoch::Fence)
    }

    /// Returns the open epoch in words.
    pub fn open_epoch(&self) -> Option<(&'static str, CallSite)> {
        if let Some(lock) = self.locks.values().next() {
            return Some(("MPI_Win_lock", lock.site));
        }
        if let Some(site) = self.lock_all {
            return Some(("MPI_Win_lock_all", site));
        }
        if let Some(started) = &self.started {
            return Some(("MPI_Win_start", started.site));
        }
        if let Some(exposed) = &self.exposed {
            return Some(("MPI_Win_post", exposed.site));
        }
        self.fence.filter(|_| self.has_fence_accesses()).map(|f| ("MPI_Win_fence", f.site))
    }

    /// Adds an access. Returns false if there are too many.
    pub fn record(&mut self, access: CheckedAccess) -> bool {
        let is_passive = matches!(access.epoch, CheckedEpoch::Passive { .. });
        if is_passive && self.accesses.len() >= COMPLETE_ACCESSES {
            self.accesses.retain(|earlier| !earlier.is_complete);
        }
        let has_room = self.accesses.len() < ACCESSES;
        if has_room {
            self.watched += usize::from(access.local.is_some());
            self.accesses.push(access);
        }
        has_room
    }

    /// Copies the memory, so that stores are seen at the end of an exposure.
    ///
    /// # Safety
    /// The window's memory can be read.
    pub unsafe fn take_snapshot(&mut self) {
        let is_known = !self.is_shared && !self.is_dynamic && self.base != 0;
        self.snapshot = (is_known && self.size <= SNAPSHOT).then(|| {
            // SAFETY: the memory can be read: the caller promises it.
            unsafe { std::slice::from_raw_parts(self.base as *const u8, self.size) }.to_vec()
        });
    }
}

/// Windows by handle.
#[derive(Default)]
pub struct Windows {
    all: HashMap<usize, WindowFacts>,
    number: u64,
    /// True if this process has made shared memory, with which processes can order their accesses.
    has_shared_memory: bool,
}

impl Windows {
    /// Adds a window.
    pub fn add(&mut self, handle: usize, window: WindowFacts) {
        self.number += 1;
        self.has_shared_memory |= window.is_shared;
        self.all.insert(handle, WindowFacts { number: self.number, ..window });
    }

    /// Returns the rule for accesses of passive epochs.
    pub fn passive_rule(&self) -> PassiveRule {
        match self.has_shared_memory {
            true => PassiveRule::Skip,
            false => PassiveRule::Compare,
        }
    }

    /// Returns a window.
    pub fn get(&mut self, handle: usize) -> Option<&mut WindowFacts> {
        self.all.get_mut(&handle)
    }

    /// Removes a window.
    pub fn remove(&mut self, handle: usize) -> Option<WindowFacts> {
        self.all.remove(&handle)
    }

    /// Returns true if another window of this process has memory of this window. Then stores may be accesses to the other window.
    pub fn overlaps_another(&self, handle: usize) -> bool {
        let Some(own) = self.all.get(&handle) else { return false };
        let (start, end) = (own.base, own.base + own.size);
        self.all.iter().any(|(&other, facts)| {
            other != handle
                && (facts.is_dynamic || (facts.base < end && start < facts.base + facts.size))
        })
    }

    /// Returns the windows whose accesses are compared at a collective call on an object, in the order in which all ranks made them.
    pub fn of(&self, object: ObjectHandle) -> Vec<usize> {
        let is_of = |(handle, window): &(&usize, &WindowFacts)| match object.kind {
            "WINDOW" => **handle == object.handle,
            "COMMUNICATOR" => window.comm == object.handle,
            _ => false,
        };
        let mut windows: Vec<_> = self.all.iter().filter(is_of).collect();
        windows.sort_by_key(|(_, window)| window.number);
        windows.into_iter().map(|(&handle, _)| handle).collect()
    }

    /// Returns true if this rank has accesses that are compared at a collective call on an object.
    pub fn has_accesses(&self, object: ObjectHandle) -> bool {
        let is_compared = |a: &CheckedAccess| {
            object.kind == "WINDOW" || matches!(a.epoch, CheckedEpoch::Passive { .. })
        };
        self.of(object).iter().any(|handle| self.all[handle].accesses.iter().any(is_compared))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_has_the_epoch_of_its_target() {
        let mut window = WindowFacts::default();
        assert_eq!(window.epoch(1), None);
        window.fence = Some(CheckedFence { site: CallSite::default(), assert: 0 });
        assert_eq!(window.epoch(1), Some(CheckedEpoch::Fence));
        assert_eq!(window.open_epoch(), None);
        window.fence = None;
        let lock = HeldLock { site: CallSite::default(), is_exclusive: true };
        window.locks.insert(1, lock);
        assert_eq!(window.epoch(1), Some(CheckedEpoch::Passive { is_exclusive: true }));
        assert_eq!(window.epoch(0), None);
        assert!(window.open_epoch().is_some());
    }

    #[test]
    fn windows_are_compared_in_the_order_of_their_making() {
        let mut windows = Windows::default();
        for handle in [9, 5, 7] {
            let comm = if handle == 5 { 2 } else { 1 };
            windows.add(handle, WindowFacts { comm, ..WindowFacts::default() });
        }
        assert_eq!(windows.of(ObjectHandle { kind: "COMMUNICATOR", handle: 1 }), [9, 7]);
        assert_eq!(windows.of(ObjectHandle { kind: "WINDOW", handle: 5 }), [5]);
    }
}
