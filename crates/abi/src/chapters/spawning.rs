//! Spawning of processes by a running job (MPI 5.0, section 11.8).
//!
//! ```text
//!   root     opens a port, starts mpiexec with the port's name in WEFT_PARENT ── waits for a call, or the end of mpiexec
//!   children MPI_Init: create their world, then all of them call the port
//!   all      get an intercommunicator, as from MPI_Comm_accept and MPI_Comm_connect
//! ```
//! So the children are a job of their own. The parents may have been started by any launcher, or without a launcher.

mod children;
mod launcher;

use crate::arguments::{comm, not_null, optional_info, store, string};
use crate::chapter_state::ChapterState;
use crate::chapters::communicators::inherited;
use crate::chapters::connecting;
use crate::constants::*;
use crate::engine::{CommObject, Engine};
use crate::error::Error;
use crate::links::{ConnectionEnd, FoundInvitation, connected, group_and_root, transport};
use crate::network;
use crate::settings;
use crate::state::running;
use crate::types::{Comm, Info};
use crate::waiting::WaitingCall;
use children::{Children, JobEnd};
use launcher::launcher;
use std::cell::Cell;
use std::ffi::{OsStr, OsString, c_char, c_int};
use std::io;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_bootstrap::calls::{Occupied, start_thread};
use weft_bootstrap::failure_report::{self, FailureReport};
use weft_bootstrap::limits::explain;
use weft_bootstrap::ports::{Calling, Port, is_on_network};
use weft_bootstrap::slot_table::{self, Room};
use weft_fabric::Fabric;

/// Variables in the environment of spawned processes: the port of their parents, and, if the port is on a network, the network
/// that reaches the parents.
const PARENT: &str = slot_table::PARENT;
const PARENT_NETWORK: &str = "WEFT_PARENT_NETWORK";

/// Handle of the intercommunicator with the parents.
static PARENTS: ChapterState<Cell<Comm>> = ChapterState::new(Cell::new(MPI_COMM_NULL));

/// Number of processes that this process has spawned.
static SPAWNED: ChapterState<Cell<usize>> = ChapterState::new(Cell::new(0));

/// Maximum number of processes of a job.
const MOST: usize = 1 << 16;

/// A program that a spawn starts. Its strings may contain any bytes.
struct Program {
    command: OsString,
    arguments: Vec<OsString>,
    /// Number of processes that the program asks for.
    processes: usize,
    info: weft_process::Info,
}

impl Program {
    /// Returns the number of processes to start. The key `soft` may allow fewer processes than the program asks for. Returns
    /// `None` if the key allows no possible number.
    fn wished(&self) -> Option<usize> {
        match self.info.bytes("soft") {
            Some(wish) => soft(&String::from_utf8_lossy(wish), self.processes),
            None => Some(self.processes),
        }
    }

    /// Returns the number of processes to start, or 0 if the key `soft` allows no possible number.
    fn started(&self) -> usize {
        self.wished().unwrap_or(0)
    }

    /// Returns the value of a key as a string of the system.
    fn key(&self, key: &str) -> Option<&OsStr> {
        self.info.bytes(key).map(OsStr::from_bytes)
    }
}

/// Returns the strings of a list that ends with NULL.
///
/// # Safety
/// `list` is NULL or a list of C strings that ends with NULL.
unsafe fn strings(list: *const *const c_char) -> Result<Vec<OsString>, Error> {
    let mut all = Vec::new();
    if list.is_null() {
        return Ok(all);
    }
    loop {
        // SAFETY: no element up to here was NULL, and the list ends with NULL; the contract of this function says so.
        let one = unsafe { *list.add(all.len()) };
        if one.is_null() {
            return Ok(all);
        }
        // SAFETY: `one` is a C string of the list; the contract of this function says so.
        all.push(unsafe { string(one, "argv") }?);
    }
}

/// Returns the largest number of processes, at most `most`, that the key `soft` allows (MPI 5.0, section 11.8.4). The value of the
/// key is a list of triplets `first:last:step`, separated by commas. Returns `None` if there is no such number.
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

/// Returns the command line with which `mpiexec` starts a job of these programs, and the number of processes of that job. `others`
/// are the hosts of this job; the list is empty if the job's ports are not on a network.
fn command(
    mpiexec: &OsStr,
    programs: &[Program],
    others: &[slot_table::HostSlots],
) -> Result<(Command, usize), Error> {
    let mut command = Command::new(mpiexec);
    let mut all = 0;
    // Hosts belong to the job, not to a program. If no program names hosts, the hosts of this job are used.
    let hosts: Vec<&OsStr> = programs.iter().filter_map(|one| one.key("host")).collect();
    if !hosts.is_empty() {
        command.arg("-hosts").arg(hosts.join(OsStr::new(",")));
    } else if !others.is_empty() {
        command.args(["-hosts", &slot_table::free_first(others)]);
    }
    for (at, program) in programs.iter().enumerate() {
        let processes = program.started();
        all += processes;
        if processes == 0 {
            continue;
        }
        if at > 0 {
            command.arg(":");
        }
        command.args(["-n", &processes.to_string()]);
        if let Some(folder) = program.key("wdir") {
            command.arg("-wdir").arg(folder);
        }
        let settings = program.info.bytes("env").unwrap_or_default();
        for line in settings.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            command.arg("-x").arg(OsStr::from_bytes(line));
        }
        command.arg(found(program));
        // mpiexec would read a single colon as the end of the program's arguments, so the colon is quoted.
        let word = |argument: &OsString| {
            let is_colon = argument.as_bytes().iter().skip_while(|&&byte| byte == b'\\').eq(b":");
            let quote = OsStr::new(if is_colon { "\\" } else { "" });
            [quote, argument].into_iter().collect::<OsString>()
        };
        command.args(program.arguments.iter().map(word));
    }
    Ok((command, all))
}

/// Returns the path of a program. If the key `path` is given, uses the first folder in its value that has the program.
fn found(program: &Program) -> PathBuf {
    let folders = program.info.bytes("path").unwrap_or_default();
    let folders = folders.split(|byte| b": ".contains(byte)).filter(|folder| !folder.is_empty());
    let mut places = folders.map(|folder| PathBuf::from(OsStr::from_bytes(folder)));
    let named = program.command.as_bytes().contains(&b'/');
    let place = places.find(|folder| !named && folder.join(&program.command).is_file());
    place.map_or_else(|| program.command.clone().into(), |folder| folder.join(&program.command))
}

/// Starts the programs. Only the root calls this function.
fn start(engine: &Engine, programs: &[Program]) -> Result<(Port, Children), Error> {
    let others = match transport(engine)?.port_address() {
        Some(_) => slot_table::hosts(),
        None => Vec::new(),
    };
    let (mpiexec, not_own) = launcher();
    let (mut command, all) = command(&mpiexec, programs, &others)?;
    if all == 0 {
        return Err(Error::new(MPI_ERR_SPAWN, "no process is to be started"));
    }
    let port = connecting::open(engine)?;
    let network = network::for_children(engine.endpoint().fabric().verbs());
    let before = running()?.world.get().map_or(1, |world| world.size()) + SPAWNED.get();
    settings::pass_on(&mut command);
    command.env(slot_table::ROOM, Room::of_this_job().of_children(before).to_string());
    command.env(PARENT, port.name()).env(PARENT_NETWORK, network);
    let mut report = report_socket(&mut command)?;
    let mut child = command.spawn().map_err(|error| {
        let name = command.get_program().to_string_lossy();
        let own = not_own.map_or_else(String::new, |why| format!(" ({why})"));
        Error::new(MPI_ERR_SPAWN, format_args!("starting {name}: {}{own}", explain(&error)))
    })?;
    let (ended, sleeper) = (Arc::new(OnceLock::new()), engine.endpoint().fabric().sleeper());
    let end = ended.clone();
    // The thread continues after the call returns, because no other part of the process waits for the end of mpiexec.
    let watch = start_thread("weft-spawned", move || {
        let code = child.wait().ok().and_then(|status| status.code());
        let _ = end.set(JobEnd { code, report: FailureReport::read(&mut report) });
        sleeper.ring();
    });
    watch.map_err(|error| Error::new(MPI_ERR_SPAWN, format_args!("a thread: {error}")))?;
    let names: Vec<&OsStr> = programs.iter().map(|program| &*program.command).collect();
    let names = names.join(OsStr::new(", ")).display().to_string();
    Ok((port, Children { names, ended }))
}

/// Gives mpiexec a socket as its standard input. If the job fails, mpiexec sends the reason on this socket. If mpiexec reads from
/// the socket, it finds the end of the file.
fn report_socket(command: &mut Command) -> Result<UnixStream, Error> {
    let _occupied = Occupied::standard();
    let mut make = || {
        let (report, input) = UnixStream::pair()?;
        report.shutdown(Shutdown::Write)?;
        report.set_nonblocking(true)?;
        command.stdin(OwnedFd::from(input)).env(failure_report::VARIABLE, "stdin");
        Ok(report)
    };
    make().map_err(|error: io::Error| {
        Error::new(MPI_ERR_SPAWN, format_args!("a pair of sockets: {}", explain(&error)))
    })
}

/// Waits until all spawned processes have called the port.
fn await_call(
    call: &WaitingCall,
    object: &CommObject,
    programs: &[Program],
    port: &Port,
    children: &Children,
) -> Result<FoundInvitation, Error> {
    let all: usize = programs.iter().map(Program::started).sum();
    let gone = |calling: Option<&Calling>| match calling {
        Some(calling) if calling.size != all => {
            let (names, size) = (&children.names, calling.size);
            Some(Error::new(MPI_ERR_SPAWN, format_args!("{names}: {size} processes of {all} came")))
        }
        Some(_) => None,
        None => children.why_gone(),
    };
    connecting::accept_on(call, object.engine(), object.group(), port, gone)
        .inspect(|_| SPAWNED.set(SPAWNED.get() + all))
}

/// Checks that the programs do not exceed the maximum number of processes.
fn allowed(programs: Vec<Program>) -> Result<Vec<Program>, Error> {
    let all = asked_for(&programs);
    if all > MOST {
        let text = format!("{all} processes are asked for: mpiexec starts at most {MOST}");
        return Err(Error::new(MPI_ERR_SPAWN, text));
    }
    if let Some(one) = programs.iter().find(|one| one.wished().is_none()) {
        let wish = String::from_utf8_lossy(one.info.bytes("soft").unwrap_or_default());
        let most = one.processes;
        let text =
            format!("info key soft = {wish:?} allows no number of processes from 0 to {most}");
        return Err(Error::new(MPI_ERR_SPAWN, text));
    }
    Ok(programs)
}

/// Returns the total number of processes that these programs ask for.
fn asked_for(programs: &[Program]) -> usize {
    programs.iter().map(|program| program.processes).sum()
}

/// Starts the programs that `programs` returns at the root.
///
/// # Safety
/// `codes` is NULL or has room for a code of each process that may be started; `made` may be written.
unsafe fn spawn(
    call: &WaitingCall,
    root: c_int,
    handle: Comm,
    programs: impl FnOnce() -> Result<Vec<Program>, Error>,
    made: *mut Comm,
    codes: *mut c_int,
) -> Result<(), Error> {
    let (object, root) = group_and_root(handle, root, made, "intercomm")?;
    let engine = object.engine();
    if engine.endpoint().fabric().sim_client().is_some() {
        let text = "a job in virtual time (weft sim run) cannot start further processes";
        return Err(Error::new(MPI_ERR_SPAWN, text));
    }
    let programs = (object.rank() == root).then(programs);
    // The root sends the numbers of codes and of processes to all ranks, because the arguments of other ranks are not significant.
    // If there are more processes than the maximum, the call fails and no code is written, because the array of codes may be too
    // short as well.
    let counts = programs.as_ref().and_then(|all| all.as_ref().ok());
    let counts = counts.filter(|all| asked_for(all) <= MOST).map_or(&[][..], |all| all);
    let counts = counts.iter().flat_map(|one| [one.processes as u64, one.started() as u64]);
    let told = counts.flat_map(u64::to_le_bytes).collect();
    let told = engine.block_on(call, object.tell_all(root, told))?;
    let mut children = None;
    let found = programs.map(|programs| {
        let programs = allowed(programs?)?;
        let started = children.insert(start(engine, &programs)?);
        await_call(call, &object, &programs, &started.0, &started.1)
    });
    let new = connected(call, &object, root, ConnectionEnd::Accepting, found).map_err(|error| {
        if error.class() != MPI_ERR_PORT {
            return error;
        }
        // If the error is MPI_ERR_PORT, the children have called the port and were lost afterwards.
        let known = children.and_then(|(_, children)| children.why_lost(call, engine));
        let text = error.text();
        Error::new(
            MPI_ERR_SPAWN,
            match known {
                // If the children report the same reason, it is not repeated.
                Some(why) if why.text().contains(text.trim_start_matches("connecting: ")) => {
                    why.text().to_owned()
                }
                Some(why) => format!("{} ({text})", why.text()),
                None => format!("{text} (rank {root} of the communicator knows more)"),
            },
        )
    });
    let code = new.as_ref().map_or_else(Error::class, |_| MPI_SUCCESS);
    if !codes.is_null() {
        let (counts, _) = told.as_chunks::<16>();
        let mut at = 0;
        for count in counts {
            let [asked, started] = [&count[..8], &count[8..]]
                .map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
            for process in 0..asked {
                let code = if process < started { code } else { MPI_ERR_SPAWN };
                // SAFETY: `codes` has room for all processes, by the contract of this function.
                unsafe { codes.add(at).write(code) };
                at += 1;
            }
        }
    }
    // SAFETY: `made` points to room for the result, as MPI requires of the program.
    unsafe { store(made, inherited(&object, Some(new?)), "intercomm") }
}

fn processes(count: c_int, argument: &str) -> Result<usize, Error> {
    usize::try_from(count).map_err(|_| {
        Error::new(MPI_ERR_ARG, format_args!("argument {argument} = {count}: 0 or more"))
    })
}

/// MPI_Comm_spawn.
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
        // SAFETY: at the root, `command` is NULL or a C string, and `argv` is NULL or a list of C strings that ends with NULL,
        // as MPI requires of the program. Only the root runs this closure.
        let (command, arguments) = unsafe { (string(command, "command")?, strings(argv.cast())?) };
        let info = optional_info(info)?.unwrap_or_default();
        Ok(vec![Program { command, arguments, processes: processes(maxprocs, "maxprocs")?, info }])
    };
    let call = WaitingCall::new("MPI_Comm_spawn");
    // SAFETY: `spawn` needs valid pointers, which the program passes as MPI requires.
    unsafe { spawn(&call, root, handle, programs, intercomm, array_of_errcodes) }
}

/// MPI_Comm_spawn_multiple.
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
            // SAFETY: the arrays have `count` elements, which are C strings, lists and handles, as MPI requires of the program.
            // Only the root runs this closure.
            unsafe {
                let argv = match array_of_argv.is_null() {
                    true => std::ptr::null(),
                    false => (*array_of_argv.add(at)).cast_const().cast(),
                };
                Ok(Program {
                    command: string(*array_of_commands.add(at), "array_of_commands")?,
                    arguments: strings(argv)?,
                    processes: processes(*array_of_maxprocs.add(at), "array_of_maxprocs")?,
                    info: optional_info(*array_of_info.add(at))?.unwrap_or_default(),
                })
            }
        };
        (0..count).map(program).collect()
    };
    let call = WaitingCall::new("MPI_Comm_spawn_multiple");
    // SAFETY: `spawn` needs valid pointers, which the program passes as MPI requires.
    unsafe { spawn(&call, root, handle, programs, intercomm, array_of_errcodes) }
}

/// Returns the port of the parents from the environment, and removes it there, because programs that this process starts have no
/// parents.
pub fn parent_port() -> Option<String> {
    let name = std::env::var(PARENT).ok();
    if let Some(name) = &name {
        if is_on_network(name) {
            network::reach_out(&std::env::var(PARENT_NETWORK).unwrap_or_default());
        }
        for variable in [PARENT, PARENT_NETWORK] {
            // SAFETY: std's lock serialises the call with other Rust code that uses the environment, and the call frees no
            // memory that C code may read.
            unsafe { std::env::remove_var(variable) };
        }
    }
    name
}

/// Time that a child waits before it ends because it cannot connect to its parents. Meanwhile the launcher notices the cause.
const LAST: Duration = Duration::from_millis(500);

/// Connects the world to the job that has spawned this job.
pub fn join_parents(world: &Rc<CommObject>, port: String) -> Result<(), Error> {
    let call = WaitingCall::new("MPI_Init");
    transport(world.engine())?;
    let found = (world.rank() == 0)
        .then(|| connecting::call_port(&call, world.engine(), world.group(), port));
    let made = connected(&call, world, 0, ConnectionEnd::Calling, found).inspect_err(|_| {
        // Perhaps another child has died. The launcher reports only the first process that fails, so this process waits until the
        // launcher has noticed that child.
        std::thread::sleep(LAST);
    })?;
    *made.name.borrow_mut() = "MPI_COMM_PARENT".into();
    PARENTS.set(inherited(world, Some(made)));
    Ok(())
}

/// MPI_Comm_get_parent.
pub(crate) unsafe fn comm_get_parent(parent: *mut Comm) -> Result<(), Error> {
    running()?;
    // If the communicator was disconnected or freed, the result is MPI_COMM_NULL.
    let handle = PARENTS.get();
    let handle =
        if handle != MPI_COMM_NULL && comm(handle).is_err() { MPI_COMM_NULL } else { handle };
    // SAFETY: `parent` points to room for the result, as MPI requires of the program.
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
