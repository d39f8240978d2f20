//! The checks of a process, and the calls that take part in them.

mod collectives;
mod completion;
mod matched;
mod messages;
mod operations;
mod windows;

use crate::collective::{CollectiveContexts, ComparisonUnderWay};
use crate::datatype::Datatypes;
use crate::forward;
use crate::function::CheckedCall;
use crate::library::mpi;
use crate::memory_use::MemoryUses;
use crate::objects::{ObjectHandle, ObjectRegistry};
use crate::report::{EXIT_CODE, FindingClass, Findings, Party};
use crate::requests::Requests;
use crate::role::{CallRole, Timing};
use crate::shadow::{
    CallRecord, CommFacts, MPI_COMM_NULL, MPI_COMM_SELF, MPI_COMM_WORLD, RecordsUnderWay,
};
use crate::window::Windows;
use matched::MatchedMessages;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Functions after which a new communicator gets a shadow communicator. All its processes return from the function together.
const SHADOWED: &[&str] = &[
    "Comm_dup",
    "Comm_dup_with_info",
    "Comm_create",
    "Comm_create_group",
    "Comm_split",
    "Comm_split_type",
    "Comm_create_from_group",
    "Cart_create",
    "Cart_sub",
    "Graph_create",
    "Dist_graph_create",
    "Dist_graph_create_adjacent",
    "Intercomm_create",
    "Intercomm_create_from_groups",
    "Intercomm_merge",
];

/// State of the checks.
pub struct Checker {
    /// Rank in MPI_COMM_WORLD.
    rank: c_int,
    comms: HashMap<usize, CommFacts>,
    contexts: CollectiveContexts,
    /// Comparisons that are complete and were not judged yet.
    unjudged: Vec<ComparisonUnderWay>,
    windows: Windows,
    types: Datatypes,
    memory: MemoryUses,
    matched: MatchedMessages,
    requests: Requests,
    objects: ObjectRegistry,
    records: RecordsUnderWay,
    findings: Findings,
    /// Number of operations so far.
    operations: u64,
}

static CHECKER: Mutex<Option<Checker>> = Mutex::new(None);
/// True if this process has findings and has called MPI_Finalize.
static HAS_FINDINGS: AtomicBool = AtomicBool::new(false);

/// Calls a function with the checker, if MPI is initialized. The function calls nothing that waits for the program.
fn with<R>(f: impl FnOnce(&mut Checker) -> R) -> Option<R> {
    CHECKER.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(f)
}

/// Checks a call, and passes it to the library.
///
/// # Safety
/// The program keeps MPI's rules for the arguments of function `index`.
pub unsafe fn run(index: usize, call: &CheckedCall<'_>, role: CallRole) -> c_int {
    // Programs of older ABIs have other handles, so their calls are not checked.
    let is_running = with(|_| ()).is_some();
    if is_running {
        windows::before_call(call, role);
    }
    // SAFETY: the caller promises it, here and below.
    unsafe {
        match role {
            CallRole::Start => {
                let code = forward(index, call.arguments);
                if code == 0 && crate::library::legacy().is_none() {
                    start();
                }
                code
            }
            _ if !is_running => forward(index, call.arguments),
            CallRole::Finalize => finalize(index, call),
            CallRole::Send(timing) => operations::send(index, call, timing),
            CallRole::Receive(timing) => operations::receive(index, call, timing),
            CallRole::MatchedProbe => matched::probe(index, call),
            CallRole::MatchedReceive(timing) => matched::receive(index, call, timing),
            CallRole::SendReceive(timing) => operations::send_receive(index, call, timing),
            CallRole::Collective(timing, common) => {
                collectives::collective(index, call, timing, common)
            }
            CallRole::Complete(completion) => completion::complete(index, call, completion),
            CallRole::StartRequests => operations::start_requests(index, call),
            CallRole::FreeRequest => completion::free(index, call),
            CallRole::Window => windows::run(index, call),
            CallRole::Other => other(index, call),
        }
    }
}

/// Begins the checks.
///
/// # Safety
/// MPI is initialized, and all processes call this function.
unsafe fn start() {
    let mut rank = 0 as c_int;
    // SAFETY: the result is a local variable.
    unsafe { mpi!(MPI_Comm_rank(MPI_COMM_WORLD, &raw mut rank)) };
    if let Err(why) = crate::suppress::read() {
        eprintln!("weft check: {why}");
        // SAFETY: MPI is initialized.
        unsafe { mpi!(MPI_Abort(MPI_COMM_WORLD, 1)) };
    }
    // SAFETY: all processes do so.
    unsafe { crate::shared_reports::begin() };
    // SAFETY: all processes of these communicators do so.
    let comms = [MPI_COMM_WORLD, MPI_COMM_SELF].map(|comm| (comm, unsafe { CommFacts::new(comm) }));
    let checker = Checker {
        rank,
        comms: HashMap::from(comms),
        contexts: CollectiveContexts::default(),
        unjudged: Vec::new(),
        windows: Windows::default(),
        types: Datatypes::default(),
        memory: MemoryUses::default(),
        matched: MatchedMessages::default(),
        requests: Requests::default(),
        objects: ObjectRegistry::default(),
        records: RecordsUnderWay::default(),
        findings: Findings::default(),
        operations: 0,
    };
    *CHECKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(checker);
    for comm in [MPI_COMM_WORLD, MPI_COMM_SELF] {
        // SAFETY: all processes of this communicator do so.
        unsafe { collectives::add_context(comm_object(comm), comm) };
    }
}

/// Returns a communicator as an object.
fn comm_object(handle: usize) -> ObjectHandle {
    ObjectHandle { kind: "COMMUNICATOR", handle }
}

/// Runs a call that makes or frees objects, or does neither.
///
/// # Safety
/// As for [`run`].
unsafe fn other(index: usize, call: &CheckedCall<'_>) -> c_int {
    // SAFETY: the caller promises it.
    unsafe {
        let freed = ObjectRegistry::freed(call);
        if let Some(freed) = freed {
            collectives::before_free(index, call);
            before_free(freed);
        }
        let code = forward(index, call.arguments);
        if code == 0 {
            if let Some(freed) = freed {
                with(|checker| checker.objects.remove(freed));
            }
            after(call);
        }
        code
    }
}

/// Forgets an object that the program is about to free.
fn before_free(object: ObjectHandle) {
    let handle = object.handle;
    collectives::remove_context(object);
    match object.kind {
        "DATATYPE" => with(|checker| checker.types.forget(handle)),
        "WINDOW" => {
            let window = with(|checker| checker.windows.remove(handle)).flatten();
            window.into_iter().for_each(windows::release);
            None
        }
        "COMMUNICATOR" => {
            let facts = with(|checker| checker.comms.remove(&handle)).flatten();
            if let Some(mut facts) = facts {
                let leftovers = facts.leftovers();
                with(|checker| {
                    leftovers.into_iter().for_each(|(r, tag)| checker.leftover(&r, tag))
                });
                let mut shadow = facts.shadow;
                // SAFETY: the communicator is ours. All ranks free it, since they free the program's communicator.
                unsafe { mpi!(MPI_Comm_free(&raw mut shadow)) };
            }
            None
        }
        _ => None,
    };
}

/// Adds the objects that a successful call has made.
///
/// # Safety
/// The call has succeeded.
unsafe fn after(call: &CheckedCall<'_>) {
    // SAFETY: the call has succeeded.
    let new = unsafe {
        with(|checker| checker.objects.add(call));
        SHADOWED.contains(&call.function.stem()).then(|| call.result("COMMUNICATOR")).flatten()
    };
    if let Some(comm) = new.filter(|&comm| comm != MPI_COMM_NULL) {
        // SAFETY: all processes of the new communicator are here.
        let facts = unsafe { CommFacts::new(comm) };
        with(|checker| checker.comms.insert(comm, facts));
        // SAFETY: as above.
        unsafe { collectives::add_context(comm_object(comm), comm) };
    }
}

/// Ends the checks, and runs MPI_Finalize.
///
/// # Safety
/// As for [`run`].
unsafe fn finalize(index: usize, call: &CheckedCall<'_>) -> c_int {
    // SAFETY: the caller promises it.
    unsafe { collectives::at_finalize(index, call) };
    let barrier = with(|checker| {
        checker.unfinished();
        checker.comms.get(&MPI_COMM_WORLD).map(|world| world.shadow)
    });
    if let Some(shadow) = barrier.flatten() {
        // SAFETY: the communicator is ours. After the barrier, all messages have been sent.
        unsafe { mpi!(MPI_Barrier(shadow)) };
    }
    with(Checker::leftovers);
    if let Some(shadow) = barrier.flatten() {
        // SAFETY: as above. Now all records have been received.
        unsafe { mpi!(MPI_Barrier(shadow)) };
    }
    let checker = CHECKER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut checker) = checker {
        checker.findings.print_ranks();
        // SAFETY: all processes are here.
        unsafe { crate::shared_reports::end() };
        checker.records.finish();
        HAS_FINDINGS.store(!checker.findings.is_empty(), Ordering::Relaxed);
        for facts in checker.comms.values() {
            let mut shadow = facts.shadow;
            // SAFETY: the communicator is ours, and nothing is under way in it.
            unsafe { mpi!(MPI_Comm_free(&raw mut shadow)) };
        }
        for mut comm in checker.contexts.take_comms() {
            // SAFETY: as above.
            unsafe { mpi!(MPI_Comm_free(&raw mut comm)) };
        }
    }
    // SAFETY: the caller promises it.
    unsafe { forward(index, call.arguments) }
}

impl Checker {
    /// Returns a party of a finding: a call of this rank.
    fn party(&self, call: &CheckedCall<'_>, facts: String) -> Party {
        let function = call.function.name().to_owned();
        Party { rank: Some(self.rank), function, site: call.site, facts }
    }

    /// Returns the record of a call, without signature.
    fn record(&self, index: usize, call: &CheckedCall<'_>) -> CallRecord {
        CallRecord {
            site: call.site,
            function: index as u32,
            rank: self.rank,
            ..CallRecord::default()
        }
    }

    fn next_operation(&mut self) -> u64 {
        self.operations += 1;
        self.operations
    }

    /// Adds findings for all that the program has left at MPI_Finalize.
    fn unfinished(&mut self) {
        for request in self.requests.take() {
            let function = request.function.to_owned();
            let facts = if request.is_active {
                "the request is still active"
            } else {
                "the persistent request is not freed"
            };
            let party = Party {
                rank: Some(self.rank),
                function,
                site: request.site,
                facts: facts.to_owned(),
            };
            self.findings.add(FindingClass::RequestNotCompleted, vec![party]);
        }
        for (origin, count) in self.objects.take_origins() {
            let plural = if count == 1 { "" } else { "s" };
            let facts = format!("{count} {}{plural} not freed", origin.noun);
            let function = origin.function.to_owned();
            let party = Party { rank: Some(self.rank), function, site: origin.site, facts };
            self.findings.add(FindingClass::ObjectNotFreed, vec![party]);
        }
    }

    /// Adds findings for all messages that nobody has received.
    fn leftovers(&mut self) {
        let all: Vec<_> = self.comms.values_mut().flat_map(CommFacts::leftovers).collect();
        all.iter().for_each(|(record, tag)| self.leftover(record, *tag));
    }

    /// Adds a finding for a message that nobody has received.
    fn leftover(&mut self, record: &CallRecord, tag: i64) {
        let facts = format!("to rank {}, tag {tag}, {}", self.rank, record.describe());
        let party = remote_party(record, facts);
        self.findings.add(FindingClass::MessageNotReceived, vec![party]);
    }
}

/// Returns a party of a finding: the call of a record.
fn remote_party(record: &CallRecord, facts: String) -> Party {
    let function = crate::FUNCTIONS.get(record.function as usize);
    let function = function.map_or("?", |function| function.name()).to_owned();
    Party { rank: Some(record.rank), function, site: record.site, facts }
}

/// Gives a process with findings an exit code other than 0.
extern "C" fn at_end() {
    if HAS_FINDINGS.load(Ordering::Relaxed) {
        // SAFETY: `fflush` and `_exit` have no preconditions.
        unsafe {
            libc::fflush(std::ptr::null_mut());
            libc::_exit(EXIT_CODE);
        }
    }
}

/// The loader calls this function after the program's own functions for its end.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = at_end;

/// Returns true for calls that begin an operation which a completion ends.
fn is_request(timing: Timing) -> bool {
    timing != Timing::Blocking
}
