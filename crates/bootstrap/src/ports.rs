//! Ports, by which processes of different jobs find each other: a job opens a port, and other jobs call it (MPI 5.0, section
//! 11.9).
//!
//! ```text
//!   root of the accepting job                         root of the calling job
//!   Port::open: a socket, a secret                    Caller::call: number of processes
//!   Port::next: a call       ◄──────────────────────── waits
//!   Port::admit: a session ─────── invitation ──────► Caller::invitation; stays connected until all processes have met
//!        each root passes the invitation to its processes, by the job's own messages
//!   all processes of both jobs: Member::join, then Member::exchange as often as they like
//! ```
//! A thread of the process that opened the port takes calls. Each session has a further thread, which passes on the members'
//! messages. The socket is an abstract Unix socket, for processes of one machine, or a TCP socket.
//!
//! A process must prove that it knows the secret in the name of the port. On one machine the process must also belong to the same
//! user, as reported by the system. Any other connection is closed after at most five seconds (`unknown.rs`).

mod address;
mod greeting;
mod session;
mod session_monitor;
mod unknown;

pub use address::{is_on_network, is_port, machine};
pub use session::Member;
pub use session_monitor::SessionMonitor;

use crate::calls::start_thread;
use crate::keyed_hash_128;
use address::{Address, Listener};
use greeting::Wish;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;
use unknown::{KnownProcess, Strangers, UNKNOWN};

/// A connection within this machine or over a network. The standard library's type for local sockets can also read, write and
/// poll TCP sockets.
type Stream = UnixStream;

/// Maximum number of repeated attempts of a caller whose connection was closed before its greeting was read.
const AGAIN: usize = 8;

/// Message to a caller instead of an invitation.
const GONE: &str = "the port was closed before anybody accepted";

/// Returns a random number that nobody can guess.
fn secret() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// Connects to a port, and sends a wish.
fn greet(name: &str, wish: Wish) -> io::Result<Stream> {
    let address = Address::decode(name)
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "the text is not the name of a port"))?;
    let mut tries = 0;
    loop {
        let stream = address.connect()?;
        match greeting::ask(&stream, address.secret, wish) {
            Ok(()) => return Ok(stream),
            // The port may have closed this connection because there were too many strangers. So this function connects again.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted && tries < AGAIN => {
                tries += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Facts by which the processes of both jobs join the same session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// Name of the port.
    pub port: String,
    /// Number of the session.
    pub session: u64,
    /// Place in the session of the process that has opened the port.
    pub root: usize,
    /// Number of processes of the accepting job, which have the first places.
    pub accepting: usize,
    /// Number of processes of both jobs.
    pub all: usize,
    /// Number that the accepting root passes to all processes, for a communicator.
    pub word: u64,
}

impl Invitation {
    /// Returns the secret of the session, which only its members know. It follows from the port's secret, and is never sent.
    pub fn secret(&self) -> u128 {
        let port = Address::decode(&self.port).map_or(0, |address| address.secret);
        keyed_hash_128(port, ("link", self.session))
    }

    /// Encodes the invitation as text.
    pub fn encode(&self) -> String {
        let Invitation { port, session, root, accepting, all, word } = self;
        format!("{session},{root},{accepting},{all},{word},{port}")
    }

    /// Decodes an invitation. Returns `None` if the text is malformed.
    pub fn decode(text: &str) -> Option<Invitation> {
        let mut parts = text.splitn(6, ',');
        let mut next = || parts.next();
        Some(Invitation {
            session: next()?.parse().ok()?,
            root: next()?.parse().ok()?,
            accepting: next()?.parse().ok()?,
            all: next()?.parse().ok()?,
            word: next()?.parse().ok()?,
            port: next()?.to_owned(),
        })
        .filter(|made| {
            made.root < made.accepting && made.accepting < made.all && made.all <= 1 << 20
        })
    }
}

/// A calling job, at the accepting end.
#[derive(Debug)]
pub struct Calling {
    stream: Stream,
    /// Number of processes of the calling job.
    pub size: usize,
}

/// State that the thread of a port and its owner share.
struct Shared {
    address: Address,
    calls: Mutex<VecDeque<Calling>>,
    /// Channel to the thread of each session, which receives new members with their places.
    sessions: Mutex<HashMap<u64, Sender<(usize, Stream)>>>,
    closed: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
    /// Write end of a pipe. A byte in the pipe wakes the thread, which reads the other end.
    alarm: UnixStream,
}

impl Shared {
    /// Wakes the thread, which then checks if the port is closed and its sessions have ended.
    fn wake_thread(&self) {
        // If the pipe is full, the write fails, but the thread wakes anyway.
        let _ = (&self.alarm).write(&[0]);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Processes that accept a caller.
#[derive(Debug, Clone, Copy)]
pub struct AcceptingGroup {
    /// Place of this process among them.
    pub root: usize,
    /// Number of processes.
    pub size: usize,
}

/// A port of this process. Dropping the value closes the port; its sessions go on.
pub struct Port {
    shared: Arc<Shared>,
    name: String,
}

impl Port {
    /// Opens a port, for this machine or at its address `at` of a network. Another thread calls `wake` when a job calls the port.
    pub fn open(at: Option<IpAddr>, wake: impl Fn() + Send + Sync + 'static) -> io::Result<Port> {
        let (listener, address) = Listener::open(at)?;
        let (alarm, awake) = UnixStream::pair()?;
        for end in [&alarm, &awake] {
            end.set_nonblocking(true)?;
        }
        let name = address.encode();
        let shared = Arc::new(Shared {
            address,
            calls: Mutex::default(),
            sessions: Mutex::default(),
            closed: AtomicBool::new(false),
            wake: Box::new(wake),
            alarm,
        });
        let port = Port { shared: shared.clone(), name };
        start_thread("weft-port", move || listen(&listener, &awake, &shared))?;
        Ok(port)
    }

    /// Returns the name by which other jobs call the port.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes the earliest call that was not accepted yet.
    pub fn next(&self) -> Option<Calling> {
        lock(&self.shared.calls).pop_front()
    }

    /// Begins a session between the accepting processes and the processes of a caller, whose root gets the invitation. `patience` is the maximum time for all processes to join, and for each round. Fails if the
    /// caller is gone.
    pub fn admit(
        &self,
        calling: Calling,
        group: AcceptingGroup,
        word: u64,
        patience: Duration,
    ) -> io::Result<Invitation> {
        let AcceptingGroup { root, size: accepting } = group;
        let session = secret()? as u64;
        let all = accepting + calling.size;
        let invitation =
            Invitation { port: self.name.clone(), session, root, accepting, all, word };
        let (sender, members) = channel();
        lock(&self.shared.sessions).insert(session, sender);
        let shared = self.shared.clone();
        let sent = session::say(&calling.stream, invitation.encode().as_bytes());
        let begun = sent.and_then(|()| {
            start_thread("weft-session", move || {
                let _ = session::serve(&members, &calling.stream, all, patience);
                lock(&shared.sessions).remove(&session);
                if shared.closed.load(Ordering::Acquire) {
                    shared.wake_thread();
                }
            })
        });
        begun.inspect_err(|_| drop(lock(&self.shared.sessions).remove(&session)))?;
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

/// Takes connections until the port is closed and its last session has ended.
fn listen(listener: &Listener, awake: &UnixStream, shared: &Shared) {
    let mut strangers = Strangers::new(shared.address.secret);
    loop {
        let ready = wait(listener, awake, &strangers);
        let [called, woken, spoke @ ..] = &ready[..] else { return };
        if *woken {
            let _ = (&mut &*awake).read(&mut [0; 64]);
        }
        if shared.closed.load(Ordering::Acquire) && lock(&shared.sessions).is_empty() {
            return;
        }
        strangers.hear(spoke).into_iter().for_each(|known| grant(shared, known));
        if *called {
            take_connections(listener, &mut strangers, shared);
        }
    }
}

/// Waits for a new connection, bytes of a stranger, a wake-up, or the end of a greeting's time. Returns, for the listener, the
/// alarm and each stranger in this order, true if it may be ready.
fn wait(listener: &Listener, awake: &UnixStream, strangers: &Strangers) -> Vec<bool> {
    let first = [listener.as_fd(), awake.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
    let mut all: Vec<PollFd<'_>> = first.into_iter().chain(strangers.polled()).collect();
    // One millisecond more makes sure that the limit has passed after the wait.
    let limit = strangers.time_left().map(|left| left + Duration::from_millis(1));
    let limit = limit.and_then(|limit| PollTimeout::try_from(limit).ok());
    match poll(&mut all, limit.unwrap_or(PollTimeout::NONE)) {
        Ok(_) => all.iter().map(|one| one.any().unwrap_or(true)).collect(),
        Err(error) => {
            if error != Errno::EINTR {
                // The kernel is short of memory for a moment.
                thread::sleep(Duration::from_millis(50));
            }
            vec![true; all.len()]
        }
    }
}

/// Takes new connections. Stops after some of them, so that a flood of connections leaves time to read from the strangers.
fn take_connections(listener: &Listener, strangers: &mut Strangers, shared: &Shared) {
    for _ in 0..UNKNOWN / 4 {
        match listener.accept() {
            Ok(Some(stream)) => {
                strangers.add(stream).into_iter().for_each(|known| grant(shared, known));
            }
            Ok(None) => {}
            Err(error) => match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EAGAIN) => return,
                Some(Errno::EMFILE | Errno::ENFILE) if !strangers.is_empty() => {
                    strangers.dismiss().into_iter().for_each(|known| grant(shared, known));
                }
                Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOMEM | Errno::ENOBUFS) => {
                    thread::sleep(Duration::from_millis(50));
                    return;
                }
                // The connection has already ended.
                _ => {}
            },
        }
    }
}

/// Grants the wish of a process that knows the secret.
fn grant(shared: &Shared, known: KnownProcess) {
    let KnownProcess { wish, stream } = known;
    match wish {
        Wish::Call(size) if !shared.closed.load(Ordering::Acquire) => {
            lock(&shared.calls).push_back(Calling { stream, size: size as usize });
            (shared.wake)();
        }
        Wish::Call(_) => {}
        Wish::Take(session, place) => {
            if let Some(session) = lock(&shared.sessions).get(&session) {
                let _ = session.send((place as usize, stream));
            }
        }
    }
}

/// A call of this job to a port, at the job's root. The root keeps the value until all processes of the job have joined the
/// session. If the root drops the value earlier, the port assumes that the job has ended.
pub struct Caller {
    stream: Stream,
}

impl Caller {
    /// Calls the port `name` for a job of `size` processes.
    pub fn call(name: &str, size: usize) -> io::Result<Caller> {
        Ok(Caller { stream: greet(name, Wish::Call(size as u64))? })
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
