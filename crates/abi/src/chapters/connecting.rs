//! Connections between jobs (MPI 5.0, sections 11.9 and 11.10): ports, accept and connect, join.

use crate::arguments::{not_null, optional_info, store, store_text, text};
use crate::chapter_state::ChapterState;
use crate::chapters::communicators::inherited;
use crate::constants::*;
use crate::engine::{CommObject, Engine, JobFabric};
use crate::error::Error;
use crate::links::{
    self, ConnectionEnd, FoundInvitation, connected, group_and_root, patience, run_on_thread,
};
use crate::state::{running, state};
use crate::types::{Comm, Info};
use crate::waiting::WaitingCall;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{c_char, c_int};
use std::io::{self, Read, Write};
use std::mem::ManuallyDrop;
use std::os::fd::{AsFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::time::Instant;
use weft_bootstrap::calls::Occupied;
use weft_bootstrap::limits::explain;
use weft_bootstrap::ports::{AcceptingGroup, Caller, Calling, Port, is_port};
use weft_fabric::Fabric;
use weft_process::{Group, Parties};

/// Ports by name; `None` before the first port is opened.
type Ports = Option<HashMap<String, Rc<Port>>>;

/// Ports that this process has opened.
static PORTS: ChapterState<RefCell<Ports>> = ChapterState::new(RefCell::new(None));

/// Opens a port. A job that calls the port wakes this process.
pub fn open(engine: &Engine) -> Result<Port, Error> {
    let _occupied = Occupied::standard();
    let sleeper = engine.endpoint().fabric().sleeper();
    let at = links::transport(engine)?.port_address();
    Port::open(at, move || sleeper.ring()).map_err(|error| {
        Error::new(MPI_ERR_PORT, format_args!("opening a port: {}", explain(&error)))
    })
}

fn engine() -> Result<&'static Rc<Engine>, Error> {
    Ok(running()?.engine.get().expect("it runs"))
}

/// MPI_Open_port.
pub(crate) unsafe fn open_port(info: Info, port_name: *mut c_char) -> Result<(), Error> {
    not_null(port_name, "port_name")?;
    optional_info(info)?;
    let port = open(engine()?)?;
    let name = port.name().to_owned();
    PORTS.borrow_mut().get_or_insert_default().insert(name.clone(), Rc::new(port));
    // SAFETY: `port_name` is not NULL, so it has MPI_MAX_PORT_NAME characters, as MPI requires of the program.
    unsafe { store_text(&name, port_name, MPI_MAX_PORT_NAME as usize, "port_name") }?;
    Ok(())
}

/// MPI_Close_port.
pub(crate) unsafe fn close_port(port_name: *const c_char) -> Result<(), Error> {
    running()?;
    // SAFETY: `text` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { text(port_name, "port_name") }?;
    match PORTS.borrow_mut().as_mut().and_then(|ports| ports.remove(&name)) {
        Some(_) => Ok(()),
        None => Err(no_port_here(&name)),
    }
}

fn no_port_here(name: &str) -> Error {
    let text = match is_port(name) {
        true => "argument port_name: this process has not opened it, or has closed it",
        false => "argument port_name: it is no name that MPI_Open_port gave",
    };
    Error::new(MPI_ERR_PORT, text)
}

/// Waits until a job calls `port`, and admits the job to `group`. If `gone` returns an error, the wait ends with this error.
pub fn accept_on(
    call: &WaitingCall,
    engine: &Engine,
    group: &Group,
    port: &Port,
    gone: impl Fn(Option<&Calling>) -> Option<Error>,
) -> Result<FoundInvitation, Error> {
    let place = group.rank_of(engine.rank() as u32).expect("only members call");
    loop {
        let calling = engine.drive(call, || match port.next() {
            Some(calling) => Some(gone(Some(&calling)).map_or(Ok(calling), Err)),
            None => gone(None).map(Err),
        })?;
        let word = engine.new_shared_context();
        // If the caller has gone meanwhile, the next caller is accepted.
        let accepting = AcceptingGroup { root: place, size: group.size() };
        if let Ok(invitation) = port.admit(calling, accepting, word, patience()?) {
            return Ok(FoundInvitation { invitation, caller: None });
        }
    }
}

/// Accepts a caller that is known to be on its way. Waits at most as long as connections may take.
fn accept_soon(
    call: &WaitingCall,
    engine: &Engine,
    group: &Group,
    port: &Port,
) -> Result<FoundInvitation, Error> {
    let (since, limit) = (Instant::now(), patience()?);
    let late = || Error::new(MPI_ERR_PORT, "the other end did not come");
    accept_on(call, engine, group, port, |calling| {
        (calling.is_none() && since.elapsed() > limit).then(late)
    })
}

/// Returns the intercommunicator of two groups that have met. First connects processes that are connected only through other
/// processes (MPI 5.0, section 11.10.4). The leaders can already reach each other, so one leader opens a port for the other leader.
pub fn joined(call: &WaitingCall, parties: Parties<JobFabric>) -> Result<Rc<CommObject>, Error> {
    if !parties.are_apart() {
        return Ok(parties.join()?);
    }
    let (engine, group) = (parties.engine(), parties.group());
    let mut said = String::new();
    let mut found = None;
    if let Some(first) = parties.is_first_leader() {
        let own = between_leaders(call, &parties, first.then(|| open(engine)));
        said = format!("{}{}", if first { 'A' } else { 'C' }, links::news(&own));
        found = Some(own);
    }
    let told = engine.block_on(call, parties.tell_all(said.into_bytes()))?;
    let told = String::from_utf8_lossy(&told);
    let (end, told) = match told.strip_prefix('A') {
        Some(rest) => (ConnectionEnd::Accepting, rest),
        None => (ConnectionEnd::Calling, told.get(1..).unwrap_or_default()),
    };
    let made = links::linked(call, engine, group, end, &links::invited(told)?);
    drop(found);
    made
}

/// Connects the two leaders. The first leader has opened `port`, and the other leader receives the name of the port and calls it.
/// Returns the invitation for the leader's group.
fn between_leaders(
    call: &WaitingCall,
    parties: &Parties<JobFabric>,
    port: Option<Result<Port, Error>>,
) -> Result<FoundInvitation, Error> {
    let (engine, group) = (parties.engine(), parties.group());
    let said = match &port {
        Some(Ok(port)) => format!("+{}", port.name()),
        Some(Err(error)) => format!("-{}", error.text()),
        None => String::new(),
    };
    let told = engine.block_on(call, parties.swap(said.as_bytes()))?;
    match port {
        Some(port) => accept_soon(call, engine, group, &port?),
        None => match told.split_first() {
            Some((b'+', name)) => {
                call_port(call, engine, group, String::from_utf8_lossy(name).into_owned())
            }
            _ => {
                let why = String::from_utf8_lossy(told.get(1..).unwrap_or_default()).into_owned();
                Err(Error::new(MPI_ERR_PORT, format_args!("the other leader: {why}")))
            }
        },
    }
}

/// MPI_Comm_accept.
pub(crate) unsafe fn comm_accept(
    port_name: *const c_char,
    info: Info,
    root: c_int,
    handle: Comm,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    let (comm, root) = group_and_root(handle, root, newcomm, "newcomm")?;
    let call = WaitingCall::new("MPI_Comm_accept");
    let accept = || {
        optional_info(info)?;
        // SAFETY: at the root, `port_name` is NULL or a C string, as MPI requires of the program; only the root runs this closure.
        let name = unsafe { text(port_name, "port_name") }?;
        let opened = || PORTS.borrow().as_ref().and_then(|ports| ports.get(&name).cloned());
        let port = opened().ok_or_else(|| no_port_here(&name))?;
        accept_on(&call, comm.engine(), comm.group(), &port, |_| {
            opened().is_none().then(|| no_port_here(&name))
        })
    };
    let found = (comm.rank() == root).then(accept);
    let made = connected(&call, &comm, root, ConnectionEnd::Accepting, found)?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, inherited(&comm, Some(made)), "newcomm") }
}

/// Calls the port `name` for all processes of `group`, and waits until the call is accepted.
pub fn call_port(
    call: &WaitingCall,
    engine: &Engine,
    group: &Group,
    name: String,
) -> Result<FoundInvitation, Error> {
    let (size, patience) = (group.size(), patience()?);
    if is_port(&name)
        && let Err(why) = links::transport(engine)?.reaches(&name)
    {
        return Err(Error::new(MPI_ERR_PORT, format_args!("argument port_name: {why}")));
    }
    let ask = move || {
        let call = {
            let _occupied = Occupied::standard();
            Caller::call(&name, size)
        };
        let mut caller = call?;
        let invitation = caller.invitation(patience)?;
        Ok(FoundInvitation { invitation, caller: Some(caller) })
    };
    run_on_thread(engine, call, ask)?.map_err(|error: io::Error| {
        let text = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "argument port_name: nobody has this port open any more".to_owned()
            }
            io::ErrorKind::TimedOut => {
                format!("argument port_name: {error} (WEFT_CONNECT_TIMEOUT sets how long)")
            }
            _ => format!("argument port_name: {}", explain(&error)),
        };
        Error::new(MPI_ERR_PORT, text)
    })
}

/// MPI_Comm_connect.
pub(crate) unsafe fn comm_connect(
    port_name: *const c_char,
    info: Info,
    root: c_int,
    handle: Comm,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    let (comm, root) = group_and_root(handle, root, newcomm, "newcomm")?;
    let call = WaitingCall::new("MPI_Comm_connect");
    let connect = || {
        optional_info(info)?;
        // SAFETY: at the root, `port_name` is NULL or a C string, as MPI requires of the program; only the root runs this closure.
        call_port(&call, comm.engine(), comm.group(), unsafe { text(port_name, "port_name") }?)
    };
    let found = (comm.rank() == root).then(connect);
    let made = connected(&call, &comm, root, ConnectionEnd::Calling, found)?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, inherited(&comm, Some(made)), "newcomm") }
}

/// Number of bytes that a port name takes on a socket.
const NAME: usize = 256;

/// Waits for a socket of the program. The program may have made the socket non-blocking, or limited the time of its calls.
fn wait_for(socket: &UnixStream, what: PollFlags) -> io::Result<()> {
    match poll(&mut [PollFd::new(socket.as_fd(), what)], PollTimeout::NONE) {
        Ok(_) | Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sends all of `said` and receives the same number of bytes, whether the socket is blocking or not.
fn swap(mut socket: &UnixStream, said: &mut [u8; NAME]) -> io::Result<()> {
    let later = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
    };
    let mut sent = 0;
    while sent < NAME {
        match socket.write(&said[sent..]) {
            Ok(count) => sent += count,
            Err(error) if later(&error) => wait_for(socket, PollFlags::POLLOUT)?,
            Err(error) => return Err(error),
        }
    }
    let mut have = 0;
    while have < NAME {
        match socket.read(&mut said[have..]) {
            Ok(0) => {
                let text = "the other end has closed the socket";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
            }
            Ok(count) => have += count,
            Err(error) if later(&error) => wait_for(socket, PollFlags::POLLIN)?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Exchanges the names of the ports that both ends of a socket have opened. The port with the smaller name is used. Returns this
/// name if the other end has opened this port.
fn agree(fd: c_int, mine: &str) -> io::Result<Option<String>> {
    // SAFETY: the program lends this socket; `ManuallyDrop` keeps it open. If `fd` is no socket, the first call fails.
    let socket = ManuallyDrop::new(unsafe { UnixStream::from_raw_fd(fd) });
    let mut said = [0; NAME];
    said[..mine.len()].copy_from_slice(mine.as_bytes());
    swap(&socket, &mut said)?;
    let theirs = String::from_utf8_lossy(&said).trim_end_matches('\0').to_owned();
    if !is_port(&theirs) || mine == theirs {
        let text = "the other end is not in MPI_Comm_join";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((*theirs < *mine).then_some(theirs))
}

/// MPI_Comm_join.
pub(crate) unsafe fn comm_join(fd: c_int, intercomm: *mut Comm) -> Result<(), Error> {
    not_null(intercomm, "intercomm")?;
    let engine = engine()?;
    let call = WaitingCall::new("MPI_Comm_join");
    let comm = state().comm_self.get().ok_or_else(|| {
        Error::new(MPI_ERR_OTHER, "there is no MPI_COMM_SELF, since MPI_Init was not called")
    })?;
    if fd < 0 {
        return Err(Error::new(MPI_ERR_ARG, format_args!("argument fd = {fd}: it is no socket")));
    }
    let port = open(engine)?;
    let wrong = |error: io::Error| {
        Error::new(MPI_ERR_ARG, format_args!("argument fd: {}", explain(&error)))
    };
    let name = port.name().to_owned();
    let made = match run_on_thread(engine, &call, move || agree(fd, &name))?.map_err(wrong)? {
        Some(name) => {
            let found = call_port(&call, engine, comm.group(), name);
            connected(&call, comm, 0, ConnectionEnd::Calling, Some(found))?
        }
        None => {
            let found = accept_soon(&call, engine, comm.group(), &port);
            connected(&call, comm, 0, ConnectionEnd::Accepting, Some(found))?
        }
    };
    // SAFETY: `intercomm` points to room for the result, as MPI requires of the program.
    unsafe { store(intercomm, inherited(comm, Some(made)), "intercomm") }
}
