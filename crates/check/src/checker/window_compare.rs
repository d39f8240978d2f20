//! Comparison of accesses at their target.

use crate::checker::{Checker, with};
use crate::finding::{FindingClass, Party};
use crate::library::mpi;
use crate::objects::ObjectHandle;
use crate::shadow::{MPI_INT, RawStatus};
use crate::window::{
    CheckedAccess, CheckedEpoch, GroupEpoch, WindowFacts, concurrent_conflicts, decode, encode,
    hash_data, messages, single_put, uncovered_change,
};
use std::ffi::c_int;

const MPI_UINT64_T: usize = 0x259;
/// Tag of the records of MPI_Win_complete. Lower tags belong to collective calls.
const TAG: usize = 20_000;
const MPI_MODE_NOPUT: i64 = 4096;
const MPI_MODE_NOSTORE: i64 = 8192;

/// Exchanges the accesses of an object's windows, and compares them. All ranks of the object call this function.
pub fn exchange(object: ObjectHandle) {
    let windows = with(|checker| checker.windows.of(object)).unwrap_or_default();
    for handle in windows {
        let all_epochs = object.kind == "WINDOW";
        let is_sent =
            |a: &&CheckedAccess| all_epochs || matches!(a.epoch, CheckedEpoch::Passive { .. });
        let words = with(|checker| {
            let window = checker.windows.get(handle)?;
            let ranks = 0..window.units.len() as i32;
            let of = |rank: i32| {
                let accesses = window.accesses.iter().filter(is_sent);
                encode(accesses.filter(|a| a.target == rank), messages())
            };
            Some((ranks.map(of).collect::<Vec<_>>(), window.ours))
        });
        let Some((words, ours)) = words.flatten() else { continue };
        let arrived = decode(&all_to_all(&words, ours));
        with(|checker| {
            checker.compare_accesses(&arrived);
            checker.compare_fence(handle, &arrived);
            let Some(window) = checker.windows.get(handle) else { return };
            // Accesses that are not complete are compared with later ones, too.
            window.accesses.retain(|access| !access.is_complete);
            if all_epochs {
                window.arrived = arrived;
            }
        });
    }
}

/// Sends words to all ranks, and returns those of all ranks.
fn all_to_all(words: &[Vec<u64>], comm: usize) -> Vec<u64> {
    let lengths: Vec<c_int> = words.iter().map(|list| list.len() as c_int).collect();
    let mut incoming = vec![0 as c_int; lengths.len()];
    let places = |lengths: &[c_int]| {
        let mut next = 0;
        lengths.iter().map(|length| (next, next += length).0).collect::<Vec<c_int>>()
    };
    // SAFETY: the arrays have an element for each rank, and the buffers the sum of the lengths.
    unsafe {
        let (from, to) = (lengths.as_ptr(), incoming.as_mut_ptr());
        mpi!(MPI_Alltoall(from, 1usize, MPI_INT, to, 1usize, MPI_INT, comm));
        let mut all = vec![0u64; incoming.iter().sum::<c_int>().max(0) as usize];
        let (flat, (out, back)) = (words.concat(), (places(&lengths), places(&incoming)));
        mpi!(MPI_Alltoallv(
            flat.as_ptr(),
            lengths.as_ptr(),
            out.as_ptr(),
            MPI_UINT64_T,
            all.as_mut_ptr(),
            incoming.as_ptr(),
            back.as_ptr(),
            MPI_UINT64_T,
            comm
        ));
        all
    }
}

/// Compares the data of puts with the window's memory, after a fence. All ranks of the window call this function.
pub fn after_fence(handle: usize) {
    let ours = with(|checker| {
        let arrived = std::mem::take(&mut checker.windows.get(handle)?.arrived);
        let is_fence = |access: &CheckedAccess| access.epoch == CheckedEpoch::Fence;
        let fence: Vec<_> = arrived.into_iter().filter(is_fence).collect();
        checker.compare_data(handle, &fence);
        Some(checker.windows.get(handle)?.ours)
    });
    if let Some(ours) = ours.flatten() {
        // SAFETY: the communicator is ours. No rank accesses the window before all have looked at theirs.
        unsafe { mpi!(MPI_Barrier(ours)) };
    }
}

/// Sends the accesses of an epoch to its targets.
pub fn send_to_targets(window: &mut WindowFacts) {
    let Some(started) = &window.started else { return };
    let group = |rank: i32| {
        let is_sent = |a: &&CheckedAccess| a.epoch == CheckedEpoch::Group && a.target == rank;
        // A message without words has no records.
        (encode(window.accesses.iter().filter(is_sent), messages()), rank)
    };
    let all: Vec<_> = started.ranks.iter().map(|&rank| group(rank)).collect();
    for (words, rank) in all {
        let (data, length, mut request) = (words.as_ptr(), words.len(), 0usize);
        let (ours, to) = (window.ours, &raw mut request);
        // SAFETY: the words live until the request is complete.
        unsafe { mpi!(MPI_Isend(data, length, MPI_UINT64_T, rank, TAG, ours, to)) };
        window.sent.push((words, request));
    }
    window.sent.retain_mut(|(_, request)| {
        let mut flag = 0 as c_int;
        // SAFETY: the request is ours.
        unsafe { mpi!(MPI_Test(&raw mut *request, &raw mut flag, 0)) };
        flag == 0
    });
}

/// Receives the accesses of an exposure's origins, and compares them.
pub fn after_exposure(handle: usize, exposed: &GroupEpoch) {
    let ours = with(|checker| checker.windows.get(handle).map(|window| window.ours)).flatten();
    let Some(ours) = ours else { return };
    let mut arrived = Vec::new();
    for &rank in &exposed.ranks {
        let (mut status, mut count) = (RawStatus::default(), 0 as c_int);
        // SAFETY: the origin has sent its records before it completed its epoch. The buffer has their size.
        unsafe {
            mpi!(MPI_Probe(rank, TAG, ours, status.as_mut_ptr()));
            mpi!(MPI_Get_count(status.as_ptr(), MPI_UINT64_T, &raw mut count));
            let mut words = vec![0u64; count.max(0) as usize];
            let (data, length) = (words.as_mut_ptr(), words.len());
            mpi!(MPI_Recv(data, length, MPI_UINT64_T, rank, TAG, ours, 0));
            arrived.extend(decode(&words));
        }
    }
    with(|checker| {
        checker.compare_accesses(&arrived);
        let own = checker.own_party("MPI_Win_post", exposed.site, "");
        checker.compare_exposure(handle, &arrived, own, exposed.assert);
        checker.compare_data(handle, &arrived);
        if let Some(window) = checker.windows.get(handle) {
            window.snapshot = None;
        }
    });
}

/// Returns a party of a finding: an access that arrived.
fn party(access: &CheckedAccess, facts: String) -> Party {
    let function = crate::FUNCTIONS.get(access.function as usize);
    let function = function.map_or("?", |function| function.name()).to_owned();
    Party { rank: Some(access.rank), function, site: access.site, facts }
}

impl Checker {
    /// Adds findings for accesses of different origins that conflict.
    fn compare_accesses(&mut self, accesses: &[CheckedAccess]) {
        for (a, b, byte) in concurrent_conflicts(accesses, self.windows.passive_rule()) {
            let facts = format!("byte {byte} of the window at rank {}", self.rank);
            let second = "the same byte in the same epoch".to_owned();
            let parties = vec![party(&accesses[a], facts), party(&accesses[b], second)];
            self.findings.add(FindingClass::ConflictingAccesses, parties);
        }
    }

    /// Compares the accesses of a fence epoch with the window's memory.
    pub(super) fn compare_fence(&mut self, handle: usize, arrived: &[CheckedAccess]) {
        let fences = self.windows.get(handle).map(|window| (window.closing_fence, window.fence));
        let Some((Some((site, assert)), Some(opening))) = fences else { return };
        // Other ranks may have written under a lock.
        if arrived.iter().any(|access| access.epoch != CheckedEpoch::Fence) {
            return;
        }
        let own = self.own_party("MPI_Win_fence", opening.site, "");
        self.compare_exposure(handle, arrived, own, opening.assert & MPI_MODE_NOPUT);
        if assert & MPI_MODE_NOSTORE != 0 && self.has_store(handle, arrived) {
            let facts = "MPI_MODE_NOSTORE is false: the window's memory has changed";
            let parties = vec![self.own_party("MPI_Win_fence", site, facts)];
            self.findings.add(FindingClass::FalseAssertion, parties);
        }
    }

    /// Returns true if the program has stored into bytes of the window that no access has written.
    fn has_store(&mut self, handle: usize, arrived: &[CheckedAccess]) -> bool {
        if self.windows.overlaps_another(handle) {
            return false;
        }
        let Some(window) = self.windows.get(handle) else { return false };
        let Some(before) = &window.snapshot else { return false };
        // SAFETY: the window's memory lives until it is freed.
        let after = unsafe { std::slice::from_raw_parts(window.base as *const u8, window.size) };
        let whole = CheckedAccess::read(window.size as i64);
        let all: Vec<_> = arrived.iter().cloned().chain([whole]).collect();
        uncovered_change(&all, before, after).is_some()
    }

    /// Adds findings for assertions that accesses have made false, and for bytes that an origin reads and the target has changed.
    fn compare_exposure(
        &mut self,
        handle: usize,
        arrived: &[CheckedAccess],
        opening: Party,
        assert: i64,
    ) {
        let write = arrived.iter().find(|access| access.kind.writes());
        if let Some(write) = write.filter(|_| assert & MPI_MODE_NOPUT != 0) {
            let facts = "MPI_MODE_NOPUT is false".to_owned();
            let parties =
                vec![Party { facts, ..opening.clone() }, party(write, "writes".to_owned())];
            self.findings.add(FindingClass::FalseAssertion, parties);
        }
        if self.windows.overlaps_another(handle) {
            return;
        }
        let change = self.windows.get(handle).and_then(|window| {
            let before = window.snapshot.as_ref()?;
            // SAFETY: the window's memory lives until it is freed.
            let after =
                unsafe { std::slice::from_raw_parts(window.base as *const u8, window.size) };
            uncovered_change(arrived, before, after)
        });
        if let Some((place, byte)) = change {
            let facts = format!("reads byte {byte} of the window at rank {}", self.rank);
            let store = "the target has changed this byte in the epoch that this call began";
            let parties =
                vec![party(&arrived[place], facts), Party { facts: store.to_owned(), ..opening }];
            self.findings.add(FindingClass::ConflictingAccesses, parties);
        }
    }

    /// Adds findings for puts whose data the target has overwritten in the same epoch.
    fn compare_data(&mut self, handle: usize, arrived: &[CheckedAccess]) {
        if self.windows.overlaps_another(handle) {
            return;
        }
        let Some(window) = self.windows.get(handle) else { return };
        if window.is_shared || window.is_dynamic || window.base == 0 {
            return;
        }
        let (base, size) = (window.base, window.size as i64);
        let overwritten = |&place: &usize| {
            let block = arrived[place].blocks.first().filter(|_| single_put(arrived, place));
            let inside =
                |b: &&crate::datatype::MemoryRange| b.offset >= 0 && b.offset + b.length <= size;
            block.filter(inside).is_some_and(|block| {
                let start = base.wrapping_add(block.offset as usize) as *const u8;
                // SAFETY: the block is inside the window, whose memory lives until it is freed.
                let data = unsafe { std::slice::from_raw_parts(start, block.length as usize) };
                hash_data(data) != arrived[place].data
            })
        };
        for place in (0..arrived.len()).filter(overwritten).collect::<Vec<_>>() {
            let facts = format!("the target, rank {}, has stored into the same bytes", self.rank);
            let parties = vec![party(&arrived[place], facts)];
            self.findings.add(FindingClass::ConflictingAccesses, parties);
        }
    }
}
