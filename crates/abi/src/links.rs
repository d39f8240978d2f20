//! Links to other jobs: their processes become peers of this process, and leave again (MPI 5.0, chapter 11).
//!
//! ```text
//!   root      opens a port and waits, or calls a port          bootstrap: ports
//!   root      sends its group the invitation, or an error      process: tell_all
//!   all       join the session, and introduce themselves
//!   all       become peers                                     fabric-shm, fabric-ofi or fabric-verbs: foreign
//!   all       the intercommunicator, with the number of the invitation
//! ```

use crate::arguments::{intracomm, not_null, rank};
use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::engine::{CommObject, Engine};
use crate::error::Error;
use crate::lanes;
use crate::settings;
use crate::settings::agreement::jobs::{self, JobSettings};
use crate::types::Comm;
use crate::waiting::WaitingCall;
use std::cell::RefCell;
use std::ffi::c_int;
use std::io;
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Duration;
use weft_bootstrap::calls::{Occupied, start_thread};
use weft_bootstrap::limits::explain;
use weft_bootstrap::nodes;
use weft_bootstrap::ports::{Caller, Invitation, Member};
use weft_fabric::Fabric;
use weft_job_connections::{Connectable, PeerIdentity, SessionMembers};
use weft_job_fabric::{JobTransport, SharedConnection};
use weft_process::{ForeignPeer, Group, LinkId};

mod introduction;

use introduction::Introduction;

/// A link to another job, with its numbers in the fabric and in the engine.
struct LiveConnection {
    shared: SharedConnection,
    id: LinkId,
}

/// All links of the process.
static LINKS: ChapterState<RefCell<Vec<LiveConnection>>> =
    ChapterState::new(RefCell::new(Vec::new()));

/// Role of this job in a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// This job opened the port.
    Accepting,
    /// This job called the port.
    Calling,
}

/// Returns the transport of this job to processes of other jobs. Errors: MPI_ERR_UNSUPPORTED_OPERATION if there is no such
/// transport.
pub fn transport(engine: &Engine) -> Result<JobTransport<'_>, Error> {
    JobTransport::of(engine.endpoint().fabric())
        .map_err(|text| Error::new(MPI_ERR_UNSUPPORTED_OPERATION, text))
}

/// Returns the maximum time that connecting may take (`WEFT_CONNECT_TIMEOUT`).
pub fn patience() -> Result<Duration, Error> {
    let seconds = settings::number("WEFT_CONNECT_TIMEOUT");
    Ok(Duration::from_secs(seconds.map_err(|text| Error::new(MPI_ERR_OTHER, text))?))
}

/// Runs `f` on a new thread. Meanwhile the calling thread progresses messages, and lets other threads enter the library.
pub fn run_on_thread<T: Send + 'static>(
    engine: &Engine,
    call: &WaitingCall,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let (sender, receiver) = channel();
    let sleeper = engine.endpoint().fabric().sleeper();
    let run = move || {
        let _ = sender.send(f());
        sleeper.ring();
    };
    start_thread("weft-link", run)
        .map_err(|error| Error::new(MPI_ERR_OTHER, format_args!("a thread: {error}")))?;
    Ok(engine.drive(call, || receiver.try_recv().ok()))
}

/// An invitation to a session, at the root.
pub struct FoundInvitation {
    pub invitation: Invitation,
    /// The connection of a calling job to the port. It stays open until all processes have met. If the connection closes earlier,
    /// the port assumes that the calling job has ended.
    #[allow(dead_code, reason = "kept connected")]
    pub caller: Option<Caller>,
}

/// Encodes the message of the root to its group: the invitation, or the error.
pub fn news(found: &Result<FoundInvitation, Error>) -> String {
    match found {
        Ok(found) => format!("+{}", found.invitation.encode()),
        Err(error) => format!("-{},{}", error.class(), error.text()),
    }
}

/// Returns the intercommunicator of `comm` with the job at the other end. `found` is given only at `root`: the invitation, or an
/// error, which all ranks then return. Collective over both groups.
pub fn connected(
    call: &WaitingCall,
    comm: &Rc<CommObject>,
    root: usize,
    end: ConnectionEnd,
    found: Option<Result<FoundInvitation, Error>>,
) -> Result<Rc<CommObject>, Error> {
    let engine = comm.engine();
    let said = found.as_ref().map_or_else(String::new, news);
    let told = engine.block_on(call, comm.tell_all(root, said.into_bytes()))?;
    let found = match found {
        Some(found) => found?,
        None => {
            FoundInvitation { invitation: invited(&String::from_utf8_lossy(&told))?, caller: None }
        }
    };
    linked(call, engine, comm.group(), end, &found.invitation)
}

/// Returns the intercommunicator of `group` with the processes at the other end of a session. All members of both groups join the
/// session. The members need not have met before, and may belong to many jobs.
pub fn linked(
    call: &WaitingCall,
    engine: &Rc<Engine>,
    group: &Group,
    end: ConnectionEnd,
    invitation: &Invitation,
) -> Result<Rc<CommObject>, Error> {
    // If the program has closed standard input, output or error, the library's own descriptors must not get the closed descriptors'
    // numbers.
    let _occupied = Occupied::standard();
    drop_idle_connections(engine);
    let own = group.rank_of(engine.rank() as u32).expect("only members call");
    let place = own + if end == ConnectionEnd::Calling { invitation.accepting } else { 0 };
    let lost = |error: io::Error| {
        Error::new(MPI_ERR_PORT, format_args!("connecting: {}", explain(&error)))
    };
    let (patience, joining) = (patience()?, invitation.clone());
    let join = move || Member::join(&joining, place, patience);
    let member = run_on_thread(engine, call, join)?.map_err(lost)?;
    let mut exchange = |bytes: Vec<u8>| {
        let member = member.try_clone().map_err(|error| explain(&error))?;
        let said = run_on_thread(engine, call, move || member.exchange(&bytes));
        let said = said.map_err(|error| error.text().to_owned())?;
        said.map_err(|error| explain(&error))
    };
    // Errors of the fabric itself already mention the connection.
    let failed = |text: String| {
        let prefix = if text.starts_with("connecting") { "" } else { "connecting: " };
        Error::new(MPI_ERR_PORT, format!("{prefix}{text}"))
    };
    let way = transport(engine)?;
    let settings = JobSettings::own().map_err(failed)?;
    let own = Introduction::own(engine, way, &settings);
    let said = Introduction::all(&exchange(own.encode()).map_err(failed)?).map_err(failed)?;
    // All processes of both jobs see the same hashes. So either all of them take part in a further exchange, or none.
    if said.iter().any(|one| one.settings != own.settings) {
        let values = exchange(settings.encode()).map_err(failed)?;
        let jobs: Vec<u64> = said.iter().map(|one| one.identity.job).collect();
        return Err(refused(call, jobs::refusal(own.identity.job, &jobs, &values)));
    }
    let alike = said.iter().try_for_each(|one| own.check(one));
    alike.map_err(|text| refused(call, text))?;
    let whom = |one: &Introduction| {
        let identity = one.identity;
        let of_own_job = (identity.job == own.identity.job).then_some(identity.rank);
        PeerIdentity {
            job: identity.job,
            rank: one.near,
            node: one.node,
            known: of_own_job.or_else(|| engine.known(identity)).map(|peer| peer as usize),
        }
    };
    let identities: Vec<PeerIdentity> = said.iter().map(whom).collect();
    let machines: Vec<&str> = said.iter().map(|one| one.machine.as_str()).collect();
    let members = SessionMembers { identities: &identities, place };
    let secret = invitation.secret();
    let shared = way.admit(members, &machines, secret, &member, &mut exchange).map_err(failed)?;
    let number = |place: usize| shared.peers()[place] as u32;
    let new =
        (0..identities.len()).filter(|&place| shared.new_peers().contains(&shared.peers()[place]));
    let new: Vec<ForeignPeer> = new.map(|place| said[place].as_peer(number(place))).collect();
    let id = engine.add_link(&new);
    let others = match end {
        ConnectionEnd::Accepting => invitation.accepting..identities.len(),
        ConnectionEnd::Calling => 0..invitation.accepting,
    };
    let remote = Group::new(others.map(number).collect::<Vec<_>>());
    let made = CommObject::between_jobs(engine, invitation.word, group, remote);
    LINKS.borrow_mut().push(LiveConnection { shared, id });
    update_oversubscription(engine);
    Ok(made)
}

/// Returns the error of jobs that cannot be connected.
fn refused(call: &WaitingCall, text: String) -> Error {
    let is_spawn = call.name.starts_with("MPI_Comm_spawn");
    Error::new(if is_spawn { MPI_ERR_SPAWN } else { MPI_ERR_PORT }, text)
}

/// Decodes the message of the root: an invitation, or the error of the root.
pub fn invited(told: &str) -> Result<Invitation, Error> {
    let damaged = || Error::new(MPI_ERR_INTERN, "what the root has told is no invitation");
    if let Some(rest) = told.strip_prefix('-') {
        let (class, text) = rest.split_once(',').ok_or_else(damaged)?;
        return Err(Error::new(class.parse().unwrap_or(MPI_ERR_OTHER), text));
    }
    told.strip_prefix('+').and_then(Invitation::decode).ok_or_else(damaged)
}

/// Leaves links that no communicator needs any more.
pub fn drop_idle_connections(engine: &Engine) {
    let Ok(way) = transport(engine) else { return };
    let mut links = LINKS.borrow_mut();
    let before = links.len();
    links.retain(|link| {
        let idle = link.id.is_idle();
        if idle {
            way.say_left(&link.shared);
            engine.forget_link(&link.id);
            way.forget(link.shared.clone());
        }
        !idle
    });
    if links.len() < before {
        update_oversubscription(engine);
    }
}

/// Passes to the wait policy the number of processes that share the processors of this machine, including processes of other jobs.
/// If there are too few processors, processes that wait yield their processor. The costs of long messages follow, too, whether there are
/// lanes or not.
fn update_oversubscription(engine: &Engine) {
    let fabric = engine.endpoint().fabric();
    if let Some(shm) = fabric.shm().filter(|_| !nodes::are_faked()) {
        engine.policy().crowd(shm.processes(), shm.processors());
        lanes::TURNS.share(shm.processes(), shm.processors());
    }
}

/// Leaves all links, and waits until all connected processes have left them, too (MPI_Finalize).
pub fn leave_all(engine: &Engine, call: &WaitingCall) -> Result<(), Error> {
    let links = std::mem::take(&mut *LINKS.borrow_mut());
    let fabric = engine.endpoint().fabric();
    // Over a network, members exchange notices only while the process with the port lives. If a process ended before all have left
    // their links, the others would take it for lost.
    let parted = || fabric.linkable().is_none_or(Connectable::has_parted);
    if links.is_empty() && parted() {
        return Ok(());
    }
    let way = transport(engine)?;
    engine.drive(call, || fabric.idle().then_some(()));
    links.iter().for_each(|link| way.say_left(&link.shared));
    let all_left = || links.iter().all(|link| link.shared.others_left());
    let fault = engine.drive(call, || {
        let fault = fabric.fault();
        (fault.is_some() || all_left() && parted()).then_some(fault)
    });
    if let Some(fault) = fault.filter(|_| !all_left()) {
        return Err(weft_process::Error::from(fault).into());
    }
    for link in links {
        engine.forget_link(&link.id);
        way.forget(link.shared);
    }
    Ok(())
}

/// Checks the arguments of a collective call that connects jobs. Returns the communicator of the call, and the rank of the root.
/// `to` is the address at which the new communicator is stored, and `argument` is the name of that argument.
pub fn group_and_root(
    handle: Comm,
    root: c_int,
    to: *mut Comm,
    argument: &str,
) -> Result<(Rc<CommObject>, usize), Error> {
    not_null(to, argument)?;
    let comm = intracomm(handle)?;
    transport(comm.engine())?;
    let root = rank(&comm, root, "root", MPI_ERR_ROOT)?;
    Ok((comm, root))
}
