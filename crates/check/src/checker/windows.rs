//! Windows: their making and their end, and findings about them.

use super::{Checker, with};
use crate::call_site::CallSite;
use crate::finding::{FindingClass, Party};
use crate::function::CheckedCall;
use crate::library::mpi;
use crate::role::{CallRole, Timing};
use crate::window::{CheckedAccess, WindowFacts, note_message};
use std::ffi::c_int;

const MPI_INT64_T: usize = 0x258;

/// Beginnings of the names of functions that exchange nothing with other processes.
const LOCAL: &[&str] = &[
    "Type_",
    "Op_",
    "Group_",
    "Info_",
    "Get_",
    "Error_",
    "Errhandler_",
    "Pack",
    "Unpack",
    "Status_",
    "Win_get_",
    "Win_set_",
    "Comm_rank",
    "Comm_size",
    "Comm_get_",
    "Comm_set_",
    "Alloc_mem",
    "Free_mem",
    "Address",
];

/// Notes a call that may send a message. Accesses that are complete before it may be ordered before accesses of other ranks.
pub fn before_call(call: &CheckedCall<'_>, role: CallRole) {
    let stem = call.function.stem();
    let is_silent = match role {
        CallRole::Other => LOCAL.iter().any(|start| stem.starts_with(start)),
        // Accesses look at this themselves. Locks and flushes give nothing to other ranks.
        CallRole::Window => !matches!(stem, "Win_post" | "Win_complete"),
        _ => false,
    };
    if is_silent {
        return;
    }
    // All ranks compare their accesses at these calls, before which nothing is sent.
    let is_blocking =
        matches!(role, CallRole::Collective(Timing::Blocking | Timing::Persistent, _));
    let comm = call.handle("COMMUNICATOR").filter(|_| is_blocking);
    let has_windows =
        |comm| with(|checker| !checker.windows.of(super::comm_object(comm)).is_empty());
    if comm.and_then(has_windows) != Some(true) {
        note_message();
    }
}

/// Adds the window that a call has made.
///
/// # Safety
/// All processes of the window have made it with this call.
pub unsafe fn add(call: &CheckedCall<'_>, handle: usize, comm: usize) {
    let object = crate::objects::ObjectHandle { kind: "WINDOW", handle };
    let context = with(|checker| checker.contexts.get(object).map(|c| (c.comm, c.size))).flatten();
    let Some((ours, ranks)) = context else { return };
    let stem = call.function.stem();
    let own = call.named("disp_unit").unwrap_or(1);
    let mut units = vec![1i64; ranks];
    let place = |name: &str| call.function.place(name).map(|place| call.arguments[place]);
    // SAFETY: the array has an element for each rank, and `baseptr` points to an address after the call.
    let base = unsafe {
        let own = &raw const own;
        let all = units.as_mut_ptr();
        mpi!(MPI_Allgather(own, 1usize, MPI_INT64_T, all, 1usize, MPI_INT64_T, ours));
        place("base").or(place("baseptr").map(|pointer| *(pointer as *const usize))).unwrap_or(0)
    };
    let window = WindowFacts {
        comm,
        ours,
        base,
        size: call.named("size").unwrap_or(0).max(0) as usize,
        is_shared: stem == "Win_allocate_shared",
        is_dynamic: stem == "Win_create_dynamic",
        units,
        ..WindowFacts::default()
    };
    with(|checker| checker.windows.add(handle, window));
}

/// Waits for the records of a window that is freed. Its targets have received them, unless the program has left an exposure open.
pub fn release(window: WindowFacts) {
    for (words, mut request) in window.sent {
        let mut flag = 0 as c_int;
        // SAFETY: the request is ours.
        unsafe { mpi!(MPI_Test(&raw mut request, &raw mut flag, 0)) };
        if flag == 0 {
            // The library still reads the words.
            std::mem::forget(words);
        }
    }
}

impl Checker {
    /// Adds a finding about one call, and a second call of this rank if there is one.
    pub(super) fn window_finding(
        &mut self,
        class: FindingClass,
        call: &CheckedCall<'_>,
        facts: String,
        second: Option<Party>,
    ) {
        let first = self.party(call, facts);
        self.findings.add(class, [Some(first), second].into_iter().flatten().collect());
    }

    /// Adds a finding about the epochs of a window.
    pub(super) fn epoch_finding(
        &mut self,
        call: &CheckedCall<'_>,
        facts: &str,
        earlier: Option<(&str, CallSite)>,
    ) {
        let second = earlier.map(|(name, site)| self.own_party(name, site, "has opened an epoch"));
        self.window_finding(FindingClass::EpochMismatch, call, facts.to_owned(), second);
    }

    /// Adds a finding if the window is in an epoch that a call may not follow.
    pub(super) fn check_open(&mut self, handle: usize, call: &CheckedCall<'_>, allowed: &[&str]) {
        let open = self.windows.get(handle).and_then(|window| window.open_epoch());
        if let Some((name, site)) = open.filter(|(name, _)| !allowed.contains(name)) {
            self.epoch_finding(call, "an epoch of the window is open", Some((name, site)));
        }
    }

    /// Returns a party of this rank by the name of its function.
    pub(super) fn own_party(&self, function: &str, site: CallSite, facts: &str) -> Party {
        Party {
            rank: Some(self.rank),
            function: function.to_owned(),
            site,
            facts: facts.to_owned(),
        }
    }

    /// Ends the use of the origin's memory by accesses, and reports memory that has changed.
    pub(super) fn end_local_uses(
        &mut self,
        handle: usize,
        is_ended: impl Fn(&CheckedAccess) -> bool,
    ) {
        let Some(window) = self.windows.get(handle) else { return };
        let mut all = Vec::new();
        for (place, access) in window.accesses.iter_mut().enumerate() {
            if is_ended(access)
                && let Some(local) = access.local.take()
            {
                all.push((local, access.site, place));
            }
        }
        window.watched -= all.len();
        for (local, site, place) in all {
            self.memory.end(local.operation);
            if let Some((request, variable)) = local.request {
                let request = self.requests.find(request, variable);
                let Some(request) = request.filter(|r| r.operation == local.operation) else {
                    // The completion of the request has looked at the memory.
                    continue;
                };
                request.ranges.clear();
                request.samples.clear();
            }
            for (range, &before) in local.ranges.iter().zip(&local.samples) {
                // SAFETY: the program must keep a buffer until its operation is complete.
                let is_changed = range.access == crate::memory_use::MemoryAccess::Read
                    && unsafe { range.sample() } != before;
                if is_changed {
                    // The target may have either data.
                    let access = self.windows.get(handle).and_then(|w| w.accesses.get_mut(place));
                    access.into_iter().for_each(|access| access.data = 0);
                    let name = range.parameter;
                    let facts = format!("{name} was changed before the operation was complete");
                    let party = self.own_party(local.function, site, &facts);
                    self.findings.add(FindingClass::BufferChanged, vec![party]);
                }
            }
        }
    }
}
