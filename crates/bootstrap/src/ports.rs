//! How processes of different jobs find each other: a port that one job opens and others call (MPI 5.0, section 11.9).
//!
//! ```text
//!   root of the accepting job                         root of the calling job
//!   Port::open: a socket, a secret                    Caller::call: number of processes
//!   Port::next: who calls?  ◄──────────────────────── waits
//!   Port::admit: a session ─────── invitation ──────► Caller::invitation
//!        each tells its processes the invitation, by the job's own messages
//!   all processes of both jobs: Member::join, then Member::exchange as often as they like
//! ```
//! A thread of the process that opened the port takes calls, and one a session passes on what its members say: each waits for
//! its own sockets alone, so that whoever serves nobody else holds nobody up. The socket is an abstract one, which reaches all of
//! one machine, or one of TCP.
//!
//! Who gets in: processes that prove to know the secret in the name of the port; on one machine they must be of the same user, too
//! (the system says who is at the other end). Whatever else connects is sent away after at most five seconds.

mod address;
mod greeting;
mod life;
mod session;

pub use address::{is_on_network, is_port, machine};
pub use life::Life;
pub use session::Member;

use crate::calls::start_thread;
use crate::keyed_hash;
use address::{Address, Listener};
use greeting::Wish;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Error, ErrorKind};
use std::net::IpAddr;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A connection, of this machine or of a network: all that is done with one is to read, to write and to wait, which the standard
/// library's type for local sockets does for both.
type Stream = UnixStream;

/// Those at once who have connected and not said who they are; more are sent away.
const GREETINGS: usize = 256;

/// What a caller may be told instead of an invitation.
const GONE: &str = "the port was closed before anybody accepted";

/// A random number that nobody guesses.
fn secret() -> io::Result<u128> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(u128::from_ne_bytes(bytes))
}

/// Connects to a port, and says what is wanted.
fn greet(name: &str, wish: Wish) -> io::Result<Stream> {
    let address = Address::decode(name)
        .ok_or_else(|| Error::new(ErrorKind::InvalidInput, "it is no name of a port"))?;
    let stream = address.connect()?;
    greeting::ask(&stream, address.secret, wish)?;
    Ok(stream)
}

/// What all processes of both jobs must know to meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The name of the port.
    pub port: String,
    /// Number of the session.
    pub session: u64,
    /// The place of the process whose port it is.
    pub root: usize,
    /// Processes of the accepting job, which have the first places, and of both.
    pub accepting: usize,
    /// See [`Invitation::accepting`].
    pub all: usize,
    /// What the accepting root wants all to know: a number for a communicator.
    pub word: u64,
}

impl Invitation {
    /// What the members of the session alone know, and is never said: it follows from the port's secret.
    pub fn secret(&self) -> u64 {
        let port = Address::decode(&self.port).map_or(0, |address| address.secret);
        keyed_hash([port as u64, (port >> 64) as u64], ("link", self.session))
    }

    /// What travels.
    pub fn encode(&self) -> String {
        let Invitation { port, session, root, accepting, all, word } = self;
        format!("{session},{root},{accepting},{all},{word},{port}")
    }

    /// What travelled.
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

/// A job that calls, at the accepting end.
#[derive(Debug)]
pub struct Calling {
    stream: Stream,
    /// Its processes.
    pub size: usize,
}

/// What the thread of a port and its owner share.
struct Shared {
    address: Address,
    calls: Mutex<VecDeque<Calling>>,
    /// Where members of a session go: with their place.
    sessions: Mutex<HashMap<u64, Sender<(usize, Stream)>>>,
    greetings: AtomicUsize,
    closed: AtomicBool,
    wake: Box<dyn Fn() + Send + Sync>,
}

impl Shared {
    /// The thread looks whether all is over when somebody connects.
    fn wake_thread(&self) {
        let _ = self.address.connect();
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
    /// Opens a port, for this machine or at its address `at` of a network. `wake` is called, by another thread, when somebody
    /// calls.
    pub fn open(at: Option<IpAddr>, wake: impl Fn() + Send + Sync + 'static) -> io::Result<Port> {
        let (listener, address) = Listener::open(at)?;
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

    /// Begins a session between `accepting` processes, of which this is the one at `root`, and those of a caller, whose root is
    /// told. `patience`: how long all may take to join, and to say what they have to say in each round. An error if the caller is
    /// gone.
    pub fn admit(
        &self,
        calling: Calling,
        (root, accepting): (usize, usize),
        word: u64,
        patience: Duration,
    ) -> io::Result<Invitation> {
        let session = secret()? as u64;
        let all = accepting + calling.size;
        let invitation =
            Invitation { port: self.name.clone(), session, root, accepting, all, word };
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
fn listen(listener: &Listener, shared: &Arc<Shared>) {
    loop {
        let Ok(stream) = listener.accept() else {
            // Out of descriptors, for the moment.
            thread::sleep(Duration::from_millis(50));
            continue;
        };
        if shared.closed.load(Ordering::Acquire) && lock(&shared.sessions).is_empty() {
            return;
        }
        let Some(stream) = stream else { continue };
        if shared.greetings.load(Ordering::Relaxed) >= GREETINGS {
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
fn hear(shared: &Shared, stream: Stream) {
    match greeting::answer(&stream, shared.address.secret) {
        Ok(Wish::Call(size)) if !shared.closed.load(Ordering::Acquire) => {
            lock(&shared.calls).push_back(Calling { stream, size: size as usize });
            (shared.wake)();
        }
        Ok(Wish::Take(session, place)) => {
            if let Some(session) = lock(&shared.sessions).get(&session) {
                let _ = session.send((place as usize, stream));
            }
        }
        _ => {}
    }
}

/// A call of this job to a port, at its root.
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
