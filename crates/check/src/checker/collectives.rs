//! Collective calls: their comparison among all ranks, and between pairs of ranks.

use super::buffer_arguments::elements;
use super::operations::{
    RequestPlan, add_request, check_memory, is_root, members, own_members, ranges,
};
use super::{Checker, after, is_request, waits, window_compare, windows, with};
use crate::collective::pairwise::{self, PairMismatch};
use crate::collective::{
    self, CollectiveComparison, CollectiveContext, CollectiveRecord, ComparisonPlan,
    ComparisonUnderWay, IN_PLACE, RootPart, SignatureWords,
};
use crate::finding::{FindingClass, Party};
use crate::forward;
use crate::function::CheckedCall;
use crate::library::mpi;
use crate::objects::ObjectHandle;
use crate::poison::BufferPoison;
use crate::report::EXIT_CODE;
use crate::requests::ReceiveElements;
use crate::role::{CommonSignature, Timing, base_name, equal_arguments};
use crate::shadow::{CommKind, MPI_COMM_WORLD, MPI_IN_PLACE, MPI_INT, MPI_MIN};
use crate::wait_clock;
use std::ffi::c_int;

/// Assertions that all ranks give at MPI_Win_fence: MPI_MODE_NOPRECEDE and MPI_MODE_NOSUCCEED.
const COLLECTIVE_ASSERTIONS: i64 = 2048 | 16384;

/// Operations that have MPI_IN_PLACE at all ranks or at none.
const IN_PLACE_AT_ALL: &[&str] =
    &["allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw"];

/// Functions that free an object together with all its ranks.
const COLLECTIVE_FREES: &[&str] = &["Comm_free", "Comm_disconnect", "Win_free", "File_close"];

/// Runs a collective operation, after all ranks have compared their calls.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn collective(
    index: usize,
    call: &CheckedCall<'_>,
    timing: Timing,
    common: CommonSignature,
) -> c_int {
    // SAFETY: the caller promises it.
    unsafe {
        let begun = with(|checker| {
            let ranges = ranges(checker, call);
            let is_free = check_memory(checker, call, &ranges);
            let poison = BufferPoison::begin(call, timing, if is_free { &ranges } else { &[] });
            let comparison = start(checker, index, call, common).map(Box::new);
            let plan = RequestPlan { ranges, poison, comparison, ..RequestPlan::default() };
            (checker.next_operation(), plan)
        });
        let Some((operation, mut plan)) = begun else { return forward(index, call.arguments) };
        if timing != Timing::Nonblocking
            && let Some(comparison) = plan.comparison.take()
        {
            finish(&comparison);
        }
        let code = forward(index, call.arguments);
        if code != 0 {
            plan.poison.restore();
        } else if is_request(timing) {
            with(|checker| add_request(checker, call, operation, timing, plan));
        }
        if code == 0 {
            after(call);
        }
        add_contexts(call, code);
        code
    }
}

/// Returns the object by which a call is compared: its communicator, file or window.
fn context_object(call: &CheckedCall<'_>) -> Option<ObjectHandle> {
    ["COMMUNICATOR", "FILE", "WINDOW"].into_iter().find_map(|kind| {
        let place = call.function.parameters.iter().position(|p| {
            p.kind == kind && p.direction != crate::function::ArgumentDirection::Out && !p.is_array
        })?;
        let argument = call.arguments[place];
        let is_handle = call.function.parameters[place].form == crate::function::Form::Handle;
        // Functions that free an object take the address of its handle.
        let handle = match (is_handle, argument) {
            (true, handle) => handle,
            (false, 0) => return None,
            // SAFETY: such an argument points to a handle, as MPI requires of the program.
            (false, pointer) => unsafe { *(pointer as *const usize) },
        };
        Some(ObjectHandle { kind, handle })
    })
}

/// Begins the comparison of a collective call; `None` if it has no context.
///
/// # Safety
/// As for [`super::run`].
pub(super) unsafe fn start(
    checker: &mut Checker,
    index: usize,
    call: &CheckedCall<'_>,
    common: CommonSignature,
) -> Option<CollectiveComparison> {
    let object = context_object(call)?;
    let context = checker.contexts.get(object)?;
    let (kind, rank) = (context.kind, checker.rank);
    // SAFETY: the caller promises it.
    let record = unsafe { record(checker, index, call, common, kind) };
    check_in_place(checker, call);
    let Checker { contexts, types, .. } = &mut *checker;
    let mut of_type = |datatype: usize, count: i64| {
        types.facts(datatype).map(|facts| facts.signature.repeat(count.max(0) as u64))
    };
    let pairs = pairwise::exchange(call, index as u32, rank, contexts.get(object)?, &mut of_type);
    let has_accesses = checker.windows.has_accesses(object);
    let host = checker.slow.as_ref().map_or(0, |slow| slow.host);
    checker.drain(object);
    checker.drain_retired();
    checker.contexts.start(object, ComparisonPlan { record, pairs, has_accesses, host })
}

/// Returns the record of a call.
///
/// # Safety
/// As for [`super::run`].
unsafe fn record(
    checker: &mut Checker,
    index: usize,
    call: &CheckedCall<'_>,
    common: CommonSignature,
    kind: CommKind,
) -> CollectiveRecord {
    let is_inter = kind == CommKind::Inter;
    let base = base_name(call.function.stem());
    let mut record = CollectiveRecord {
        site: call.site,
        function: index as u32,
        rank: checker.rank,
        root: call.named("root").unwrap_or(0) as i32,
        operator: collective::operator(call),
        ..CollectiveRecord::default()
    };
    let is_in_place = |name| argument(call, name) == Some(MPI_IN_PLACE);
    if IN_PLACE_AT_ALL.contains(&base.as_str()) && is_in_place("sendbuf") {
        record.flags |= IN_PLACE;
    }
    let words =
        |checker: &mut Checker, names: &[&str]| signature(checker, call, names).unwrap_or_default();
    // The processes of the root's group that are not the root take no part.
    let is_outside = is_inter && call.named("root") == Some(-3);
    let is_root = call.named("root").is_some_and(|root| is_root(call, root, kind));
    let part = if is_root { RootPart::Root } else { RootPart::Other };
    // Groups of other sizes have other lengths there.
    let has_own_length = is_inter && base == "reduce_scatter_block";
    let names = collective::common_buffer(common, part);
    if let Some(names) = names.filter(|_| !is_outside && !has_own_length) {
        record.common = words(checker, names);
    }
    if is_inter {
        record.send = words(checker, &["sendbuf"]);
    }
    for (at, name) in equal_arguments(call.function.stem()).iter().enumerate() {
        let Some(place) = call.function.place(name) else { continue };
        if !call.function.parameters[place].is_array {
            let value = call.integer(place);
            record.arguments[at] =
                if *name == "assert" { value & COLLECTIVE_ASSERTIONS } else { value };
            continue;
        }
        // The counts of MPI_Reduce_scatter are those of the own group.
        let of_group = if base == "reduce_scatter" { own_members } else { members };
        let length = call.named("ndims").map_or_else(
            || call.handle("COMMUNICATOR").map_or(0, of_group),
            |dimensions| dimensions.max(0) as usize,
        );
        // SAFETY: the array has this length, as MPI requires of the program.
        let all: Vec<_> = (0..length).map(|i| unsafe { call.element(place, i) }).collect();
        record.arrays = collective::hash_words(&all);
        if base == "reduce_scatter"
            && let Some(facts) = call.handle("DATATYPE").and_then(|t| checker.types.facts(t))
        {
            let total = all.iter().sum::<i64>().max(0) as u64;
            record.common = SignatureWords::new(&facts.signature.repeat(total));
        }
    }
    let has_both = matches!(base.as_str(), "allgather" | "alltoall")
        || (is_root && matches!(base.as_str(), "gather" | "scatter"));
    if has_both && !is_inter && !is_in_place("sendbuf") && !is_in_place("recvbuf") {
        let (sent, received) = (words(checker, &["sendbuf"]), words(checker, &["recvbuf"]));
        if sent.differs(&received) {
            let facts = format!("sends {}, receives {}", sent.describe(), received.describe());
            let party = checker.party(call, facts);
            checker.findings.add(FindingClass::CollectiveMismatch, vec![party]);
        }
    }
    record
}

/// Returns the signature of the buffer with one of these names.
fn signature(
    checker: &mut Checker,
    call: &CheckedCall<'_>,
    names: &[&str],
) -> Option<SignatureWords> {
    let ReceiveElements { facts, count } = elements(checker, call, names)?;
    Some(SignatureWords::new(&facts.signature.repeat(count.max(0) as u64)))
}

/// Returns the argument with a name.
fn argument(call: &CheckedCall<'_>, name: &str) -> Option<usize> {
    call.function.place(name).map(|place| call.arguments[place])
}

/// Adds a finding for MPI_IN_PLACE where it is forbidden.
fn check_in_place(checker: &mut Checker, call: &CheckedCall<'_>) {
    let base = base_name(call.function.stem());
    let is_in_place = |name| argument(call, name) == Some(MPI_IN_PLACE);
    let at_root = |name| {
        call.named("root").is_some_and(|root| !is_root(call, root, CommKind::Intra))
            && is_in_place(name)
    };
    let why = match base.as_str() {
        "gather" | "gatherv" | "reduce" if at_root("sendbuf") => "MPI_IN_PLACE is for the root",
        "scatter" | "scatterv" if at_root("recvbuf") => "MPI_IN_PLACE is for the root",
        "bcast" if is_in_place("buffer") => "the operation has no MPI_IN_PLACE",
        name if name.starts_with("neighbor_") && is_in_place("sendbuf") => {
            "the operation has no MPI_IN_PLACE"
        }
        _ => return,
    };
    let party = checker.party(call, why.to_owned());
    checker.findings.add(FindingClass::CollectiveMismatch, vec![party]);
}

impl Checker {
    /// Judges the comparisons of an object that are complete.
    fn drain(&mut self, object: ObjectHandle) {
        while let Some(comparison) = self.contexts.take_complete(object) {
            self.unjudged.push(*comparison);
        }
    }

    /// Judges the comparisons of communicators that the program has freed, and frees their contexts.
    fn drain_retired(&mut self) {
        let [_, retired] = self.contexts.objects();
        for object in retired {
            self.drain(object);
            if let Some(mut comm) = self.contexts.remove_idle(object) {
                // SAFETY: the communicator is ours, and all ranks have used it for the last time.
                unsafe { mpi!(MPI_Comm_free(&raw mut comm)) };
            }
        }
    }
}

/// Waits for a comparison, and for the earlier ones of its context. Ends the job at the first mismatch. Returns true if a rank has
/// accesses to windows for the others.
pub fn finish(comparison: &CollectiveComparison) -> bool {
    judge_complete();
    let take = |checker: &mut Checker| {
        checker.contexts.take_until(comparison.context, comparison.sequence)
    };
    let mut has_accesses = false;
    while let Some(mut under_way) = with(take).flatten() {
        let began = wait_clock::moment();
        under_way.wait();
        waits::collective_ended(&under_way, began);
        judge(&mut under_way);
        // Only the last comparison is that of the present call.
        has_accesses = under_way.has_accesses();
    }
    if has_accesses {
        window_compare::exchange(comparison.context);
    }
    has_accesses
}

/// Judges the comparisons that all ranks have begun. A rank that looks for a message again and again calls this function.
pub fn judge_arrived() {
    let drain = |checker: &mut Checker| {
        let objects = checker.contexts.objects_under_way();
        objects.into_iter().for_each(|object| checker.drain(object));
    };
    if with(drain).is_some() {
        judge_complete();
    }
}

/// Judges comparisons that were complete when a later call began.
fn judge_complete() {
    let all = with(|checker| std::mem::take(&mut checker.unjudged)).unwrap_or_default();
    for mut comparison in all {
        judge(&mut comparison);
    }
}

/// Ends the job if the calls of a comparison differ, unless the user does not want to see this finding.
fn judge(comparison: &mut ComparisonUnderWay) {
    let differ = comparison.mismatch();
    if differ.is_some_and(|records| reports_mismatch(comparison, &records)) {
        end_job();
    }
    if differ.is_some() {
        comparison.pairs.iter_mut().for_each(|pairs| pairs.abandon());
        return;
    }
    let wrong = comparison.pairs.as_mut().and_then(|pairs| pairs.finish());
    if wrong.is_some_and(|wrong| reports_pair(&wrong)) {
        end_job();
    }
}

fn party(function: u32, rank: c_int, site: crate::call_site::CallSite, facts: String) -> Party {
    let function = crate::FUNCTIONS.get(function as usize);
    let function = function.map_or("?", |function| function.name()).to_owned();
    Party { rank: Some(rank), function, site, facts }
}

/// Reports that ranks make different collective calls. Returns false if the user does not want to see this. All ranks of the context
/// call this function, and get the same answer.
fn reports_mismatch(comparison: &ComparisonUnderWay, records: &[CollectiveRecord; 2]) -> bool {
    let report = |checker: &mut Checker| {
        let parties = records.map(|record| {
            let facts = collective::describe_record(&record);
            party(record.function, record.rank, record.site, facts)
        });
        checker.rank == records[0].rank
            && checker.findings.add(FindingClass::CollectiveMismatch, parties.to_vec())
    };
    comparison.any(with(report) == Some(true))
}

/// Reports that two ranks have different parts of an operation. Returns false if the user does not want to see this.
fn reports_pair(wrong: &PairMismatch) -> bool {
    let (sent, received) = (&wrong.sent, &wrong.received);
    with(|checker| {
        let to = format!("to rank {}: {}", checker.rank, sent.describe());
        let from = format!("from rank {}: {}", sent.rank, received.describe());
        let parties = vec![
            party(received.function, checker.rank, received.site, from),
            party(sent.function, sent.rank, sent.site, to),
        ];
        checker.findings.add(FindingClass::CollectiveMismatch, parties)
    }) == Some(true)
}

fn end_job() -> ! {
    // SAFETY: MPI is initialized.
    unsafe { mpi!(MPI_Abort(MPI_COMM_WORLD, EXIT_CODE)) };
    std::process::abort()
}

/// Adds the context of a communicator that all its processes have made or begun to use.
///
/// # Safety
/// All processes of the communicator call this function.
pub unsafe fn add_context(object: ObjectHandle, comm: usize) {
    // SAFETY: the caller promises it.
    let context = unsafe { CollectiveContext::new(comm) };
    with(|checker| checker.contexts.insert(object, context));
}

/// Adds the context of the file or window that a collective call has made, if all ranks have it.
///
/// # Safety
/// All processes of the call's communicator have returned from it.
unsafe fn add_contexts(call: &CheckedCall<'_>, code: c_int) {
    let makes = |kind: &str| call.function.output(kind).is_some();
    let Some(kind) = ["FILE", "WINDOW"].into_iter().find(|kind| makes(kind)) else { return };
    let Some(comm) = call.handle("COMMUNICATOR") else { return };
    let object = ObjectHandle { kind: "COMMUNICATOR", handle: comm };
    let Some(ours) = with(|checker| checker.contexts.get(object).map(|c| c.comm)).flatten() else {
        return;
    };
    let (own, mut all) = (c_int::from(code == 0), 0 as c_int);
    // SAFETY: all processes are here. The results are local variables.
    unsafe {
        mpi!(MPI_Allreduce(&raw const own, &raw mut all, 1usize, MPI_INT, MPI_MIN, ours));
        let Some(handle) = call.result(kind).filter(|_| all == 1) else { return };
        add_context(ObjectHandle { kind, handle }, comm);
        if kind == "WINDOW" {
            windows::add(call, handle, comm);
        }
    }
}

/// Compares a call that frees an object with all ranks of the object.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn before_free(index: usize, call: &CheckedCall<'_>) {
    if !COLLECTIVE_FREES.contains(&call.function.stem()) {
        return;
    }
    if let Some(object) = context_object(call).filter(|object| object.kind == "WINDOW") {
        with(|checker| checker.check_open(object.handle, call, &[]));
    }
    // SAFETY: the caller promises it.
    let comparison =
        with(|checker| unsafe { start(checker, index, call, CommonSignature::None) }).flatten();
    match comparison {
        Some(comparison) if call.function.stem() == "Comm_free" => {
            with(|checker| checker.contexts.retire(comparison.context));
        }
        Some(comparison) => drop(finish(&comparison)),
        None => {}
    }
}

/// Frees the context of an object that the program is about to free.
pub fn remove_context(object: ObjectHandle) {
    let comm = with(|checker| checker.contexts.remove(object)).flatten();
    if let Some(mut comm) = comm {
        // SAFETY: the communicator is ours. All ranks free it, since they free the program's object.
        unsafe { mpi!(MPI_Comm_free(&raw mut comm)) };
    }
}

/// Compares MPI_Finalize with the collective calls of all other ranks, on all communicators, windows and files that are left.
///
/// # Safety
/// As for [`super::run`].
pub unsafe fn at_finalize(index: usize, call: &CheckedCall<'_>) {
    let begun = with(|checker| {
        let [alive, retired] = checker.contexts.objects();
        for &object in &alive {
            let record = CollectiveRecord {
                site: call.site,
                function: index as u32,
                rank: checker.rank,
                ..CollectiveRecord::default()
            };
            checker.contexts.start(object, ComparisonPlan { record, ..ComparisonPlan::default() });
        }
        [alive, retired].concat()
    });
    judge_complete();
    let objects = begun.unwrap_or_default();
    let next = |checker: &mut Checker| {
        // SAFETY: no other thread calls MPI during MPI_Finalize.
        let object = unsafe { checker.contexts.wait_any(&objects) }?;
        checker.contexts.take_until(object, u64::MAX)
    };
    while let Some(mut comparison) = with(next).flatten() {
        judge(&mut comparison);
    }
}
