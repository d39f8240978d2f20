//! The checks of a process, and the calls that take part in them.

mod buffer_arguments;
mod call_memory;
mod collectives;
mod completion;
pub mod fast_path;
mod matched;
mod messages;
mod operations;
mod partitioned;
mod starts;
mod waits;
mod window_access;
mod window_compare;
mod window_epochs;
mod windows;

use crate::collective::{CollectiveContexts, ComparisonUnderWay};
use crate::datatype::Datatypes;
use crate::finding::{FindingClass, Party};
use crate::forward;
use crate::function::CheckedCall;
use crate::library::mpi;
use crate::marks::{self, MessageArrival, SignatureMarks};
use crate::memory_use::MemoryUses;
use crate::objects::{ObjectHandle, ObjectRegistry};
use crate::report::{EXIT_CODE, Findings};
use crate::requests::Requests;
use crate::role::{CallRole, Timing};
use crate::shadow::{
    CallRecord, CommFacts, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_NULL, MPI_COMM_SELF,
    MPI_COMM_WORLD, RawStatus,
};
use crate::slow::{self, SlowLedger};
use crate::wait_clock;
use crate::window::{Windows, is_access};
use matched::ProbedMessages;
use partitioned::PartitionedReceives;
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
    marks: SignatureMarks,
    probed: ProbedMessages,
    partitioned: PartitionedReceives,
    requests: Requests,
    objects: ObjectRegistry,
    findings: Findings,
    /// Waits, if the user asks for them.
    slow: Option<SlowLedger>,
    /// Number of operations so far.
    operations: u64,
}

static CHECKER: Mutex<Option<Checker>> = Mutex::new(None);
/// True from MPI_Init to MPI_Finalize.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);
/// True in this time if threads may remember calls. Calls whose waits are counted take the slow path.
static IS_FAST: AtomicBool = AtomicBool::new(false);
/// True if this process has findings and has called MPI_Finalize.
static HAS_FINDINGS: AtomicBool = AtomicBool::new(false);

/// Returns true from MPI_Init to MPI_Finalize.
pub fn is_running() -> bool {
    IS_RUNNING.load(Ordering::Relaxed)
}

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
    let is_running = is_running();
    if is_running {
        windows::before_call(call, role);
        if is_look(role, call.function.stem()) {
            // Ranks that have found a mismatch wait for this rank, and what it looks for may come from them.
            collectives::judge_arrived();
        }
    }
    // SAFETY: the caller promises it, here and below.
    unsafe {
        match role {
            CallRole::Start => {
                let code = forward(index, call.arguments);
                if code == 0 && !crate::library::is_unchecked() {
                    start();
                }
                code
            }
            _ if !is_running => forward(index, call.arguments),
            CallRole::Finalize => finalize(index, call),
            CallRole::Send(timing) => operations::send(index, call, timing),
            CallRole::Receive(timing) => operations::receive(index, call, timing),
            CallRole::PartitionedSend => partitioned::send(index, call),
            CallRole::PartitionedReceive => partitioned::receive(index, call),
            CallRole::MatchedProbe => matched::probe(index, call),
            CallRole::MatchedReceive(timing) => matched::receive(index, call, timing),
            CallRole::SendReceive(timing) => operations::send_receive(index, call, timing),
            CallRole::Collective(timing, common) => {
                collectives::collective(index, call, timing, common)
            }
            CallRole::Complete(completion) => completion::complete(index, call, completion),
            CallRole::StartRequests => starts::start_requests(index, call),
            CallRole::FreeRequest => completion::free(index, call),
            CallRole::Window => match is_access(call.function.stem()) {
                true => window_access::run(index, call),
                false => window_epochs::run(index, call),
            },
            CallRole::Other => other(index, call),
        }
    }
}

/// Returns true for functions with which a program looks for something again and again.
fn is_look(role: CallRole, stem: &str) -> bool {
    // Messages and collective calls need no comparison of names.
    let may_look = matches!(
        role,
        CallRole::Complete(_) | CallRole::MatchedProbe | CallRole::Window | CallRole::Other
    );
    let looks = ["Test", "Iprobe", "Improbe", "Request_get_status", "Win_test", "Parrived"];
    may_look && looks.into_iter().any(|look| stem.starts_with(look))
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
        marks: SignatureMarks::new(),
        probed: ProbedMessages::default(),
        partitioned: PartitionedReceives::default(),
        requests: Requests::default(),
        objects: ObjectRegistry::default(),
        findings: Findings::default(),
        slow: SlowLedger::begin(),
        operations: 0,
    };
    *CHECKER.lock().unwrap_or_else(PoisonError::into_inner) = Some(checker);
    marks::begin();
    IS_RUNNING.store(true, Ordering::Relaxed);
    // Calls from many lines of Python have one return address.
    let has_python = crate::python::begin();
    IS_FAST.store(!wait_clock::is_on() && !has_python, Ordering::Relaxed);
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
        let began = if call.function.stem() == "Probe" { wait_clock::moment() } else { 0 };
        let code = forward(index, call.arguments);
        slow::note_probe(began);
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
        "DATATYPE" => {
            call_memory::forget();
            with(|checker| checker.types.forget(handle))
        }
        "WINDOW" => {
            let window = with(|checker| checker.windows.remove(handle)).flatten();
            window.into_iter().for_each(windows::release);
            None
        }
        "COMMUNICATOR" => {
            call_memory::forget();
            let facts = with(|checker| {
                if checker.marks.comms.contains(&handle) {
                    checker.leftovers(handle);
                }
                checker.marks.forget(handle);
                checker.partitioned.forget(handle);
                checker.comms.remove(&handle)
            });
            if let Some(facts) = facts.flatten() {
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
    let stem = call.function.stem();
    if stem.starts_with("Request_get_status") {
        // SAFETY: the call has succeeded.
        return unsafe { completion::looked_at(call) };
    }
    if stem.starts_with("Comm_idup") {
        // SAFETY: the call has succeeded.
        return unsafe { operations::copy_begins(call) };
    }
    // SAFETY: the call has succeeded.
    let new = unsafe {
        with(|checker| checker.objects.add(call));
        call.result("COMMUNICATOR").filter(|&comm| comm != MPI_COMM_NULL)
    };
    if let Some(comm) = new {
        with(|checker| checker.marks.comms.insert(comm));
        if SHADOWED.contains(&stem) {
            // SAFETY: all processes of the new communicator are here.
            let facts = unsafe { CommFacts::new(comm) };
            with(|checker| checker.comms.insert(comm, facts));
            // SAFETY: all processes of the new communicator are here.
            unsafe { collectives::add_context(comm_object(comm), comm) };
        }
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
    with(|checker| {
        let comms: Vec<usize> = checker.marks.comms.iter().copied().collect();
        comms.into_iter().for_each(|comm| checker.leftovers(comm));
    });
    IS_FAST.store(false, Ordering::Relaxed);
    IS_RUNNING.store(false, Ordering::Relaxed);
    let checker = CHECKER.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(mut checker) = checker {
        checker.findings.print_ranks();
        if let (Some(slow), Some(shadow)) = (checker.slow.take(), barrier.flatten()) {
            // SAFETY: all processes are here.
            unsafe { slow::report(slow, shadow) };
        }
        // SAFETY: all processes are here.
        unsafe { crate::shared_reports::end() };
        HAS_FINDINGS.store(!checker.findings.is_empty(), Ordering::Relaxed);
        for facts in checker.comms.values() {
            let mut shadow = facts.shadow;
            // SAFETY: the communicator is ours, and nothing is under way in it.
            unsafe { mpi!(MPI_Comm_free(&raw mut shadow)) };
        }
        for mut comm in checker.contexts.take_comms() {
            // SAFETY: the communicator is ours, and its comparisons are complete.
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

    /// Adds findings for all messages on a communicator that nobody has received. The messages remain with the library.
    fn leftovers(&mut self, comm: usize) {
        loop {
            let (mut flag, mut status) = (0 as c_int, RawStatus::default());
            let (mut message, to) = (0usize, status.as_mut_ptr());
            // SAFETY: the results are local variables.
            let message = unsafe {
                let (flag, handle) = (&raw mut flag, &raw mut message);
                mpi!(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, flag, handle, to));
                MessageArrival::of_status(comm, to as usize)
            };
            if flag == 0 {
                return;
            }
            if let Some(record) = self.marks.of_message(&message) {
                let MessageArrival { tag, bytes, .. } = message;
                let elements = record.describe(bytes);
                let facts = format!("to rank {}, tag {tag}, {elements}", self.rank);
                let party = remote_party(&record.call(), facts);
                self.findings.add(FindingClass::MessageNotReceived, vec![party]);
            }
        }
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
