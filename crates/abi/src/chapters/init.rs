//! Initialization and finalization (MPI 5.0, chapter 11).

use crate::arguments::{comm, comm_label, store};
use crate::chapters::spawning;
use crate::constants::*;
use crate::engine::{CommObject, Engine, JobFabric};
use crate::error::Error;
use crate::forks::mind_forks;
use crate::memory_left::memory_left;
use crate::progress::{ProgressDesign, ProgressSettings};
use crate::settings::runtime_change;
use crate::state::{ProcessPhase, ProcessState, running, state};
use crate::types::Comm;
use crate::waiting::WaitingCall;
use crate::{helper_thread, lanes, links, lock, network, settings};
use std::ffi::{c_char, c_int};
use std::rc::Rc;
use weft_bootstrap::Fingerprint;
use weft_bootstrap::calls::Occupied;
use weft_bootstrap::limits;
use weft_channel::multicast::Repair;
use weft_fabric::Fabric;
use weft_fabric::wait::{Affinity, WaitPolicy};
use weft_fabric_shm::Shm;
use weft_job_fabric::ConnectFailure;
use weft_p2p::ProtocolLimits;

/// MPI_Init.
pub(crate) unsafe fn init(_argc: *mut c_int, _argv: *mut *mut *mut c_char) -> Result<(), Error> {
    start(MPI_THREAD_SINGLE).map(|_| ())
}

/// MPI_Init_thread.
pub(crate) unsafe fn init_thread(
    _argc: *mut c_int,
    _argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> Result<(), Error> {
    let levels =
        [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE];
    // A number that is not a level requests the next higher level.
    let level = levels.into_iter().find(|&l| l >= required).unwrap_or(MPI_THREAD_MULTIPLE);
    let level = start(level)?;
    // SAFETY: `provided` points to room for the result, as MPI requires of the program.
    unsafe { store(provided, level, "provided") }
}

fn start(level: c_int) -> Result<c_int, Error> {
    let state = state();
    match state.world_phase.get() {
        ProcessPhase::Before if state.phase.get() != ProcessPhase::Forked => {}
        ProcessPhase::Running => return Err(Error::new(MPI_ERR_OTHER, "called twice")),
        _ => return Err(Error::new(MPI_ERR_OTHER, "called after MPI_Finalize, or after a fork")),
    }
    let parent = spawning::parent_port();
    let level = begin(state, level)?;
    // A program that a spawned process starts has the same environment, but no parents.
    let launched = state.bootstrap.borrow().as_ref().is_some_and(|job| job.app_number().is_some());
    let engine = state.engine.get().expect("it has begun");
    let set = |comm: Rc<CommObject>| {
        comm.errhandler.set(state.initial_errhandler.get());
        comm.select(state.selection.borrow().clone());
        comm
    };
    state.world.get_or_init(|| set(CommObject::world(engine)));
    state.comm_self.get_or_init(|| set(CommObject::myself(engine)));
    state.main_thread.set(Some(std::thread::current().id()));
    state.thread_level.set(level);
    if let Some(port) = parent
        && let Some(world) = state.world.get()
        && launched
    {
        spawning::join_parents(world, port)?;
    }
    state.world_phase.set(ProcessPhase::Running);
    Ok(level)
}

/// Starts the engine for MPI_Session_init. Returns the thread level that is provided.
pub fn begin_session(level: c_int) -> Result<c_int, Error> {
    let state = state();
    if state.phase.get() == ProcessPhase::Finalized {
        return Err(Error::new(
            MPI_ERR_OTHER,
            "the process has left the job with MPI_Finalize: keep a session open, or finalize last",
        ));
    }
    let level = begin(state, level)?;
    if state.world_phase.get() == ProcessPhase::Before {
        state.thread_level.set(level.max(state.thread_level.get()));
        // If the program does not call MPI_Finalize, the end of the process leaves the job.
        // SAFETY: `leave_at_exit` is a function of the library, which is not unloaded while the process runs.
        static LAST: std::sync::Once = std::sync::Once::new();
        LAST.call_once(|| {
            // SAFETY: `leave_at_exit` is a function of the library, which is not unloaded while the process runs.
            unsafe { libc::atexit(leave_at_exit) };
        });
    }
    Ok(level)
}

/// Ends the library's use of the job in MPI_Session_finalize, if this was the last session.
pub fn end_session() -> Result<(), Error> {
    let state = state();
    if !state.sessions.borrow().handles().is_empty() {
        return Ok(());
    }
    match state.world_phase.get() {
        ProcessPhase::Before => state.phase.set(ProcessPhase::Resting),
        ProcessPhase::Finalized => {
            leave(state, &WaitingCall::new("MPI_Session_finalize"), Departure::Single)?
        }
        _ => {}
    }
    Ok(())
}

extern "C" fn leave_at_exit() {
    let _entered = lock::enter();
    let state = state();
    if state.phase.get() == ProcessPhase::Resting
        && let Err(error) =
            leave(state, &WaitingCall::new("the end of the process"), Departure::Together)
    {
        eprintln!("weft: leaving the job: {}", error.text());
    }
}

/// Returns the thread level that the job's fabric permits. In virtual time a rank has one clock, so one thread at a time may call.
fn allowed_level(state: &ProcessState, level: c_int) -> c_int {
    let client = state.engine.get().and_then(|engine| engine.endpoint().fabric().sim_client());
    if level != MPI_THREAD_MULTIPLE || client.is_none() {
        return level;
    }
    if state.engine.get().is_some_and(|engine| engine.rank() == 0) {
        crate::progress::say(
            "virtual time: one thread at a time may call MPI (MPI_THREAD_SERIALIZED)",
        );
    }
    MPI_THREAD_SERIALIZED
}

/// Starts the engine for calls of this thread level, if it does not run yet. Returns the level that is provided.
fn begin(state: &ProcessState, level: c_int) -> Result<c_int, Error> {
    match state.phase.get() {
        ProcessPhase::Before => {}
        ProcessPhase::Running | ProcessPhase::Resting => {
            state.phase.set(ProcessPhase::Running);
            let shared = lock::shared() || (level != MPI_THREAD_SINGLE && lock::share());
            return Ok(if shared { level } else { level.min(MPI_THREAD_SERIALIZED) });
        }
        ProcessPhase::Finalized | ProcessPhase::Forked => return running().map(|_| level),
    }
    connect(state, level).map_err(|failure| match failure {
        ConnectFailure::Here(text) => Error::new(MPI_ERR_OTHER, text),
        ConnectFailure::Peer(text) => Error::new(MPI_ERR_PROC_ABORTED, text),
    })?;
    state.phase.set(ProcessPhase::Running);
    mind_forks();
    let level = allowed_level(state, level);
    if let Some(report) = &*state.report.borrow() {
        report.phase(weft_bootstrap::Phase::Running);
    }
    if level == MPI_THREAD_SINGLE && !crate::chapters::tools::in_threads() {
        lock::alone();
    }
    start_helper(state)?;
    if let Some(engine) = state.engine.get()
        && level == MPI_THREAD_MULTIPLE
        && lock::shared()
    {
        // The setting was checked when the process joined the job.
        let shared = settings::choice("WEFT_PLACES").is_ok_and(|places| places != 0);
        let shm = engine.endpoint().fabric().shm().filter(|_| shared);
        lanes::begin(engine, shm.and_then(Shm::own_processors));
    }
    lock::favour();
    Ok(level)
}

/// Starts the helper thread if `WEFT_PROGRESS` asks for it. The setting was checked when the process joined the job.
fn start_helper(state: &ProcessState) -> Result<(), Error> {
    let wrong = |text| Error::new(MPI_ERR_OTHER, text);
    let progress = ProgressSettings::read().map_err(wrong)?;
    match progress.design {
        ProgressDesign::None => {}
        ProgressDesign::Auto => {
            let start = move || {
                if let Err(e) = helper_thread::start(progress) {
                    eprintln!(
                        "weft: starting the helper thread: {}: messages move on only inside MPI calls",
                        limits::explain(&e)
                    );
                }
            };
            if let Some(engine) = state.engine.get() {
                if ProgressSettings::overlaps(engine.endpoint().fabric()) {
                    engine.overlap_by_helper();
                }
                engine.helped_by(start);
            }
        }
        _ => helper_thread::start(progress).map_err(|e| {
            wrong(format!(
                "WEFT_PROGRESS: starting the helper thread: {}; or set WEFT_PROGRESS=none",
                limits::explain(&e)
            ))
        })?,
    }
    Ok(())
}

/// Joins the job and builds the engine.
fn connect(state: &ProcessState, level: c_int) -> Result<(), ConnectFailure> {
    // If the program has closed its standard input, output or error, the library's own descriptors must not get the closed
    // descriptor's number.
    let _occupied = Occupied::standard();
    let mut limits = ProgressSettings::read()?.limits(ProtocolLimits {
        eager: settings::number("WEFT_EAGER")? as usize,
        eager_fixed: settings::is_given("WEFT_EAGER"),
        credit: settings::number("WEFT_CREDIT")?,
        staging: settings::number("WEFT_STAGING")? as usize,
        protocol: settings::protocol()?,
        ..ProtocolLimits::default()
    })?;
    let mut selection = crate::selection::selection()?;
    settings::say_refused();
    settings::publish();
    *state.bootstrap.borrow_mut() = None;
    let mut bootstrap = weft_bootstrap::from_environment().map_err(|e| e.to_string())?;
    let (rank, nodes) = (bootstrap.rank(), bootstrap.nodes());
    let connected = settings::agreement::compare(&mut *bootstrap)
        .and_then(|()| network::job_fabric(lanes_wanted(level)?))
        .map_err(ConnectFailure::from)
        .and_then(|options| JobFabric::connect(&mut *bootstrap, options));
    let node = match connected {
        Ok(node) => node,
        Err(why) => {
            // All ranks have this error. If the job ends because of the error, the launcher reports it only once.
            *state.bootstrap.borrow_mut() = Some(bootstrap);
            let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
            return Err(why.map(|why| format!("rank {rank} on {}: {why}", host.trim())));
        }
    };
    if settings::number("WEFT_VERBOSE")? != 0
        && nodes.iter().position(|&n| n == nodes[rank]) == Some(rank)
    {
        for line in node.describe() {
            eprintln!("weft: rank {rank}: {line}");
        }
    }
    let all: Vec<u32> = (0..nodes.len() as u32).collect();
    // Processes of other jobs may connect later, and perhaps cannot share memory with this job.
    let same_node = weft_collective::share_memory(&node, &all) && node.linkable().is_none();
    let own = nodes[rank];
    crate::memory_left::share_among(nodes.iter().filter(|&&node| node == own).count());
    crate::selection::usual_maps(&mut selection, &node, same_node)?;
    let mut policy = node.policy();
    runtime_change::spin(&policy)?;
    let shared = settings::choice("WEFT_PLACES")? != 0;
    let shm = node.shm().filter(|_| shared && !policy.fits());
    policy.home = shm.and_then(Shm::own_processors).map(Affinity::new);
    limits.ranks_each = ranks_each(&node, &policy);
    limits.turns = Some(&crate::lanes::TURNS);
    limits.far_credit = match settings::is_given("WEFT_CREDIT") {
        true => limits.credit,
        false => weft_p2p::far_credit(nodes.len()),
    };
    let engine = Engine::new(node, policy, limits);
    runtime_change::rails(&engine)?;
    runtime_change::streams(&engine)?;
    runtime_change::caches(&engine)?;
    bound(state, &engine)?;
    // In virtual time the same program gives the same times. A choice by measured times would depend on earlier calls.
    let simulated = engine.endpoint().fabric().sim_client().is_some();
    if settings::number("WEFT_LEARN")? != 0 && !simulated {
        engine.learn();
    }
    engine.endpoint().set_multicast_limits(weft_channel::multicast::MulticastLimits {
        repair: [Repair::Unicast, Repair::Multicast][settings::choice("WEFT_MULTICAST_REPAIR")?],
        ..Default::default()
    });
    *state.selection.borrow_mut() = std::rc::Rc::new(selection);
    // The number is the same on all processes of the job, even if their processors differ.
    engine.set_job(weft_bootstrap::hash(bootstrap.job()), Fingerprint::arithmetic_hash());
    let copies = engine.endpoint().fabric().copies().model().words();
    engine.set_copies(weft_bootstrap::hash(&format!("{copies:?}")));
    *state.report.borrow_mut() = bootstrap.report();
    *state.bootstrap.borrow_mut() = Some(bootstrap);
    settings::fix();
    state.engine.set(engine).map_err(|_| "initialised twice".to_owned())?;
    Ok(())
}

/// Returns the number of ranks that take turns on a processor. In virtual time each rank has a simulated processor of its own, whatever
/// processors its processes share.
fn ranks_each(node: &JobFabric, policy: &WaitPolicy) -> u32 {
    if node.sim_client().is_some() { 1 } else { policy.ranks_each() }
}

/// Returns the number of lanes that this process can use, including lane 0, at a thread level.
fn lanes_wanted(level: c_int) -> Result<usize, String> {
    let design = ProgressSettings::read()?.design;
    let helped = !matches!(design, ProgressDesign::None | ProgressDesign::Auto);
    if level != MPI_THREAD_MULTIPLE || helped {
        return Ok(1);
    }
    Ok(1 + settings::number("WEFT_LANES")? as usize)
}

/// Limits the number of objects of each kind, and the resources of a new communicator.
fn bound(state: &ProcessState, engine: &Engine) -> Result<(), String> {
    let most = settings::number("WEFT_OBJECTS")? as usize;
    state.sessions.borrow_mut().set_most(most);
    state.comms.borrow_mut().set_most(most);
    state.wins.borrow_mut().set_most(most);
    state.files.borrow_mut().set_most(most);
    state.groups.borrow_mut().set_most(most);
    state.types.borrow_mut().set_most(most);
    state.ops.borrow_mut().set_most(most);
    state.infos.borrow_mut().set_most(most);
    state.errhandlers.borrow_mut().set_most(most);
    state.requests.borrow_mut().set_most(most);
    state.messages.borrow_mut().set_most(most);
    // A window has a communicator, too. Both limits are checked when the communicator is made.
    engine.set_room(|| {
        let state = crate::state::state();
        let rooms = state.comms.borrow_mut().room().and_then(|()| state.wins.borrow_mut().room());
        rooms.map_err(|full| weft_process::Error::new(MPI_ERR_NO_MEM, full.0))
    });
    let given = settings::maybe("WEFT_SHARED_COMMS")?;
    engine
        .set_shm_comm_limit(given.unwrap_or_else(|| (memory_left() / 8 / ROOMY).max(16)) as usize);
    Ok(())
}

/// Number of bytes that ranks share for a communicator whose collective operations use all kinds of shared memory.
const ROOMY: u64 = 720 << 10;

/// Returns the node of each rank: the host, or the simulated node of a job in virtual time.
pub fn nodes() -> Vec<usize> {
    if let Some(engine) = state().engine.get()
        && let Some(client) = engine.endpoint().fabric().sim_client()
    {
        return (0..engine.endpoint().fabric().size()).map(|rank| client.node_of(rank)).collect();
    }
    state().bootstrap.borrow().as_ref().map_or_else(Vec::new, |b| b.nodes().to_vec())
}

/// MPI_Finalize.
pub(crate) unsafe fn finalize() -> Result<(), Error> {
    if state().phase.get() == ProcessPhase::Forked {
        // In a forked child, MPI_Finalize does nothing, because an exit handler of the child may call it.
        return Ok(());
    }
    let state = running()?;
    if state.world_phase.get() != ProcessPhase::Running {
        return Err(Error::new(MPI_ERR_OTHER, "called without MPI_Init, or twice"));
    }
    if let Some(report) = &*state.report.borrow() {
        // The phase is reported first. If finalization fails, the launcher then knows that the program has called MPI_Finalize.
        report.phase(weft_bootstrap::Phase::Finalizing);
    }
    // Attributes of MPI_COMM_SELF are deleted first (MPI 5.0, section 11.2.4).
    crate::chapters::communicators::delete_all_attributes(MPI_COMM_SELF)?;
    crate::chapters::communicators::delete_all_attributes(MPI_COMM_WORLD)?;
    let call = WaitingCall::new("MPI_Finalize");
    crate::chapters::buffered::drain(&call)?;
    state.world_phase.set(ProcessPhase::Finalized);
    if state.sessions.borrow().handles().is_empty() {
        return leave(state, &call, Departure::Together);
    }
    // Sessions are still open. The processes leave the job when their last session ends.
    if let (Some(engine), Some(world)) = (state.engine.get(), state.world.get()) {
        engine.block_on(&call, world.barrier())?;
    }
    Ok(())
}

/// Kind of departure from a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Departure {
    /// All processes of the job leave at the same point.
    Together,
    /// Each process leaves when its last session ends.
    Single,
}

/// Leaves the job.
fn leave(state: &ProcessState, call: &WaitingCall, departure: Departure) -> Result<(), Error> {
    if let Some(report) = &*state.report.borrow() {
        report.phase(weft_bootstrap::Phase::Finalizing);
    }
    crate::chapters::buffered::drain(call)?;
    if let Some(engine) = state.engine.get() {
        let world = state.world.get_or_init(|| CommObject::world(engine));
        if departure == Departure::Together {
            engine.block_on(call, world.barrier())?;
            crate::chapters::communicators::close_all(call)?;
            links::leave_all(engine, call)?;
        }
        // Delayed messages, such as the last message of the barrier, must leave before the process ends.
        let fabric = engine.endpoint().fabric();
        engine.drive(call, || (fabric.idle() && lanes::idle()).then_some(()));
        // No process waits for later messages of this process. A peer that is lost now has ended.
        fabric.announce_end();
        engine.drive(call, || (fabric.has_ended() || fabric.fault().is_some()).then_some(()));
    }
    if let Some(world) = state.world.get().filter(|world| world.rank() == 0)
        && settings::number("WEFT_VERBOSE").is_ok_and(|verbose| verbose != 0)
    {
        for line in world.learned() {
            eprintln!("weft: MPI_COMM_WORLD: {line}");
        }
    }
    drop(state.file_threads.borrow_mut().take());
    helper_thread::stop();
    lanes::drop_freed();
    lanes::end();
    state.phase.set(ProcessPhase::Finalized);
    if let Some(report) = &*state.report.borrow() {
        report.phase(weft_bootstrap::Phase::Finalized);
    }
    if let Some(bootstrap) = &mut *state.bootstrap.borrow_mut() {
        bootstrap.finalized().map_err(|e| Error::new(MPI_ERR_OTHER, e))?;
    }
    Ok(())
}

/// MPI_Initialized.
pub(crate) unsafe fn initialized(flag: *mut c_int) -> Result<(), Error> {
    // A forked child gets the same answer as its parent.
    let yes = state().world_phase.get() != ProcessPhase::Before;
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, c_int::from(yes), "flag") }
}

/// MPI_Finalized.
pub(crate) unsafe fn finalized(flag: *mut c_int) -> Result<(), Error> {
    // In a forked child the flag is true, so that exit handlers do not call MPI.
    let state = state();
    let yes = state.world_phase.get() == ProcessPhase::Finalized
        || state.phase.get() == ProcessPhase::Forked;
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, c_int::from(yes), "flag") }
}

/// MPI_Query_thread.
pub(crate) unsafe fn query_thread(provided: *mut c_int) -> Result<(), Error> {
    let level = running()?.thread_level.get();
    // SAFETY: `provided` points to room for the result, as MPI requires of the program.
    unsafe { store(provided, level, "provided") }
}

/// MPI_Is_thread_main.
pub(crate) unsafe fn is_thread_main(flag: *mut c_int) -> Result<(), Error> {
    let main = running()?.main_thread.get() == Some(std::thread::current().id());
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, c_int::from(main), "flag") }
}

/// MPI_Abort.
pub(crate) unsafe fn abort(handle: Comm, errorcode: c_int) -> Result<(), Error> {
    // The complete job ends, even if the communicator has only some of the job's processes. This is the strictest reading of
    // section 9.8.
    let on = comm(handle).map_or_else(|_| String::new(), |c| format!(" on {}", comm_label(&c)));
    // The message describes the error code of a failure in words. The exit code is the class of the error.
    let class = crate::error_details::class(errorcode);
    let words = class.and_then(|_| crate::codes::description(errorcode));
    let words = words.map_or_else(String::new, |words| format!(": {}", words.display()));
    let code = class.unwrap_or(errorcode);
    crate::job_end::die(code, &format!("MPI_Abort with code {code}{on}{words}"))
}
