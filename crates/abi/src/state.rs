//! Global state of the library: this process's objects, and its engine from the initialization on.

use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::engine::{CommObject, Engine};
use crate::error::Error;
use crate::objects::*;
use crate::table::HandleTable;
use crate::types::{Comm, Datatype};
use std::cell::{Cell, OnceCell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use std::sync::OnceLock;
use weft_bootstrap::{Bootstrap, Report};
use weft_collective::Selection;
use weft_datatype::Predefined;
use weft_process::{Group, Info};

/// Phase of the process. The engine serves both the world of MPI_Init and sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProcessPhase {
    /// MPI is not initialised.
    Before,
    /// The process may communicate.
    Running,
    /// All sessions are finalized, and MPI_Init was not called. Another session may begin. Otherwise the process leaves the job
    /// when it ends.
    Resting,
    /// MPI_Finalize is complete.
    Finalized,
    /// The process is a child that was forked while its parent used MPI. The parent remains the rank.
    Forked,
}

/// Objects of the process. Only the thread that holds [`crate::lock`] uses them.
pub struct ProcessState {
    /// Phase of the process.
    pub phase: Cell<ProcessPhase>,
    /// Phase without regard to sessions: before MPI_Init, running, or after MPI_Finalize.
    pub world_phase: Cell<ProcessPhase>,
    /// Provided thread level, MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE.
    pub thread_level: Cell<i32>,
    /// The thread that initialised MPI.
    pub main_thread: Cell<Option<std::thread::ThreadId>>,
    /// Rank, size and nodes from the launcher. `None` before the engine starts.
    pub bootstrap: RefCell<Option<Box<dyn Bootstrap>>>,
    /// Status of this rank for the hang report, if the launcher gave memory for it.
    pub report: RefCell<Option<Report>>,
    /// The engine, which does all communication. There is one per process.
    pub engine: OnceCell<Rc<Engine>>,
    /// MPI_COMM_WORLD.
    pub world: OnceCell<Rc<CommObject>>,
    /// MPI_COMM_SELF.
    pub comm_self: OnceCell<Rc<CommObject>>,
    /// Sessions by handle.
    pub sessions: RefCell<HandleTable<Rc<SessionObject>>>,
    /// The algorithms that the settings name.
    pub selection: RefCell<Rc<Selection>>,
    /// Communicators by handle, except the predefined communicators.
    pub comms: RefCell<HandleTable<Rc<CommObject>>>,
    /// Windows by handle.
    pub wins: RefCell<HandleTable<Rc<WinObject>>>,
    /// Files by handle.
    pub files: RefCell<HandleTable<Rc<FileObject>>>,
    /// Threads that read and write files in the background. Empty until a file is opened.
    pub file_threads: RefCell<Option<Rc<weft_io::IoPool<crate::engine::JobFabric>>>>,
    /// Tasks of communicators that were freed, but that other ranks may still use.
    pub closing: RefCell<Vec<weft_process::NonblockingTask>>,
    /// Groups by handle.
    pub groups: RefCell<HandleTable<Group>>,
    /// Datatypes by handle, except the predefined datatypes.
    pub types: RefCell<HandleTable<Rc<TypeObject>>>,
    /// Predefined datatypes by handle minus 0x200.
    pub predefined_types: Vec<Option<Rc<TypeObject>>>,
    /// Sizes in bytes of the predefined datatypes without gaps in memory, and 0 for the other predefined datatypes. They never change
    /// while there are lanes, so threads that hold only the lock of a lane read them, too. All are 0 in the checking mode.
    pub plain_sizes: [Cell<u8>; 0x100],
    /// Operators of the program by handle.
    pub ops: RefCell<HandleTable<Rc<OpObject>>>,
    /// Info objects by handle.
    pub infos: RefCell<HandleTable<Info>>,
    /// Error handlers of the program by handle.
    pub errhandlers: RefCell<HandleTable<ErrhandlerObject>>,
    /// Requests by handle, with [`SENT`].
    pub requests: RefCell<HandleTable<RequestObject>>,
    /// Number of examinations of requests in arrays. A request that is examined again counts again.
    pub looked: Cell<u64>,
    /// Matched messages by handle.
    pub messages: RefCell<HandleTable<MessageObject>>,
    /// Error handler of MPI_COMM_SELF before that communicator exists.
    pub initial_errhandler: Cell<usize>,
    /// Error handler of MPI_FILE_NULL, which files have when they are opened.
    pub file_errhandler: Cell<usize>,
    /// True if the program has set MPI_COMM_SELF's error handler.
    pub self_hears: Cell<bool>,
}

static GLOBAL: OnceLock<ChapterState<ProcessState>> = OnceLock::new();

/// Returns the objects of the process.
#[inline]
pub fn state() -> &'static ProcessState {
    GLOBAL.get_or_init(|| ChapterState::new(ProcessState::new()))
}

/// Returns the objects of the process, if an earlier call has created them. This is enough for a call that cannot be the first.
#[inline(always)]
pub fn known() -> Option<&'static ProcessState> {
    GLOBAL.get().map(Deref::deref)
}

impl ProcessState {
    /// Returns all communicators that have a handle.
    pub fn all_comms(&self) -> Vec<Rc<CommObject>> {
        let mut all: Vec<_> = self.comms.borrow().values().cloned().collect();
        all.extend(
            [&self.world, &self.comm_self].into_iter().filter_map(|comm| comm.get().cloned()),
        );
        all
    }

    /// Returns the handle of a communicator, if it still has a handle.
    pub fn handle_of(&self, comm: &CommObject) -> Option<Comm> {
        for (fixed, handle) in [(&self.world, MPI_COMM_WORLD), (&self.comm_self, MPI_COMM_SELF)] {
            if fixed.get().is_some_and(|c| c.id() == comm.id()) {
                return Some(handle);
            }
        }
        let comms = self.comms.borrow();
        let is_it = |&h: &usize| comms.get(h).is_some_and(|c| c.id() == comm.id());
        comms.handles().into_iter().find(is_it).map(Comm)
    }

    fn new() -> ProcessState {
        let predefined = Predefined::new();
        let make = |offset: usize| {
            let handle = MPI_DATATYPE_NULL.0 + offset;
            let ty = predefined.get(handle as u32)?.clone();
            Some(Rc::new(TypeObject {
                ty,
                handle: Cell::new(Datatype(handle)),
                predefined: true,
                attributes: RefCell::default(),
            }))
        };
        let predefined_types: Vec<_> = (0..0x100).map(make).collect();
        let plain_size = |i: usize| match &predefined_types[i] {
            Some(object) if object.ty.contiguous() => object.ty.size() as u8,
            _ => 0,
        };
        let mut requests = HandleTable::new(7);
        let sent = requests.insert_permanent(RequestObject::sent());
        assert_eq!(sent, SENT.0, "the handle of sends that are over");
        ProcessState {
            plain_sizes: std::array::from_fn(|i| Cell::new(plain_size(i))),
            phase: Cell::new(ProcessPhase::Before),
            world_phase: Cell::new(ProcessPhase::Before),
            sessions: RefCell::new(HandleTable::new(9)),
            selection: RefCell::default(),
            closing: RefCell::default(),
            thread_level: Cell::new(MPI_THREAD_SINGLE),
            main_thread: Cell::new(None),
            bootstrap: RefCell::new(None),
            report: RefCell::new(None),
            engine: OnceCell::new(),
            world: OnceCell::new(),
            comm_self: OnceCell::new(),
            comms: RefCell::new(HandleTable::new(1)),
            wins: RefCell::new(HandleTable::new(10)),
            files: RefCell::new(HandleTable::new(11)),
            file_threads: RefCell::default(),
            groups: RefCell::new(HandleTable::new(2)),
            types: RefCell::new(HandleTable::new(3)),
            predefined_types,
            ops: RefCell::new(HandleTable::new(4)),
            infos: RefCell::new(HandleTable::new(5)),
            errhandlers: RefCell::new(HandleTable::new(6)),
            requests: RefCell::new(requests),
            looked: Cell::new(0),
            messages: RefCell::new(HandleTable::new(8)),
            initial_errhandler: Cell::new(MPI_ERRORS_ARE_FATAL.0),
            file_errhandler: Cell::new(MPI_ERRORS_RETURN.0),
            self_hears: Cell::new(false),
        }
    }
}

/// Returns the objects of a process that may communicate: initialised, not finalized, not a forked child.
#[inline]
pub fn running() -> Result<&'static ProcessState, Error> {
    let state = state();
    if state.phase.get() == ProcessPhase::Running { Ok(state) } else { Err(not_running(state)) }
}

#[cold]
fn not_running(state: &ProcessState) -> Error {
    match state.phase.get() {
        ProcessPhase::Before => Error::new(MPI_ERR_OTHER, "called before MPI_Init"),
        ProcessPhase::Resting => {
            Error::new(MPI_ERR_OTHER, "called after the last MPI_Session_finalize")
        }
        ProcessPhase::Forked => Error::new(
            MPI_ERR_OTHER,
            "called in a process that was forked after MPI_Init: only its parent may call MPI, but \
             it may start other programs (exec)",
        ),
        _ => Error::new(MPI_ERR_OTHER, "called after MPI_Finalize"),
    }
}

/// Returns the engine of a running process.
#[inline]
pub fn engine() -> Result<&'static Rc<Engine>, Error> {
    running()?.engine.get().ok_or_else(|| Error::new(MPI_ERR_INTERN, "no engine"))
}
