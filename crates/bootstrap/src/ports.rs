//! How processes of different jobs find each other: a port that one job opens and others call (MPI 5.0, section 11.9).
//!
//! ```text
//!   root of the accepting job                         root of the calling job
//!   Port::open: an abstract socket, a secret          Caller::call: secret, number of processes
//!   Port::next: who calls?  ◄──────────────────────── waits
//!   Port::admit: a session ─────── invitation ──────► Caller::invitation
//!        each tells its processes the invitation, by the job's own messages
//!   all processes of both jobs: Member::join, then Member::exchange as often as they like
//! ```
//! A thread of the process that opened the port takes calls, and one a session passes on what its members say: each waits for
//! its own sockets alone, so that whoever serves nobody else holds nobody up.
//!
//! Who gets in: processes of the same user (the system says who is at the other end), on this machine, that know the secret
//! in the name of the port. Whatever else connects is sent away after at most five seconds.

mod session;
pub use session::Member;

use crate::calls::{connect, repeat, start_thread};
use crate::hash;
use crate::nodes::identity;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

/// How long somebody who connects may take to say who it is.
const GREETING: Duration = Duration::from_secs(5);

/// Most of those at once; more are sent away.
const GREETINGS: usize = 256;

/// What names of ports begin with: the kind, and the version of what is spoken.
const PREFIX: &str = "weft-port-1";

/// Bytes of a greeting: secret, kind, two numbers.
const GREETING_LEN: usize = 16 + 8 * 3;

/// What a caller may be told instead of an invitation.
const GONE: &str = "the port was closed before anybody accepted";

/// A random number that nobody guesses.
fn secret() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// A name for what processes have in common that find each other by such sockets, of 16 digits.
pub fn machine() -> String {
    format!("{:016x}", hash(&identity()))
}

/// The name of a port, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    machine: String,
    socket: u128,
    secret: u128,
}

impl Address {
    fn encode(&self) -> String {
        format!("{PREFIX}:{}:{:032x}:{:032x}", self.machine, self.socket, self.secret)
    }

    fn decode(name: &str) -> Option<Address> {
        let mut parts = name.split(':');
        let mut next = || parts.next();
        let (prefix, machine, socket, secret) = (next()?, next()?, next()?, next()?);
        let number =
            |text: &str| (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok()).flatten();
        (prefix == PREFIX && next().is_none()).then_some(Address {
            machine: machine.to_owned(),
            socket: number(socket)?,
            secret: number(secret)?,
        })
    }

    fn socket(&self) -> io::Result<SocketAddr> {
        SocketAddr::from_abstract_name(format!("weft-port-{:032x}", self.socket))
    }
}

/// Whether `name` looks as names of ports do.
pub fn is_port(name: &str) -> bool {
    Address::decode(name).is_some()
}

/// What who connects wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    /// To be accepted: number of processes.
    Call = 1,
    /// To take part in a session: its number, the own place.
    Take = 2,
}

fn greeting(secret: u128, kind: Kind, numbers: [u64; 2]) -> [u8; GREETING_LEN] {
    let mut bytes = [0; GREETING_LEN];
    bytes[..16].copy_from_slice(&secret.to_le_bytes());
    for (at, number) in [kind as u64, numbers[0], numbers[1]].into_iter().enumerate() {
        bytes[16 + 8 * at..][..8].copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Connects to a port, and says what is wanted.
fn greet(name: &str, kind: Kind, numbers: [u64; 2]) -> io::Result<UnixStream> {
    let address = Address::decode(name)
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "it is no name of a port"))?;
    if address.machine != machine() {
        let text = "it is a port of another machine, or of another network name space of this one";
        return Err(Error::new(ErrorKind::Unsupported, text));
    }
    let mut stream = connect(&address.socket()?)?;
    if !is_own_user(&stream) {
        return Err(Error::new(ErrorKind::PermissionDenied, "the port is another user's"));
    }
    stream.write_all(&greeting(address.secret, kind, numbers))?;
    Ok(stream)
}

fn is_own_user(stream: &UnixStream) -> bool {
    getsockopt(stream, sockopt::PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

/// What all processes of both jobs must know to meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The name of the port.
    pub port: String,
    /// Number of the session.
    pub session: u64,
    /// Processes of the accepting job, which have the first places, and of both.
    pub accepting: usize,
    /// See [`Invitation::accepting`].
    pub all: usize,
    /// What the accepting root wants all to know: a number for a communicator.
    pub word: u64,
}

impl Invitation {
    /// What travels.
    pub fn encode(&self) -> String {
        let Invitation { port, session, accepting, all, word } = self;
        format!("{session},{accepting},{all},{word},{port}")
    }

    /// What travelled.
    pub fn decode(text: &str) -> Option<Invitation> {
        let mut parts = text.splitn(5, ',');
        let mut next = || parts.next();
        Some(Invitation {
            session: next()?.parse().ok()?,
            accepting: next()?.parse().ok()?,
            all: next()?.parse().ok()?,
            word: next()?.parse().ok()?,
            port: next()?.to_owned(),
        })
        .filter(|made| made.accepting < made.all && made.all <= 1 << 20)
    }
}

/// A job that calls, at the accepting end.
#[derive(Debug)]
pub struct Calling {
    stream: UnixStream,
    /// Its processes.
    pub size: usize,
}

/// What the thread of a port and its owner share.
struct Shared {
    address: Address,
    calls: Mutex<VecDeque<Calling>>,
    /// Where members of a session go: with their place.
    sessions: Mutex<HashMap<u64, Sender<(usize, UnixStream)>>>,
    greetings: AtomicUsize,
    closed: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Shared {
    /// The thread looks whether all is over when somebody connects.
    fn wake_thread(&self) {
        let _ = self.address.socket().and_then(|address| connect(&address));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A port of this process. Closed when it is dropped: sessions under way go on.
pub struct Port {
    shared: Arc<Shared>,
    name: String,
}

impl Port {
    /// Opens a port. `wake` is called, by another thread, when somebody calls.
    pub fn open(wake: impl Fn() + Send + Sync + 'static) -> io::Result<Port> {
        let address = Address { machine: machine(), socket: secret()?, secret: secret()? };
        let listener = UnixListener::bind_addr(&address.socket()?)?;
        let name = address.encode();
        let shared = Arc::new(Shared {
            address,
            calls: Mutex::default(),
            sessions: Mutex::default(),
            greetings: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            wake: Box::new(wake),
        });
        let port = Port { shared: shared.clone(), name };
        start_thread("weft-port", move || listen(&listener, &shared))?;
        Ok(port)
    }

    /// What others call it by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The job that has called first of those that were not accepted yet.
    pub fn next(&self) -> Option<Calling> {
        lock(&self.shared.calls).pop_front()
    }

    /// Begins a session between `accepting` processes and those of a caller, whose root is told. `patience`: how long
    /// all may take to join, and to say what they have to say in each round. An error if the caller is gone.
    pub fn admit(
        &self,
        calling: Calling,
        accepting: usize,
        word: u64,
        patience: Duration,
    ) -> io::Result<Invitation> {
        let session = secret()? as u64;
        let all = accepting + calling.size;
        let invitation = Invitation { port: self.name.clone(), session, accepting, all, word };
        let (sender, members) = channel();
        lock(&self.shared.sessions).insert(session, sender);
        let shared = self.shared.clone();
        start_thread("weft-session", move || {
            let _ = session::serve(&members, all, patience);
            lock(&shared.sessions).remove(&session);
            if shared.closed.load(Ordering::Acquire) {
                shared.wake_thread();
            }
        })?;
        session::say(&calling.stream, invitation.encode().as_bytes())?;
        Ok(invitation)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::Release);
        lock(&self.shared.calls).clear();
        self.shared.wake_thread();
    }
}

/// Takes who connects, until the port is closed and its last session over.
fn listen(listener: &UnixListener, shared: &Arc<Shared>) {
    loop {
        let Ok((stream, _)) = repeat(|| listener.accept()) else {
            // Out of descriptors, for the moment.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if shared.closed.load(Ordering::Acquire) && lock(&shared.sessions).is_empty() {
            return;
        }
        if !is_own_user(&stream) || shared.greetings.load(Ordering::Relaxed) >= GREETINGS {
            continue;
        }
        shared.greetings.fetch_add(1, Ordering::Relaxed);
        let seen = shared.clone();
        let spawned = start_thread("weft-greeting", move || {
            hear(&seen, stream);
            seen.greetings.fetch_sub(1, Ordering::Relaxed);
        });
        if spawned.is_err() {
            shared.greetings.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Hears what somebody wants who has connected, and sees to it.
fn hear(shared: &Shared, mut stream: UnixStream) {
    let mut said = [0; GREETING_LEN];
    let _ = stream.set_read_timeout(Some(GREETING));
    if stream.read_exact(&mut said).is_err() || said[..16] != shared.address.secret.to_le_bytes() {
        return;
    }
    let number =
        |at: usize| u64::from_le_bytes(said[16 + 8 * at..][..8].try_into().expect("8 of them"));
    let _ = stream.set_read_timeout(None);
    if number(0) == Kind::Call as u64 && (1..1 << 20).contains(&number(1)) {
        if shared.closed.load(Ordering::Acquire) {
            return;
        }
        lock(&shared.calls).push_back(Calling { stream, size: number(1) as usize });
        (shared.wake)();
    } else if number(0) == Kind::Take as u64
        && let Some(session) = lock(&shared.sessions).get(&number(1))
    {
        let _ = session.send((number(2) as usize, stream));
    }
}

/// A call of this job to a port, at its root.
pub struct Caller {
    stream: UnixStream,
}

impl Caller {
    /// Calls the port `name` for a job of `size` processes.
    pub fn call(name: &str, size: usize) -> io::Result<Caller> {
        Ok(Caller { stream: greet(name, Kind::Call, [size as u64, 0])? })
    }

    /// Waits until the call is accepted, for at most `patience`.
    pub fn invitation(&mut self, patience: Duration) -> io::Result<Invitation> {
        self.stream.set_read_timeout(Some(patience))?;
        let said = session::hear(&self.stream).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => Error::new(ErrorKind::ConnectionRefused, GONE),
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                let text = format!("nobody accepted within {} s", patience.as_secs_f64());
                Error::new(ErrorKind::TimedOut, text)
            }
            _ => error,
        })?;
        let invitation = std::str::from_utf8(&said).ok().and_then(Invitation::decode);
        invitation.ok_or_else(|| ErrorKind::InvalidData.into())
    }
}

#[cfg(test)]
mod tests;
