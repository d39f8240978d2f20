//! Accesses to windows.

use crate::checker::operations::{RequestPlan, add_request, check_memory};
use crate::checker::{Checker, with};
use crate::datatype::{MemoryRange, repeated};
use crate::finding::FindingClass;
use crate::forward;
use crate::function::CheckedCall;
use crate::memory_use::{BufferRange, ElementCount, MemoryAccess, MemoryUse, range};
use crate::poison::BufferPoison;
use crate::role::Timing;
use crate::shadow::MPI_IN_PLACE;
use crate::window::{
    AccessKind, CheckedAccess, CheckedEpoch, DATA, LocalUse, hash_data, note_message, own_conflict,
};
use std::ffi::c_int;

const MPI_NO_OP: usize = 0x3d;

/// Maximum number of accesses whose local memory is watched at the same time.
const LOCAL_USES: usize = 1024;

/// Runs an access.
///
/// # Safety
/// As for [`crate::checker::run`].
pub unsafe fn run(index: usize, call: &CheckedCall<'_>) -> c_int {
    let has_request = has_request(call);
    // SAFETY: the caller promises it.
    let local = with(|checker| unsafe { begin(checker, index, call) }).flatten();
    let operation = local.as_ref().map(|local| local.operation);
    let is_poisoned = |local: &&LocalUse| local.is_free && kind(call) == AccessKind::Get;
    let ranges = local.as_ref().filter(is_poisoned);
    let ranges = ranges.map_or(&[][..], |local| &local.ranges);
    // SAFETY: the caller promises it. `check_memory` has found no other use of a buffer that is poisoned.
    let (code, mut poison) = unsafe {
        let poison = BufferPoison::begin(call, Timing::Nonblocking, ranges);
        (forward(index, call.arguments), poison)
    };
    if code != 0 {
        // SAFETY: the buffer is the caller's.
        unsafe { poison.restore() };
        with(|checker| checker.forget_access(call, operation));
    }
    if code == 0
        && has_request
        && let Some(local) = local
    {
        with(|checker| {
            let handle = call.handle("WINDOW").unwrap_or(0);
            let plan = RequestPlan { ranges: local.ranges, ..RequestPlan::default() };
            // SAFETY: the call has succeeded.
            unsafe { add_request(checker, call, local.operation, Timing::Nonblocking, plan) };
            let place = call.function.output("REQUEST").map(|place| call.arguments[place]);
            let Some(variable) = place else { return };
            // SAFETY: the call has succeeded, so it has written a handle.
            let request = unsafe { *(variable as *const usize) };
            let accesses = checker.windows.get(handle).map(|window| &mut window.accesses);
            let own = |access: &&mut CheckedAccess| {
                access.local.as_ref().is_some_and(|l| l.operation == local.operation)
            };
            if let Some(access) = accesses.and_then(|all| all.iter_mut().rev().find(own)) {
                access.local.iter_mut().for_each(|l| l.request = Some((request, variable)));
            }
        });
    }
    code
}

/// Returns true for an access with a request, which only a passive epoch may have.
fn has_request(call: &CheckedCall<'_>) -> bool {
    call.function.output("REQUEST").is_some()
}

/// Returns the kind of an access.
fn kind(call: &CheckedCall<'_>) -> AccessKind {
    match call.function.stem() {
        "Put" | "Rput" => AccessKind::Put,
        "Get" | "Rget" => AccessKind::Get,
        _ => AccessKind::Atomic(call.handle("OPERATION").unwrap_or(0) as u64),
    }
}

/// Checks an access that begins. Returns its local memory.
///
/// # Safety
/// As for [`crate::checker::run`].
unsafe fn begin(checker: &mut Checker, index: usize, call: &CheckedCall<'_>) -> Option<LocalUse> {
    let has_request = has_request(call);
    let handle = call.handle("WINDOW")?;
    let target = call.named("target_rank").filter(|&rank| rank >= 0)? as i32;
    let epoch = checker.windows.get(handle)?.epoch(target);
    let is_passive = matches!(epoch, Some(CheckedEpoch::Passive { .. }));
    if epoch.is_none() || (has_request && !is_passive) {
        let needed = if has_request { "MPI_Win_lock" } else { "a fence, start or lock" };
        let facts = format!("no epoch for rank {target}: {needed} must come first");
        checker.window_finding(FindingClass::AccessOutsideEpoch, call, facts, None);
        return None;
    }
    let kind = kind(call);
    let ranges = local_ranges(checker, call);
    // A process that takes part in an atomic access or a put may give a signal with it.
    if kind.writes() {
        note_message();
    }
    let is_free = check_memory(checker, call, &ranges);
    let blocks = target_blocks(checker, call, handle, target);
    let compares_data = kind == AccessKind::Put
        && ["origin", "target"].into_iter().all(|side| is_in_order(checker, call, side));
    let operation = checker.next_operation();
    let is_watched = checker.windows.get(handle)?.watched < LOCAL_USES;
    let sample = |range: &BufferRange| match range.access {
        // SAFETY: the program's buffers can be read.
        MemoryAccess::Read => unsafe { range.sample() },
        MemoryAccess::Write => 0,
    };
    let local = is_watched.then(|| LocalUse {
        is_free,
        operation,
        function: call.function.name(),
        samples: ranges.iter().map(sample).collect(),
        ranges: ranges.clone(),
        request: None,
    });
    if local.is_some() && !has_request {
        let (function, site) = (call.function.name(), call.site);
        checker.memory.begin(MemoryUse { operation, function, site, ranges: ranges.clone() });
    }
    let access = CheckedAccess {
        target,
        kind,
        epoch: epoch?,
        has_blocks: blocks.is_some(),
        blocks: blocks.unwrap_or_default(),
        site: call.site,
        function: index as u32,
        rank: checker.rank,
        // SAFETY: the program's buffers can be read.
        data: if compares_data { unsafe { data_hash(&ranges) } } else { 0 },
        is_complete: false,
        messages: 0,
        has_followers: false,
        local: local.clone(),
    };
    let window = checker.windows.get(handle)?;
    let conflict = own_conflict(&window.accesses, &access).map(|(earlier, byte)| {
        let function = crate::FUNCTIONS[earlier.function as usize].name();
        (function, earlier.site, byte)
    });
    if let Some((function, site, byte)) = conflict {
        let facts = format!("byte {byte} of the window at rank {target}");
        let second = "an access of the same origin that is not complete";
        let second = checker.own_party(function, site, second);
        checker.window_finding(FindingClass::ConflictingAccesses, call, facts, Some(second));
    }
    if !checker.windows.get(handle)?.record(access)
        && let Some(local) = &local
    {
        // Nothing would end this use.
        checker.memory.end(local.operation);
    }
    local
}

/// Returns a hash of the data of a put from a single block, or 0.
///
/// # Safety
/// The memory can be read.
unsafe fn data_hash(ranges: &[BufferRange]) -> u64 {
    let [range] = ranges else { return 0 };
    let [MemoryRange { offset, length }] = range.blocks[..] else { return 0 };
    if length > DATA {
        return 0;
    }
    // SAFETY: the memory can be read: the caller promises it.
    hash_data(unsafe { std::slice::from_raw_parts(offset as *const u8, length as usize) })
}

/// Returns the count and the datatype of the buffer at a place. Functions for a single element have no count.
fn elements(call: &CheckedCall<'_>, prefix: &str) -> (i64, Option<usize>) {
    let count = call.named(&format!("{prefix}_count")).unwrap_or(1);
    let place = call.function.place(&format!("{prefix}_datatype"));
    let place = place.or_else(|| call.function.place("datatype"));
    (count, place.map(|place| call.arguments[place]))
}

/// Returns true if the memory of an access on one side follows the order of its signature.
fn is_in_order(checker: &mut Checker, call: &CheckedCall<'_>, side: &str) -> bool {
    let (count, datatype) = elements(call, side);
    let facts = datatype.and_then(|datatype| checker.types.facts(datatype));
    facts.is_some_and(|facts| facts.is_in_order(count))
}

/// Returns the memory of the origin that an access uses.
fn local_ranges(checker: &mut Checker, call: &CheckedCall<'_>) -> Vec<BufferRange> {
    let reads_nothing = call.handle("OPERATION") == Some(MPI_NO_OP);
    let mut all = Vec::new();
    for (place, parameter) in call.function.parameters.iter().enumerate() {
        let is_unused = call.arguments[place] == 0
            || call.arguments[place] == MPI_IN_PLACE
            || (reads_nothing && parameter.name == "origin_addr");
        if parameter.kind != "BUFFER" || is_unused {
            continue;
        }
        let prefix = parameter.name.strip_suffix("_addr").unwrap_or(parameter.name);
        let (count, datatype) = elements(call, prefix);
        let Some(facts) = datatype.and_then(|datatype| checker.types.facts(datatype)) else {
            continue;
        };
        all.extend(range(call, place, &facts, &ElementCount::Plain(count)));
    }
    all
}

/// Returns the bytes of the window that an access has; `None` if they are not known.
fn target_blocks(
    checker: &mut Checker,
    call: &CheckedCall<'_>,
    handle: usize,
    target: i32,
) -> Option<Vec<MemoryRange>> {
    let (count, datatype) = elements(call, "target");
    let facts = checker.types.facts(datatype?)?;
    let unit = *checker.windows.get(handle)?.units.get(target as usize)?;
    let start = call.named("target_disp")? * unit;
    let mut blocks = repeated(facts.blocks.as_ref()?, facts.extent, count)?;
    blocks.iter_mut().for_each(|block| block.offset += start);
    blocks.retain(|block| block.length > 0);
    Some(blocks)
}

impl Checker {
    /// Forgets an access that the library has refused.
    fn forget_access(&mut self, call: &CheckedCall<'_>, operation: Option<u64>) {
        let Some(operation) = operation else { return };
        self.memory.end(operation);
        if let Some(window) = call.handle("WINDOW").and_then(|handle| self.windows.get(handle)) {
            let is_other =
                |a: &CheckedAccess| a.local.as_ref().is_none_or(|l| l.operation != operation);
            let before = window.accesses.len();
            window.accesses.retain(is_other);
            window.watched -= before - window.accesses.len();
        }
    }
}
