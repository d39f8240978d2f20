//! Processes that a running job starts (MPI 5.0, section 11.8).
//!
//! ```text
//!   root     opens a port, starts Weft's mpiexec with its name in WEFT_PARENT ── waits: a call, or the end of mpiexec
//!   children MPI_Init: their world, then the call to that port by all of them
//!   all      one intercommunicator, as of MPI_Comm_accept and MPI_Comm_connect
//! ```
//! So the children are a job of their own, and it does not matter who has started the parents, or whether anybody has.

use crate::arguments::{comm, not_null, optional_info, store, text};
use crate::chapters::communicators::inherited;
use crate::chapters::connecting;
use crate::constants::*;
use crate::error::Error;
use crate::links::{End, Way, connected, group_and_root};
use crate::network;
use crate::node::CommObject;
use crate::state::{Kept, running};
use crate::types::{Comm, Info};
use crate::waiting::Call;
use std::cell::Cell;
use std::ffi::{OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::{env, fs, io};
use weft_bootstrap::calls::{repeat, start_thread};
use weft_bootstrap::ports::{Calling, is_on_network};
use weft_bootstrap::universe;
use weft_fabric::Fabric;

/// In the environment of spawned processes: the port of their parents, and by what these are reached if it is on a network.
const PARENT: &str = "WEFT_PARENT";
const PARENT_NETWORK: &str = "WEFT_PARENT_NETWORK";

/// The handle of the intercommunicator with the parents.
static PARENTS: Kept<Cell<Comm>> = Kept::new(Cell::new(MPI_COMM_NULL));

/// Processes that one job has at most.
const MOST: usize = 1 << 16;

/// One program of a spawn.
struct Program {
    command: String,
    arguments: Vec<String>,
    processes: usize,
    info: weft_process::Info,
}

/// The strings of a list that ends with NULL.
///
/// # Safety
/// `list` is NULL or such a list of C strings.
unsafe fn strings(list: *const *const c_char) -> Result<Vec<String>, Error> {
    let mut all = Vec::new();
    if list.is_null() {
        return Ok(all);
    }
    loop {
        // SAFETY: by contract, up to the first NULL.
        let one = unsafe { *list.add(all.len()) };
        if one.is_null() {
            return Ok(all);
        }
        // SAFETY: by contract.
        all.push(unsafe { text(one, "argv") }?);
    }
}

/// How many processes the key `soft` allows, at most `most` (MPI 5.0, section 11.8.4): triplets `first:last:step`, commas
/// between.
fn soft(wish: &str, most: usize) -> Option<usize> {
    let mut best = None;
    for part in wish.split(',') {
        let numbers: Vec<i64> =
            part.split(':').map(|number| number.trim().parse().ok()).collect::<Option<_>>()?;
        let (first, last, step) = match numbers[..] {
            [only] => (only, only, 1),
            [first, last] => (first, last, 1),
            [first, last, step] if step != 0 => (first, last, step),
            _ => return None,
        };
        let mut at = first;
        while (step > 0 && at <= last) || (step < 0 && at >= last) {
            if (0..=most as i64).contains(&at) {
                best = best.max(Some(at as usize));
            }
            at += step;
        }
    }
    best
}

/// Our mpiexec: of the installation that this library is of, else the one that has started this process, else the first in PATH;
/// and why it is not the first of these.
fn launcher() -> (OsString, Option<String>) {
    let own = || -> Result<PathBuf, String> {
        let library = own_path().ok_or("the library's own path is not known")?;
        // File systems of a network may be interrupted by a signal.
        let library = repeat(|| fs::canonicalize(&library)).unwrap_or(library);
        let prefix = library.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let program = prefix.join("bin/mpiexec");
        match repeat(|| fs::metadata(&program)) {
            Ok(about) if !about.is_file() => Err(format!("{}: it is no file", program.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", program.display()))
            }
            // What the system could not say now, the start will.
            _ => Ok(program),
        }
    };
    match own() {
        Ok(program) => (program.into(), None),
        Err(why) => {
            let named = env::var_os(universe::MPIEXEC).filter(|name| Path::new(name).is_file());
            (named.unwrap_or_else(|| "mpiexec".into()), Some(why))
        }
    }
}

/// Where this library lies, as the loader found it.
fn own_path() -> Option<PathBuf> {
    let mut found: libc::Dl_info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: an address of this library, and a structure to fill in.
    let known = unsafe { libc::dladdr(own_path as *const () as *const _, &mut found) } != 0;
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr gives a C string that lives as long as the library.
    let name = unsafe { std::ffi::CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// The command line of a job of these programs by `mpiexec`, and the processes that it has. `others`: the hosts of this job, where it
/// reaches others than its own.
fn command(
    mpiexec: &OsStr,
    programs: &[Program],
    others: &[universe::Host],
) -> Result<(Command, usize), Error> {
    let mut command = Command::new(mpiexec);
    let mut all = 0;
    // Hosts are of the job, not of a program. Without a wish they are those of this job.
    let hosts: Vec<&str> = programs.iter().filter_map(|one| one.info.get("host")).collect();
    if !hosts.is_empty() {
        command.args(["-hosts", &hosts.join(",")]);
    } else if !others.is_empty() {
        command.args(["-hosts", &universe::free_first(others)]);
    }
    for (at, program) in programs.iter().enumerate() {
        let mut processes = program.processes;
        if let Some(wish) = program.info.get("soft") {
            processes = soft(wish, processes).ok_or_else(|| {
                let text = format!(
                    "info key soft = {wish:?} allows no number of processes from 0 to {processes}"
                );
                Error::new(MPI_ERR_SPAWN, text)
            })?;
        }
        all += processes;
        if processes == 0 {
            continue;
        }
        if at > 0 {
            command.arg(":");
        }
        command.args(["-n", &processes.to_string()]);
        if let Some(folder) = program.info.get("wdir") {
            command.args(["-wdir", folder]);
        }
        for line in program.info.get("env").unwrap_or_default().lines() {
            command.args(["-x", line]);
        }
        command.arg(found(program));
        if program.arguments.iter().any(|argument| argument == ":") {
            let text = "argument argv: mpiexec takes \":\" for the end of a program";
            return Err(Error::new(MPI_ERR_ARG, text));
        }
        command.args(&program.arguments);
    }
    Ok((command, all))
}

/// The program, by the key `path` where that is given.
fn found(program: &Program) -> PathBuf {
    let folders = program.info.get("path").unwrap_or_default().split([':', ' ']);
    let mut places = folders.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let named = program.command.contains('/');
    let place = places.find(|folder| !named && folder.join(&program.command).is_file());
    place.map_or_else(|| program.command.clone().into(), |folder| folder.join(&program.command))
}

/// Starts the programs, and waits until their processes have called. At the root.
fn start(
    call: &Call,
    object: &Rc<CommObject>,
    programs: &[Program],
) -> Result<weft_bootstrap::ports::Invitation, Error> {
    let engine = object.engine();
    let others = match Way::of(engine)?.port_address() {
        Some(_) => universe::hosts(),
        None => Vec::new(),
    };
    let (mpiexec, not_own) = launcher();
    let (mut command, all) = command(&mpiexec, programs, &others)?;
    if all == 0 {
        return Err(Error::new(MPI_ERR_SPAWN, "no process is to be started"));
    }
    let port = connecting::open(engine)?;
    let network = network::for_children(engine.endpoint().fabric().verbs());
    command.env(PARENT, port.name()).env(PARENT_NETWORK, network).stdin(Stdio::null());
    let mut child = command.spawn().map_err(|error| {
        let name = command.get_program().to_string_lossy();
        let own = not_own.map_or_else(String::new, |why| format!(" ({why})"));
        Error::new(MPI_ERR_SPAWN, format_args!("starting {name}: {error}{own}"))
    })?;
    let (ended, sleeper) = (Arc::new(OnceLock::new()), engine.endpoint().fabric().sleeper());
    let told = ended.clone();
    // It outlives the call: nobody else takes notice of mpiexec's end.
    let watch = start_thread("weft-spawned", move || {
        let _ = told.set(child.wait().ok().and_then(|status| status.code()));
        sleeper.ring();
    });
    watch.map_err(|error| Error::new(MPI_ERR_SPAWN, format_args!("a thread: {error}")))?;
    let names: Vec<&str> = programs.iter().map(|program| &*program.command).collect();
    let names = names.join(", ");
    connecting::accept_on(call, engine, object.group(), &port, |calling: Option<&Calling>| match calling {
        Some(calling) if calling.size != all => {
            let size = calling.size;
            Some(Error::new(MPI_ERR_SPAWN, format_args!("{names}: {size} processes of {all} came")))
        }
        Some(_) => None,
        None => ended.get().map(|code| {
            let how = match code {
                Some(127) => "the program was not found".to_owned(),
                Some(0) => "it ended without a call of MPI_Init".to_owned(),
                Some(code) => format!("it ended with code {code} before MPI_Init was over"),
                None => "mpiexec was killed".to_owned(),
            };
            Error::new(MPI_ERR_SPAWN, format_args!("{names}: {how}"))
        }),
    })
}

/// Whether there may be so many processes.
fn allowed(programs: Vec<Program>) -> Result<Vec<Program>, Error> {
    let all: usize = programs.iter().map(|program| program.processes).sum();
    if all > MOST {
        let text = format!("{all} processes are asked for: mpiexec starts at most {MOST}");
        return Err(Error::new(MPI_ERR_SPAWN, text));
    }
    Ok(programs)
}

/// Starts what `programs` finds at the root.
///
/// # Safety
/// `codes` is NULL or has room for a code of each process that may be started; `made` may be written.
unsafe fn spawn(
    call: &Call,
    (root, handle): (c_int, Comm),
    programs: impl FnOnce() -> Result<Vec<Program>, Error>,
    made: *mut Comm,
    codes: *mut c_int,
) -> Result<(), Error> {
    let (object, root) = group_and_root(handle, root, (made, "intercomm"))?;
    let programs = (object.rank() == root).then(|| programs().and_then(allowed));
    let asked = |programs: &Vec<Program>| programs.iter().map(|one| one.processes as u64).sum();
    let count: u64 = programs.as_ref().and_then(|all| all.as_ref().ok()).map_or(0, asked);
    // All are told how many codes there are, which the arguments of others do not say.
    let told = object.tell_all(root, count.to_le_bytes().to_vec());
    let told = object.engine().block_on(call, told)?;
    let count = told.try_into().map_or(0, u64::from_le_bytes);
    let found = programs.map(|programs| start(call, &object, &programs?));
    let new = connected(call, &object, root, End::Accepting, found);
    let code = new.as_ref().map_or_else(Error::class, |_| MPI_SUCCESS);
    if !codes.is_null() {
        let count = new.as_ref().map_or(count as usize, |new| new.peers().size());
        for at in 0..count {
            // SAFETY: by contract.
            unsafe { codes.add(at).write(code) };
        }
    }
    // SAFETY: by contract.
    unsafe { store(made, inherited(&object, Some(new?)), "intercomm") }
}

fn processes(count: c_int, argument: &str) -> Result<usize, Error> {
    usize::try_from(count).map_err(|_| {
        Error::new(MPI_ERR_ARG, format_args!("argument {argument} = {count}: 0 or more"))
    })
}

pub(crate) unsafe fn comm_spawn(
    command: *const c_char,
    argv: *mut *mut c_char,
    maxprocs: c_int,
    info: Info,
    root: c_int,
    handle: Comm,
    intercomm: *mut Comm,
    array_of_errcodes: *mut c_int,
) -> Result<(), Error> {
    let programs = || {
        // SAFETY: the caller's strings, which count at the root.
        let (command, arguments) = unsafe { (text(command, "command")?, strings(argv.cast())?) };
        let info = optional_info(info)?.unwrap_or_default();
        Ok(vec![Program { command, arguments, processes: processes(maxprocs, "maxprocs")?, info }])
    };
    let call = Call::new("MPI_Comm_spawn");
    // SAFETY: the caller's pointers.
    unsafe { spawn(&call, (root, handle), programs, intercomm, array_of_errcodes) }
}

pub(crate) unsafe fn comm_spawn_multiple(
    count: c_int,
    array_of_commands: *mut *mut c_char,
    array_of_argv: *mut *mut *mut c_char,
    array_of_maxprocs: *const c_int,
    array_of_info: *const Info,
    root: c_int,
    handle: Comm,
    intercomm: *mut Comm,
    array_of_errcodes: *mut c_int,
) -> Result<(), Error> {
    let programs = || {
        let count = processes(count, "count")?;
        not_null(array_of_commands, "array_of_commands")?;
        not_null(array_of_maxprocs, "array_of_maxprocs")?;
        not_null(array_of_info, "array_of_info")?;
        let program = |at: usize| {
            // SAFETY: the caller's arrays of `count` elements, and the strings in them.
            unsafe {
                let argv = match array_of_argv.is_null() {
                    true => std::ptr::null(),
                    false => (*array_of_argv.add(at)).cast_const().cast(),
                };
                Ok(Program {
                    command: text(*array_of_commands.add(at), "array_of_commands")?,
                    arguments: strings(argv)?,
                    processes: processes(*array_of_maxprocs.add(at), "array_of_maxprocs")?,
                    info: optional_info(*array_of_info.add(at))?.unwrap_or_default(),
                })
            }
        };
        (0..count).map(program).collect()
    };
    let call = Call::new("MPI_Comm_spawn_multiple");
    // SAFETY: the caller's pointers.
    unsafe { spawn(&call, (root, handle), programs, intercomm, array_of_errcodes) }
}

/// What the environment says of parents, once: programs that this process starts have none.
pub fn parent_port() -> Option<String> {
    let name = std::env::var(PARENT).ok();
    if let Some(name) = &name {
        if is_on_network(name) {
            network::reach_out(&std::env::var(PARENT_NETWORK).unwrap_or_default());
        }
        for variable in [PARENT, PARENT_NETWORK] {
            // SAFETY: as with the launcher's variables: std serialises it with Rust code, and nothing is freed.
            unsafe { std::env::remove_var(variable) };
        }
    }
    name
}

/// Connects the world to the job that has spawned it.
pub fn join_parents(world: &Rc<CommObject>, port: String) -> Result<(), Error> {
    let call = Call::new("MPI_Init");
    Way::of(world.engine())?;
    let found = (world.rank() == 0).then(|| connecting::call_port(&call, world.engine(), world.group(), port));
    let made = connected(&call, world, 0, End::Calling, found)?;
    *made.name.borrow_mut() = "MPI_COMM_PARENT".to_owned();
    PARENTS.set(inherited(world, Some(made)));
    Ok(())
}

pub(crate) unsafe fn comm_get_parent(parent: *mut Comm) -> Result<(), Error> {
    running()?;
    // Disconnected or freed, it is none.
    let handle = PARENTS.get();
    let handle =
        if handle != MPI_COMM_NULL && comm(handle).is_err() { MPI_COMM_NULL } else { handle };
    // SAFETY: the caller's pointer.
    unsafe { store(parent, handle, "parent") }
}

#[cfg(test)]
mod tests {
    use super::soft;

    #[test]
    fn soft_wishes_are_understood() {
        assert_eq!(soft("3", 5), Some(3));
        assert_eq!(soft("2:8:2", 5), Some(4));
        assert_eq!(soft("1,4:1:-1,9", 5), Some(4));
        assert_eq!(soft("0:3", 5), Some(3));
        assert_eq!(soft("6:9", 5), None);
        for wrong in ["", "a", "1:2:3:4", "1:2:0"] {
            assert_eq!(soft(wrong, 5), None, "{wrong}");
        }
    }
}
