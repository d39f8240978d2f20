//! Tool support (MPI 5.0, chapter 15): MPI_Pcontrol of the profiling interface, and the start and end of the tool information
//! interface (MPI_T), which works before MPI_Init and after MPI_Finalize.
//!
//! ```text
//!   control variables       the settings (settings.rs); written before MPI_Init, some also later
//!   performance variables   pvars.rs: counts of the layers below; pvar_handle.rs: the part that a handle measures
//!   categories              a tree by part of the library
//!   events                  none; the only source is the clock
//! ```
//! Functions return errors as the constants with which programs compare them, and call no error handler.

pub(crate) mod categories;
pub(crate) mod category_tree;
pub(crate) mod collective_counts;
pub(crate) mod cvars;
pub(crate) mod enumerations;
pub(crate) mod events;
pub(crate) mod listing;
pub(crate) mod performance;
pub(crate) mod pvar_handle;
pub(crate) mod pvars;
pub(crate) mod strings;

use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::error::Error;
use crate::lock;
use crate::state::{ProcessPhase, state};
use crate::table::HandleTable;
use cvars::CvarHandle;
use performance::Reading;
use std::cell::{Cell, RefCell};
use std::ffi::c_int;

static TOOLS: ChapterState<Tools> = ChapterState::new(Tools {
    users: Cell::new(0),
    in_threads: Cell::new(false),
    controls: RefCell::new(HandleTable::new(13)),
    sessions: RefCell::new(HandleTable::new(14)),
    readings: RefCell::new(HandleTable::new(15)),
});

/// Handles and counts of the tools in this process.
struct Tools {
    /// Number of calls of MPI_T_init_thread without a matching MPI_T_finalize.
    users: Cell<u32>,
    /// True if a thread of a tool may call the tool interface at any time. MPI then keeps its lock.
    in_threads: Cell<bool>,
    controls: RefCell<HandleTable<CvarHandle>>,
    sessions: RefCell<HandleTable<()>>,
    readings: RefCell<HandleTable<Reading>>,
}

/// Returns true if a thread of a tool may call the tool interface at any time.
pub fn in_threads() -> bool {
    TOOLS.in_threads.get()
}

/// MPI_Pcontrol.
/// Does nothing at any level. Profiling libraries define this function.
pub(crate) unsafe fn pcontrol(_level: c_int) -> Result<(), Error> {
    Ok(())
}

/// Returns the tools' state. Fails before MPI_T_init_thread and after MPI_T_finalize.
fn ready() -> Result<&'static Tools, Error> {
    let tools = &*TOOLS;
    if tools.users.get() > 0 {
        return Ok(tools);
    }
    let text = "the tool interface is not initialised: call MPI_T_init_thread first";
    Err(Error::new(MPI_T_ERR_NOT_INITIALIZED, text))
}

#[cold]
fn invalid(text: impl std::fmt::Display) -> Error {
    Error::new(MPI_T_ERR_INVALID, text)
}

fn not_null<T>(pointer: *const T, argument: &str) -> Result<(), Error> {
    if pointer.is_null() {
        Err(invalid(format_args!("argument {argument} is NULL")))
    } else {
        Ok(())
    }
}

/// Checks and returns an index in a list of `len` entries.
fn index(value: c_int, len: usize, argument: &str, of: &str) -> Result<usize, Error> {
    if let Ok(index) = usize::try_from(value)
        && index < len
    {
        return Ok(index);
    }
    let range = match len {
        0 => format!("there are no {of}"),
        _ => format!("{of} are 0 to {}", len - 1),
    };
    let text = format!("argument {argument} = {value}: {range}");
    Err(Error::new(MPI_T_ERR_INVALID_INDEX, text))
}

fn bad_handle(argument: &str, handle: usize, what: &str) -> Error {
    let text = format!("argument {argument} = {handle:#x} is null, freed, or never was a {what}");
    Error::new(MPI_T_ERR_INVALID_HANDLE, text)
}

/// Returns the level of thread support for a tool that wants `required`.
///
/// The tool interface reads data that messages change, so calls of MPI must not overlap. Either the lock prevents an overlap, or
/// the program promises that there is none. Before MPI is initialised, the lock exists and can be kept. While MPI runs without the
/// lock, the lock cannot be introduced.
fn provide(required: c_int) -> c_int {
    let levels = [MPI_THREAD_SINGLE, MPI_THREAD_FUNNELED, MPI_THREAD_SERIALIZED];
    if let Some(level) = levels.into_iter().find(|&level| level >= required) {
        return level;
    }
    if state().phase.get() == ProcessPhase::Finalized {
        lock::share();
    }
    TOOLS.in_threads.set(lock::shared());
    if lock::shared() { MPI_THREAD_MULTIPLE } else { MPI_THREAD_SERIALIZED }
}

/// MPI_T_init_thread.
pub(crate) unsafe fn t_init_thread(required: c_int, provided: *mut c_int) -> Result<(), Error> {
    not_null(provided, "provided")?;
    let users = &TOOLS.users;
    let more = users.get().checked_add(1).ok_or_else(|| {
        Error::new(MPI_T_ERR_CANNOT_INIT, "initialised 4294967295 times without an end")
    })?;
    users.set(more);
    // SAFETY: `provided` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { provided.write(provide(required)) };
    Ok(())
}

/// MPI_T_finalize.
pub(crate) unsafe fn t_finalize() -> Result<(), Error> {
    let tools = ready()?;
    tools.users.set(tools.users.get() - 1);
    if tools.users.get() == 0 {
        clear(&mut tools.controls.borrow_mut());
        clear(&mut tools.sessions.borrow_mut());
        clear(&mut tools.readings.borrow_mut());
    }
    Ok(())
}

/// Removes all handles, so that a later use of a handle is an error.
fn clear<T>(table: &mut HandleTable<T>) {
    for handle in table.handles() {
        table.remove(handle);
    }
}
