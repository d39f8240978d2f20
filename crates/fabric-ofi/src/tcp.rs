//! TCP without a library: reliable datagrams and remote memory access over one connection for each pair of processes that talk.
//!
//! ```text
//!   message ────► a frame; the kernel copies it from the sender's memory to the buffer that waits for it
//!   write ──────► a frame; from memory to memory, acknowledged with whatever is sent next
//!   read ───────► a question, and a frame of the same kind back
//! ```
//! One of the ways of [`crate::object`], beside libfabric's: a machine without any package crosses Ethernet by it, and a message
//! costs one system call at each end. It goes on when it is looked at, as libfabric's own TCP does.
//!
//! Contract. All threads may call it, one at a time: there is a lock. What a peer sends is checked before anything is done with it:
//! memory is reached by key, address and length within what was registered, and a peer that breaks the rules of frames is cut off.

mod arrive;
mod connection;
mod frame;
mod greet;
mod interfaces;
mod pace;
mod reader;

pub use connection::Context;
pub use frame::{decode_name, encode_name};
pub use interfaces::{Interface, interfaces};

use crate::ffi::fi_cq_msg_entry;
use connection::{Link, Peer, Shared};
use greet::Door;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weft_fabric::Sge;

/// What the epoll set calls those who connect; peers have their numbers there, strangers theirs behind `STRANGER`.
const DOOR: u64 = u64::MAX;
const STRANGER: u64 = 1 << 63;

/// Events that are taken at a time.
const EVENTS: usize = 32;

/// What a look has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// So many operations are over.
    Over(usize),
    /// None is, but bytes have moved.
    Moved,
    Nothing,
}

/// One process's endpoint at one address.
pub struct Tcp {
    name: SocketAddr,
    wait: RawFd,
    /// Pieces that wait for room.
    unsent: Arc<AtomicUsize>,
    inner: Mutex<Inner>,
}

struct Inner {
    name: SocketAddr,
    epoll: Epoll,
    door: Door,
    /// The job's, as soon as it is known.
    secret: Option<u64>,
    peers: Vec<Peer>,
    /// By name: a process of another job may be known once for each link with it.
    numbers: HashMap<SocketAddr, Vec<u32>>,
    /// Numbers that were taken out.
    free: Vec<u32>,
    /// Those with a connection.
    open: Vec<u32>,
    shared: Shared,
    /// Peers whose connection is over, with errno.
    gone: VecDeque<(u32, i32)>,
}

impl Inner {
    /// What this process and a peer know, and no stranger does.
    fn secret_with(&self, at: usize) -> Option<u64> {
        self.peers[at].secret.or(self.secret)
    }

    /// Tells the epoll set what to wait for on a peer's socket.
    fn watch(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        let wanted = peer.wanted();
        if wanted == peer.interest {
            return;
        }
        let before = std::mem::replace(&mut peer.interest, wanted);
        let Some(fd) = peer.fd() else { return };
        let mut event = EpollEvent::new(wanted, at as u64);
        // What cannot be waited for is found by looks.
        let _ = match before.is_empty() {
            true => self.epoll.add(fd, event).or_else(|_| self.epoll.modify(fd, &mut event)),
            false => self.epoll.modify(fd, &mut event),
        };
    }

    /// Before a peer's socket is closed: a child of this process may have it, too, and then closing does not take it out.
    fn unwatch(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.interest = EpollFlags::empty();
        if let Some(fd) = peer.fd() {
            let _ = self.epoll.delete(fd);
        }
    }

    fn watch_stranger(&self, stream: &TcpStream, number: u64) {
        let _ = self.epoll.add(stream, EpollEvent::new(EpollFlags::EPOLLIN, STRANGER | number));
    }

    fn unwatch_stranger(&self, stream: &TcpStream) {
        let _ = self.epoll.delete(stream);
    }

    /// A peer's connection is over.
    fn end(&mut self, at: usize, error: i32) {
        if matches!(self.peers[at].link, Link::Ended(_)) {
            return;
        }
        self.unwatch(at);
        self.open.retain(|&one| one as usize != at);
        self.peers[at].end(&mut self.shared, error);
        self.gone.push_back((at as u32, error));
    }

    /// Sends what waits for a peer.
    fn flush(&mut self, at: usize) -> bool {
        match self.peers[at].flush(&mut self.shared) {
            Ok(moved) => {
                self.watch(at);
                moved
            }
            Err(error) => self.breaks(at, error),
        }
    }

    /// A peer takes nothing more. What it has sent before is still read, up to the end.
    fn breaks(&mut self, at: usize, error: i32) -> bool {
        while let Ok(true) = self.peers[at].read(&mut self.shared) {}
        self.end(at, error);
        true
    }

    /// Reads from a peer, and sends what waits for it.
    fn move_on(&mut self, at: usize) -> bool {
        let moved = match self.peers[at].read(&mut self.shared) {
            Ok(moved) => moved,
            Err(error) => {
                self.end(at, error);
                return true;
            }
        };
        let flushed = self.peers[at].has_waiting() && self.flush(at);
        self.peers[at].collect(self.shared.unattended);
        self.watch(at);
        moved | flushed
    }

    /// Looks at all sockets; whether anything has moved.
    fn look(&mut self) -> bool {
        // Asked first: a read of a socket locks it, and what arrives meanwhile is left for the reader to take in.
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        for event in &events[..count] {
            match event.data() {
                DOOR => self.take_strangers(),
                number if number & STRANGER != 0 => self.hear_stranger(number & !STRANGER),
                at => match self.peers[at as usize].link {
                    Link::Connecting(_) => self.is_connected(at as usize),
                    Link::Asked(..) => self.hear_answer(at as usize),
                    Link::Open(_) => _ = self.move_on(at as usize),
                    _ => {}
                },
            }
        }
        count > 0
    }

    /// Reads from those that had no buffer for a message, when there is one.
    fn resume(&mut self) -> bool {
        let mut moved = false;
        for place in 0..self.open.len() {
            let Some(&at) = self.open.get(place) else { break };
            if self.peers[at as usize].reader.is_stalled() && !self.shared.posted.is_empty() {
                moved |= self.move_on(at as usize);
            }
        }
        moved
    }

    /// Whether a peer waits for a buffer that is there.
    fn can_resume(&self) -> bool {
        let stalled = |&at: &u32| self.peers[at as usize].reader.is_stalled();
        !self.shared.posted.is_empty() && self.open.iter().any(stalled)
    }
}

// SAFETY: the contexts and the memory in it are numbers for whoever has lent them, which holds them for all threads.
unsafe impl Send for Inner {}

impl Tcp {
    /// An endpoint at `address`.
    pub fn open(address: IpAddr) -> io::Result<Tcp> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let door = Door::open(address)?;
        epoll.add(&door.listener, EpollEvent::new(EpollFlags::EPOLLIN, DOOR))?;
        let name = door.listener.local_addr()?;
        let wait = epoll.0.as_fd().as_raw_fd();
        let (peers, numbers, free, open, gone) = Default::default();
        let (shared, secret) = (Shared::new(), None);
        let unsent = shared.unsent.clone();
        let inner = Inner { name, epoll, door, secret, peers, numbers, free, open, shared, gone };
        Ok(Tcp { name, wait, unsent, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What others reach it by.
    pub fn name(&self) -> SocketAddr {
        self.name
    }

    /// Readable when something has come, or there is room again.
    pub fn wait(&self) -> RawFd {
        self.wait
    }

    /// Lets those in that know the secret of the job.
    pub fn let_in(&self, secret: u64) {
        self.inner().secret = Some(secret);
    }

    /// Makes a peer known, and returns its number. `secret`: what the two alone know, of those that are not of the job.
    pub fn insert(&self, name: SocketAddr, secret: Option<u64>) -> u64 {
        let mut inner = self.inner();
        let peer = Peer::new(name, secret);
        let number = match inner.free.pop() {
            Some(number) => {
                inner.peers[number as usize] = peer;
                number
            }
            None => {
                inner.peers.push(peer);
                inner.peers.len() as u32 - 1
            }
        };
        inner.numbers.entry(name).or_default().push(number);
        number.into()
    }

    /// Forgets a peer: its connection is ended, what was under way has failed, and its number is free.
    pub fn remove(&self, number: u64) {
        let mut inner = self.inner();
        let at = number as usize;
        inner.end(at, libc::ESHUTDOWN);
        inner.gone.retain(|&(one, _)| one as usize != at);
        let name = inner.peers[at].name;
        if let Some(numbers) = inner.numbers.get_mut(&name) {
            numbers.retain(|&one| one as usize != at);
            if numbers.is_empty() {
                inner.numbers.remove(&name);
            }
        }
        inner.free.push(at as u32);
    }

    /// Lets peers reach memory by `key`; false: some memory has that key.
    ///
    /// # Safety
    /// The memory stays mapped until it is withdrawn.
    pub unsafe fn register(&self, memory: Sge, key: u64) -> bool {
        let mut inner = self.inner();
        let free = !inner.shared.regions.contains_key(&key);
        if free {
            inner.shared.regions.insert(key, memory);
        }
        free
    }

    /// Peers do not reach it any more. A connection that is in the middle of it is cut: whoever withdraws memory has made sure
    /// that nobody needs it.
    pub fn withdraw(&self, key: u64) {
        let mut inner = self.inner();
        inner.shared.regions.remove(&key);
        let using: Vec<u32> =
            inner.open.iter().copied().filter(|&at| inner.peers[at as usize].uses(key)).collect();
        using.into_iter().for_each(|at| inner.end(at as usize, libc::ECONNABORTED));
    }

    /// A buffer for the next message.
    ///
    /// # Safety
    /// It is not touched until the operation is over.
    pub unsafe fn post(&self, buffer: Sge, context: Context) {
        self.inner().shared.posted.push((buffer, context));
    }

    /// Posts to a peer; what libfabric would return.
    fn to(&self, to: u64, post: impl FnOnce(&mut Peer, &mut Shared) -> Result<(), i32>) -> isize {
        let mut inner = self.inner();
        let Inner { peers, shared, .. } = &mut *inner;
        let at = to as usize;
        if let Link::Ended(error) = peers[at].link {
            return -(error as isize);
        }
        let posted = post(&mut peers[at], shared);
        if matches!(peers[at].link, Link::None) {
            inner.connect(at);
        } else if peers[at].has_waiting() {
            inner.watch(at);
        }
        let broken = inner.peers[at].broken.take();
        let refused = posted.err().filter(|&error| error != libc::EAGAIN);
        if let Some(error) = broken.or(refused) {
            inner.breaks(at, error);
        }
        posted.map_or_else(|error| -(error as isize), |()| 0)
    }

    /// Sends a message whose parts are copied.
    ///
    /// # Safety
    /// The parts may be read now.
    pub unsafe fn inject(&self, to: u64, parts: &[Sge]) -> isize {
        self.to(to, |peer, shared| peer.message(shared, parts))
    }

    /// Writes or reads.
    ///
    /// # Safety
    /// `local` lives until the operation is over.
    pub unsafe fn transfer(
        &self,
        to: u64,
        local: Sge,
        remote: (u64, u64),
        write: bool,
        context: Context,
    ) -> isize {
        self.to(to, |peer, shared| peer.transfer(shared, local, remote, write, context))
    }

    /// Takes operations that are over, after a look if none is known.
    pub fn take(&self, entries: &mut [fi_cq_msg_entry]) -> Found {
        let mut inner = self.inner();
        let mut moved = false;
        if inner.shared.done.is_empty() {
            moved = inner.resume() | inner.look();
        }
        let mut count = 0;
        for entry in entries {
            let Some((op_context, len)) = inner.shared.done.pop_front() else { break };
            *entry = fi_cq_msg_entry { op_context, flags: 0, len };
            count += 1;
        }
        match count {
            // Who has gone is told of behind all else.
            0 if moved || !inner.gone.is_empty() => Found::Moved,
            0 => Found::Nothing,
            count => Found::Over(count),
        }
    }

    /// Whether an operation has failed.
    pub fn has_failed(&self) -> bool {
        !self.inner().shared.failed.is_empty()
    }

    /// Takes an operation that has failed, with errno.
    pub fn take_failed(&self) -> Option<(Context, i32)> {
        self.inner().shared.failed.pop_front()
    }

    /// Takes a peer whose connection is over, with errno, when all is taken that came before.
    pub fn take_gone(&self) -> Option<(u64, i32)> {
        let mut inner = self.inner();
        let Shared { done, failed, .. } = &inner.shared;
        if !done.is_empty() || !failed.is_empty() {
            return None;
        }
        inner.gone.pop_front().map(|(at, error)| (at.into(), error))
    }

    /// Says whether the program computes. Then all reads are asked for to their end: a part at a time would wake the helper for
    /// each.
    pub fn leave_unattended(&self, unattended: bool) {
        let mut inner = self.inner();
        inner.shared.unattended = unattended;
        let Inner { open, peers, shared, .. } = &mut *inner;
        for &at in open.iter() {
            let peer = &mut peers[at as usize];
            if unattended && let Err(error) = peer.ask(shared) {
                peer.broken = Some(error);
            }
            peer.collect(unattended);
        }
        if unattended {
            let touched: Vec<u32> =
                open.iter().copied().filter(|&at| peers[at as usize].has_waiting()).collect();
            touched.into_iter().for_each(|at| inner.watch(at as usize));
        }
    }

    /// Whether what comes from now on shows at the descriptor, and nothing has come.
    pub fn may_sleep(&self) -> bool {
        let inner = self.inner();
        let Shared { done, failed, .. } = &inner.shared;
        done.is_empty() && failed.is_empty() && inner.gone.is_empty() && !inner.can_resume()
    }

    /// Whether something waits for room that nobody sends but a look.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) > 0
    }

    /// Whether the kernels of all peers have all that was sent.
    pub fn has_arrived(&self) -> bool {
        let inner = self.inner();
        let arrived = |peer: &Peer| {
            let Link::Open(fd) = &peer.link else { return true };
            let mut bytes: libc::c_int = 0;
            // SAFETY: the request writes one `int`.
            let told = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
            told != 0 || bytes == 0
        };
        !self.has_unsent() && inner.open.iter().all(|&at| arrived(&inner.peers[at as usize]))
    }

    /// Closes all connections: memory that was lent belongs to its owners again.
    pub fn shut(&self) {
        let mut inner = self.inner();
        for at in 0..inner.peers.len() {
            inner.end(at, libc::ESHUTDOWN);
        }
        let Shared { posted, done, failed, .. } = &mut inner.shared;
        posted.clear();
        done.clear();
        failed.clear();
        inner.gone.clear();
        let _ = inner.epoll.delete(&inner.door.listener);
    }
}

// Miri has no sockets.
#[cfg(all(test, not(miri)))]
mod tests;
