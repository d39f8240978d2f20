//! Calls that begin operations: sends, receives, collective operations.

use super::buffer_arguments::{buffer_places, elements};
use super::messages::ReceiveCall;
use super::{Checker, is_request, waits, with};
use crate::collective::CollectiveComparison;
use crate::finding::FindingClass;
use crate::forward;
use crate::function::CheckedCall;
use crate::marks::MessageArrival;
use crate::memory_use::{BufferRange, ElementCount, MemoryUse, own_conflict, range};
use crate::poison::BufferPoison;
use crate::requests::{RequestFacts, RequestReceive, TimedSend};
use crate::role::Timing;
use crate::shadow::{CommKind, MPI_IN_PLACE, MPI_PROC_NULL, RawStatus};
use crate::slow;
use std::ffi::c_int;

const MPI_ROOT: i64 = -4;

/// Returns the number of processes that an operation on a communicator addresses.
pub(super) fn members(comm: usize) -> usize {
    let (mut size, mut inter) = (0 as c_int, 0 as c_int);
    // SAFETY: the results are local variables.
    unsafe {
        crate::library::mpi!(MPI_Comm_test_inter(comm, &raw mut inter));
        match inter {
            0 => crate::library::mpi!(MPI_Comm_size(comm, &raw mut size)),
            _ => crate::library::mpi!(MPI_Comm_remote_size(comm, &raw mut size)),
        };
    }
    size.max(0) as usize
}

/// Returns the number of processes in the own group of a communicator.
pub(super) fn own_members(comm: usize) -> usize {
    let mut size = 0 as c_int;
    // SAFETY: the result is a local variable.
    unsafe { crate::library::mpi!(MPI_Comm_size(comm, &raw mut size)) };
    size.max(0) as usize
}

/// Returns the rank of this process in its group of a communicator.
fn own_rank(comm: usize) -> usize {
    let mut rank = 0 as c_int;
    // SAFETY: the result is a local variable.
    unsafe { crate::library::mpi!(MPI_Comm_rank(comm, &raw mut rank)) };
    rank.max(0) as usize
}

/// Returns the multiple of a buffer's count: the number of ranks for buffers with a part for each rank.
fn parts(call: &CheckedCall<'_>, place: usize) -> i64 {
    let stem = call.function.stem().to_ascii_lowercase();
    let name = call.function.parameters[place].name;
    let each = (name == "recvbuf" && (stem.contains("gather") || stem.contains("alltoall")))
        || (name == "sendbuf" && (stem.contains("scatter") || stem.contains("alltoall")));
    // MPI_Reduce_scatter_block distributes the result within each group.
    let of_group = if stem.contains("reduce") { own_members } else { members };
    let parts = || call.handle("COMMUNICATOR").map_or(1, |comm| of_group(comm) as i64);
    if each { parts() } else { 1 }
}

/// Returns the memory of a call's buffers. Buffers whose memory is not known are left out.
///
/// # Safety
/// The program keeps MPI's rules for the arguments.
pub(super) unsafe fn ranges(checker: &mut Checker, call: &CheckedCall<'_>) -> Vec<BufferRange> {
    let stem = call.function.stem();
    // Neighborhoods have other numbers of parts, and each part of these functions has a type of its own.
    if stem.contains("eighbor") || stem.contains("lltoallw") {
        return Vec::new();
    }
    let root = call.named("root");
    let facts = call.handle("COMMUNICATOR").and_then(|comm| checker.comms.get(&comm));
    let kind = facts.map_or(CommKind::Intra, |facts| facts.kind);
    let is_root = root.is_some_and(|root| is_root(call, root, kind));
    // The processes of the root's group that are not the root take no part.
    if kind == CommKind::Inter && root == Some(MPI_PROC_NULL) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for (place, parameter) in call.function.parameters.iter().enumerate() {
        if parameter.kind != "BUFFER" || call.arguments[place] == MPI_IN_PLACE {
            continue;
        }
        if root.is_some() && !has_buffer(stem, parameter.name, RootSide { kind, is_root }) {
            continue;
        }
        let Some(places) = buffer_places(call, place) else { continue };
        let Some(facts) = checker.types.facts(call.arguments[places.datatype]) else { continue };
        let elements = match call.function.parameters[places.count].is_array {
            false => ElementCount::Plain(call.integer(places.count) * parts(call, place)),
            true => {
                // The counts of MPI_Reduce_scatter are those of the own group.
                let of_group = if places.displacements.is_some() { members } else { own_members };
                let size = call.handle("COMMUNICATOR").map_or(0, of_group);
                // SAFETY: the arrays have an element for each rank, as MPI requires of the program.
                let piece = |i| unsafe {
                    let shift = places.displacements.map_or(0, |place| call.element(place, i));
                    (call.element(places.count, i), shift)
                };
                match places.displacements {
                    Some(_) => ElementCount::Vector((0..size).map(piece).collect()),
                    // The counts of MPI_Reduce_scatter have no displacements. A rank receives its own part.
                    None if parameter.name == "recvbuf" => {
                        let rank = call.handle("COMMUNICATOR").map_or(0, own_rank);
                        ElementCount::Plain(if rank < size { piece(rank).0 } else { 0 })
                    }
                    None => ElementCount::Plain((0..size).map(|i| piece(i).0).sum()),
                }
            }
        };
        // SAFETY: `range` computes addresses and reads nothing.
        let mut found = range(call, place, &facts, &elements);
        // The root of a broadcast only reads its buffer.
        if let Some(found) = found.as_mut()
            && is_root
            && parameter.name == "buffer"
        {
            found.access = crate::memory_use::MemoryAccess::Read;
        }
        all.extend(found);
    }
    all
}

/// Side of a rank in an operation with a root.
#[derive(Clone, Copy)]
struct RootSide {
    kind: CommKind,
    is_root: bool,
}

/// Returns true if a buffer of an operation with a root counts on this side (MPI 5.0, section 6.2.3).
///
/// | operation | root | other ranks |
/// |---|---|---|
/// | gather, reduction | `recvbuf`, within a communicator also `sendbuf` | `sendbuf` |
/// | scatter | `sendbuf`, within a communicator also `recvbuf` | `recvbuf` |
fn has_buffer(stem: &str, parameter: &str, side: RootSide) -> bool {
    let (of_root, of_others) = match stem {
        _ if stem.contains("catter") => ("sendbuf", "recvbuf"),
        _ if stem.contains("ather") || stem.contains("educe") => ("recvbuf", "sendbuf"),
        _ => return true,
    };
    match side {
        RootSide { is_root: false, .. } => parameter != of_root,
        RootSide { kind: CommKind::Inter, .. } => parameter != of_others,
        RootSide { .. } => true,
    }
}

/// Returns true if this rank is the root.
pub(super) fn is_root(call: &CheckedCall<'_>, root: i64, kind: CommKind) -> bool {
    let Some(comm) = call.handle("COMMUNICATOR") else { return false };
    // Ranks of an intercommunicator name a rank of the other group.
    if kind == CommKind::Inter {
        return root == MPI_ROOT;
    }
    root == own_rank(comm) as i64 || root == MPI_ROOT
}

/// Adds findings if the memory of a call is in use already. Returns true if it is not.
pub(super) fn check_memory(
    checker: &mut Checker,
    call: &CheckedCall<'_>,
    ranges: &[BufferRange],
) -> bool {
    let mut is_free = true;
    if let Some((first, second)) = own_conflict(ranges) {
        is_free = false;
        let party = checker.party(call, format!("{first} and {second} overlap"));
        checker.findings.add(FindingClass::BufferInUse, vec![party]);
    }
    if let Some((earlier, own, theirs)) = checker.memory.conflict(ranges) {
        let earlier = crate::finding::Party {
            rank: Some(checker.rank),
            function: earlier.function.to_owned(),
            site: earlier.site,
            facts: format!("uses its {theirs} until the operation is complete"),
        };
        is_free = false;
        let party = checker.party(call, format!("{own} overlaps"));
        checker.findings.add(FindingClass::BufferInUse, vec![party, earlier]);
    }
    is_free
}

/// Plan of a request that a call makes.
#[derive(Default)]
pub(super) struct RequestPlan {
    pub ranges: Vec<BufferRange>,
    pub poison: BufferPoison,
    pub receive: Option<RequestReceive>,
    pub send: Option<Box<TimedSend>>,
    pub new_comm: Option<usize>,
    pub comparison: Option<Box<CollectiveComparison>>,
}

/// Adds the request that a successful call has made.
///
/// # Safety
/// The call has succeeded.
pub(super) unsafe fn add_request(
    checker: &mut Checker,
    call: &CheckedCall<'_>,
    operation: u64,
    timing: Timing,
    plan: RequestPlan,
) {
    let Some(place) = call.function.output("REQUEST") else { return };
    let variable = call.arguments[place];
    // SAFETY: the call has succeeded, so it has written a handle.
    let handle = unsafe { *(variable as *const usize) };
    let is_persistent = timing == Timing::Persistent;
    let mut request = RequestFacts {
        operation,
        function: call.function.name(),
        site: call.site,
        variable,
        is_persistent,
        is_active: false,
        ranges: plan.ranges,
        poison: plan.poison,
        samples: Vec::new(),
        receive: plan.receive,
        send: plan.send,
        new_comm: plan.new_comm,
        comparison: plan.comparison,
    };
    if !is_persistent {
        // SAFETY: the buffers of an operation under way can be read.
        unsafe { activate(checker, &mut request) };
    }
    checker.requests.add(handle, request);
}

/// Notes that the operation of a request begins.
///
/// # Safety
/// The buffers can be read.
pub(super) unsafe fn activate(checker: &mut Checker, request: &mut RequestFacts) {
    let is_read = |range: &BufferRange| range.access == crate::memory_use::MemoryAccess::Read;
    // SAFETY: the caller promises it.
    let sample = |range: &BufferRange| if is_read(range) { unsafe { range.sample() } } else { 0 };
    request.samples = request.ranges.iter().map(sample).collect();
    request.is_active = true;
    checker.memory.begin(MemoryUse {
        operation: request.operation,
        function: request.function,
        site: request.site,
        ranges: request.ranges.clone(),
    });
}

/// Returns the receive of a call.
fn receive_of(checker: &mut Checker, call: &CheckedCall<'_>) -> Option<RequestReceive> {
    let comm = call.handle("COMMUNICATOR")?;
    let elements = elements(checker, call, &["recvbuf", "buf"])?;
    let began = slow::receive_moment();
    Some(RequestReceive { comm, elements, began, partitioned: None })
}

/// Runs a send.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn send(index: usize, call: &CheckedCall<'_>, timing: Timing) -> c_int {
    // SAFETY: the caller promises it.
    unsafe {
        let begun = with(|checker| {
            let ranges = ranges(checker, call);
            let operation = checker.next_operation();
            if timing != Timing::Persistent {
                check_memory(checker, call, &ranges);
            }
            let send = checker.set_mark(index, call, timing);
            (operation, RequestPlan { ranges, send, ..RequestPlan::default() })
        });
        let code = forward(index, call.arguments);
        if timing == Timing::Blocking
            && let Some((_, RequestPlan { send: Some(send), .. })) = &begun
        {
            waits::send_ended(call, send);
        }
        if let Some((operation, plan)) = begun.filter(|_| code == 0 && is_request(timing)) {
            with(|checker| add_request(checker, call, operation, timing, plan));
        }
        code
    }
}

/// Returns the arguments of a call with a status of our own where the program has none, and the place of the status.
pub(super) fn with_status(
    call: &CheckedCall<'_>,
    own: &mut RawStatus,
) -> (Vec<usize>, Option<usize>) {
    let mut arguments = call.arguments.to_vec();
    let place = call.function.output("STATUS");
    if let Some(place) = place
        && arguments[place] == 0
    {
        arguments[place] = own.as_mut_ptr() as usize;
    }
    (arguments, place)
}

/// Runs a receive.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn receive(index: usize, call: &CheckedCall<'_>, timing: Timing) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { receive_with(index, call, timing, SendPart::None) }
}

/// Runs a send and a receive in one call.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn send_receive(index: usize, call: &CheckedCall<'_>, timing: Timing) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { receive_with(index, call, timing, SendPart::First) }
}

/// Send in a call that receives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendPart {
    None,
    First,
}

/// Runs a call that receives, and that may send, too.
///
/// # Safety
/// As for [`super::run`].
unsafe fn receive_with(
    index: usize,
    call: &CheckedCall<'_>,
    timing: Timing,
    part: SendPart,
) -> c_int {
    let (function, site) = (call.function.name(), call.site);
    // SAFETY: the caller promises it.
    unsafe {
        let begun = with(|checker| {
            let ranges = ranges(checker, call);
            let receive = receive_of(checker, call);
            let operation = checker.next_operation();
            let is_free = timing == Timing::Persistent || check_memory(checker, call, &ranges);
            let poison = BufferPoison::begin(call, timing, if is_free { &ranges } else { &[] });
            let send = match part {
                SendPart::First => checker.set_mark(index, call, timing),
                SendPart::None => None,
            };
            (operation, RequestPlan { ranges, poison, receive, send, ..RequestPlan::default() })
        });
        let mut own = RawStatus::default();
        let (arguments, status) = with_status(call, &mut own);
        let code = forward(index, &arguments);
        let Some((operation, mut plan)) = begun else { return code };
        if code != 0 {
            plan.poison.restore();
            return code;
        }
        match (timing, &plan.receive, status) {
            (Timing::Blocking, Some(receive), Some(status)) => {
                let arrival = MessageArrival::of_status(receive.comm, arguments[status]);
                let began = receive.began;
                let own = ReceiveCall { function, site, elements: &receive.elements, began };
                with(|checker| checker.compare(&own, &arrival));
                slow::note_send(plan.send.as_ref().map_or(0, |send| send.record.posted));
                waits::ended(function, site, began);
            }
            (Timing::Blocking, ..) => {}
            _ => _ = with(|checker| add_request(checker, call, operation, timing, plan)),
        }
        code
    }
}

/// Notes the request of MPI_Comm_idup, which makes a communicator when the request is complete.
///
/// # Safety
/// The call has succeeded.
pub(super) unsafe fn copy_begins(call: &CheckedCall<'_>) {
    let place = call.function.output("COMMUNICATOR");
    let new_comm = place.map(|place| call.arguments[place]);
    with(|checker| {
        let operation = checker.next_operation();
        let plan = RequestPlan { new_comm, ..RequestPlan::default() };
        // SAFETY: the caller promises it.
        unsafe { add_request(checker, call, operation, Timing::Nonblocking, plan) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_count_on_their_side() {
        let inter = RootSide { kind: CommKind::Inter, is_root: true };
        let root = RootSide { kind: CommKind::Intra, is_root: true };
        let other = RootSide { kind: CommKind::Intra, is_root: false };
        for (stem, of_root, of_others) in [
            ("Gather", "recvbuf", "sendbuf"),
            ("Ireduce", "recvbuf", "sendbuf"),
            ("Scatterv_init", "sendbuf", "recvbuf"),
        ] {
            assert!(has_buffer(stem, of_root, inter) && !has_buffer(stem, of_others, inter));
            assert!(has_buffer(stem, of_root, root) && has_buffer(stem, of_others, root));
            assert!(!has_buffer(stem, of_root, other) && has_buffer(stem, of_others, other));
        }
        assert!(has_buffer("Bcast", "buffer", other) && has_buffer("Ibcast", "buffer", inter));
    }
}
