//! Sessions (MPI 5.0, section 11.3): MPI without MPI_Init, groups of the processes in named process sets, and communicators
//! made of groups.
//!
//! The engine starts with the first call of MPI_Init or MPI_Session_init, and serves the world and all sessions.

use crate::arguments::{group, not_null, optional_info, session, store, store_new, string, text};
use crate::chapters::communicators::{give_hints, keep_in};
use crate::chapters::connecting;
use crate::chapters::errors::check_errhandler;
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::{Error, Owner};
use crate::objects::{HandlerKind, SessionObject};
use crate::state::{engine, state};
use crate::types::{Comm, Errhandler, Group, Info, Session};
use crate::waiting::WaitingCall;
use std::cell::Cell;
use std::ffi::{OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use weft_fabric::Fabric;

/// Names of the levels of thread support in info objects.
pub const LEVELS: [(&str, c_int); 4] = [
    ("MPI_THREAD_SINGLE", MPI_THREAD_SINGLE),
    ("MPI_THREAD_FUNNELED", MPI_THREAD_FUNNELED),
    ("MPI_THREAD_SERIALIZED", MPI_THREAD_SERIALIZED),
    ("MPI_THREAD_MULTIPLE", MPI_THREAD_MULTIPLE),
];

/// Returns the thread level that an info object asks for. The default is MPI_THREAD_MULTIPLE.
fn level(info: Option<&weft_process::Info>) -> Result<c_int, Error> {
    let Some(asked) = info.and_then(|info| info.get("thread_level")) else {
        return Ok(MPI_THREAD_MULTIPLE);
    };
    LEVELS.iter().find(|(word, _)| *word == asked).map(|&(_, level)| level).ok_or_else(|| {
        let words = LEVELS.map(|(word, _)| word).join(", ");
        let text = format!("info key thread_level = {asked}: one of {words}");
        Error::new(MPI_ERR_INFO_VALUE, text)
    })
}

/// Calls `make`, which makes an object with the error handler `errhandler`. An error of `make` goes to the same error handler.
fn heard_by(
    errhandler: Errhandler,
    kind: HandlerKind,
    make: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    check_errhandler(errhandler, kind)?;
    make().map_err(|error| error.on(Owner::Handler(errhandler)))
}

/// MPI_Session_init.
pub(crate) unsafe fn session_init(
    info: Info,
    errhandler: Errhandler,
    to: *mut Session,
) -> Result<(), Error> {
    heard_by(errhandler, HandlerKind::Session, || {
        not_null(to, "session")?;
        let hints = optional_info(info)?;
        let asked = level(hints.as_ref())?;
        state().sessions.borrow_mut().room()?;
        let level = crate::chapters::init::begin_session(asked)?;
        let object = Rc::new(SessionObject {
            errhandler: Cell::new(errhandler.0),
            thread_level: level,
            buffer: Default::default(),
        });
        let handle = state().sessions.borrow_mut().insert(object);
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { store(to, Session(handle), "session") }
    })
}

/// MPI_Session_finalize.
pub(crate) unsafe fn session_finalize(handle: *mut Session) -> Result<(), Error> {
    not_null(handle, "session")?;
    // SAFETY: `handle` is not NULL, so it points to a value, as MPI requires of the program.
    let value = unsafe { *handle };
    let errhandler = Errhandler(session(value)?.errhandler.get());
    state().sessions.borrow_mut().remove(value.0);
    crate::chapters::init::end_session().map_err(|e| e.on(Owner::Handler(errhandler)))?;
    // SAFETY: `handle` points to room for the result, as MPI requires of the program.
    unsafe { store(handle, MPI_SESSION_NULL, "session") }
}

/// MPI_Session_get_info.
pub(crate) unsafe fn session_get_info(handle: Session, info_used: *mut Info) -> Result<(), Error> {
    let object = session(handle)?;
    let mut info = weft_process::Info::default();
    if let Some((word, _)) = LEVELS.iter().find(|(_, level)| *level == object.thread_level) {
        info.set("thread_level", word);
    }
    info.set("mpi_memory_alloc_kinds", "system,mpi");
    // SAFETY: `info_used` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, info, Info, info_used, "info_used") }
}

// ---- process sets -------------------------------------------------------------------------------

/// Process sets that every process knows: all processes, the process itself, and the processes of its node.
const SETS: [&str; 3] = ["mpi://WORLD", "mpi://SELF", "weft://NODE"];

/// Returns the members of a process set.
pub fn members(name: &str) -> Result<weft_process::Group, Error> {
    let engine = engine()?;
    let me = engine.rank();
    let all = 0..engine.endpoint().fabric().size() as u32;
    // In names of process sets, the standard does not distinguish upper and lower case.
    let found = SETS.iter().position(|set| set.eq_ignore_ascii_case(name));
    Ok(weft_process::Group::new(match found {
        Some(0) => all.collect::<Vec<_>>(),
        Some(1) => vec![me as u32],
        Some(_) => {
            let nodes = crate::chapters::init::nodes();
            all.filter(|&rank| nodes[rank as usize] == nodes[me]).collect()
        }
        None => {
            let text = format!("argument pset_name = {name}: one of {}", SETS.join(", "));
            return Err(Error::new(MPI_ERR_ARG, text));
        }
    }))
}

/// MPI_Session_get_num_psets.
pub(crate) unsafe fn session_get_num_psets(
    handle: Session,
    info: Info,
    count: *mut c_int,
) -> Result<(), Error> {
    session(handle)?;
    optional_info(info)?;
    // SAFETY: `count` points to room for the result, as MPI requires of the program.
    unsafe { store(count, SETS.len() as c_int, "npset_names") }
}

/// MPI_Session_get_nth_pset.
pub(crate) unsafe fn session_get_nth_pset(
    handle: Session,
    info: Info,
    n: c_int,
    length: *mut c_int,
    name: *mut c_char,
) -> Result<(), Error> {
    session(handle)?;
    optional_info(info)?;
    not_null(length, "pset_len")?;
    let Some(set) = usize::try_from(n).ok().and_then(|n| SETS.get(n)) else {
        let text = format!("argument n = {n}: process sets are 0 to {}", SETS.len() - 1);
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    // SAFETY: `length` points to a value, as MPI requires of the program.
    let room = unsafe { *length };
    if room > 0 {
        // SAFETY: `name` is NULL or has `*length` bytes, as MPI requires of the program.
        unsafe { crate::arguments::store_text(set, name, room as usize, "pset_name") }?;
    }
    // The result is the number of bytes that the name needs, with the NUL.
    // SAFETY: `length` points to room for the result, as MPI requires of the program.
    unsafe { store(length, set.len() as c_int + 1, "pset_len") }
}

/// MPI_Session_get_pset_info.
pub(crate) unsafe fn session_get_pset_info(
    handle: Session,
    name: *const c_char,
    to: *mut Info,
) -> Result<(), Error> {
    session(handle)?;
    // SAFETY: `name` is NULL or a C string, as MPI requires of the program.
    let group = members(&unsafe { text(name, "pset_name") }?)?;
    let mut info = weft_process::Info::default();
    info.set("mpi_size", &group.size().to_string());
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, info, Info, to, "info") }
}

/// MPI_Group_from_session_pset.
pub(crate) unsafe fn group_from_session_pset(
    handle: Session,
    name: *const c_char,
    to: *mut Group,
) -> Result<(), Error> {
    session(handle)?;
    // SAFETY: `name` is NULL or a C string, as MPI requires of the program.
    let group = members(&unsafe { text(name, "pset_name") }?)?.of_session(handle.0);
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().groups, group, Group, to, "newgroup") }
}

// ---- communicators of groups --------------------------------------------------------------------

/// Maximum length of the name of an operation on groups, in bytes with the NUL.
const STRINGTAG_MAX: usize = MPI_MAX_STRINGTAG_LEN as usize;

/// Checks and returns the name under which the members of a group find each other.
///
/// # Safety
/// `from` is NULL or a C string.
unsafe fn stringtag(from: *const c_char) -> Result<OsString, Error> {
    // SAFETY: `string` needs a `from` that is NULL or a C string; the contract of this function says so.
    let name = unsafe { string(from, "stringtag") }?;
    if name.len() < STRINGTAG_MAX {
        return Ok(name);
    }
    let text = format!(
        "argument stringtag has {} bytes: at most {} (MPI_MAX_STRINGTAG_LEN - 1)",
        name.len(),
        STRINGTAG_MAX - 1
    );
    Err(Error::new(MPI_ERR_ARG, text))
}

/// Returns a group, and checks that this process is a member.
fn joined(handle: Group, argument: &str) -> Result<weft_process::Group, Error> {
    let members = group(handle, argument)?;
    match members.rank_of(engine()?.rank() as u32) {
        Some(_) => Ok(members),
        None => {
            let text = format!("argument {argument}: this process is not in the group");
            Err(Error::new(MPI_ERR_GROUP, text))
        }
    }
}

/// Sets the algorithms, the hints and the error handler of a communicator without a parent, and makes a handle for it. All members call
/// it.
fn found(
    new: Rc<CommObject>,
    hints: Option<&weft_process::Info>,
    errhandler: Errhandler,
    call: &WaitingCall,
) -> Result<Comm, Error> {
    new.select(state().selection.borrow().clone());
    let choice = engine()?.block_on(call, give_hints(&new, hints))?;
    new.errhandler.set(errhandler.0);
    Ok(keep_in(new, choice))
}

/// MPI_Comm_create_from_group.
pub(crate) unsafe fn comm_create_from_group(
    group_: Group,
    name: *const c_char,
    hints: Info,
    errhandler: Errhandler,
    to: *mut Comm,
) -> Result<(), Error> {
    heard_by(errhandler, HandlerKind::Comm, || {
        not_null(to, "newcomm")?;
        let hints = optional_info(hints)?;
        // SAFETY: `stringtag` needs a string that ends with a NUL, which the program passes as MPI requires.
        let name = unsafe { stringtag(name) }?;
        if group(group_, "group")?.size() == 0 {
            // SAFETY: `to` points to room for the result, as MPI requires of the program.
            return unsafe { store(to, MPI_COMM_NULL, "newcomm") };
        }
        let members = joined(group_, "group")?;
        let made = CommObject::from_group(engine()?, &members, name.as_bytes());
        let call = WaitingCall::new("MPI_Comm_create_from_group");
        let new = engine()?.block_on(&call, made)?;
        let new = found(new, hints.as_ref(), errhandler, &call)?;
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { store(to, new, "newcomm") }
    })
}

/// MPI_Intercomm_create_from_groups.
pub(crate) unsafe fn intercomm_create_from_groups(
    local_group: Group,
    local_leader: c_int,
    remote_group: Group,
    remote_leader: c_int,
    name: *const c_char,
    hints: Info,
    errhandler: Errhandler,
    to: *mut Comm,
) -> Result<(), Error> {
    let place = |of: &weft_process::Group, value: c_int, argument: &str| {
        usize::try_from(value).ok().filter(|&v| v < of.size()).ok_or_else(|| {
            let text = format!("argument {argument} = {value}: the group has {}", of.size());
            Error::new(MPI_ERR_RANK, text)
        })
    };
    heard_by(errhandler, HandlerKind::Comm, || {
        not_null(to, "newintercomm")?;
        let hints = optional_info(hints)?;
        // SAFETY: `stringtag` needs a string that ends with a NUL, which the program passes as MPI requires.
        let name = unsafe { stringtag(name) }?;
        let local = joined(local_group, "local_group")?;
        let leader = place(&local, local_leader, "local_leader")?;
        let leads = local.rank_of(engine()?.rank() as u32) == Some(leader);
        let remote = match leads {
            true => {
                let group = group(remote_group, "remote_group")?;
                let at = place(&group, remote_leader, "remote_leader")?;
                Some((group, at))
            }
            false => None,
        };
        let remote = remote.as_ref().map(|(group, at)| (group, *at));
        let made =
            CommObject::intercomm_from_groups(engine()?, &local, leader, remote, name.as_bytes());
        let call = WaitingCall::new("MPI_Intercomm_create_from_groups");
        let new = connecting::joined(&call, engine()?.block_on(&call, made)?)?;
        let new = found(new, hints.as_ref(), errhandler, &call)?;
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { store(to, new, "newintercomm") }
    })
}
