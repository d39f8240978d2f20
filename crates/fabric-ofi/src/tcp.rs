//! TCP without a library: reliable datagrams and remote memory access over one connection for each pair of processes that talk.
//!
//! ```text
//!   message ────► a frame; the kernel copies it from the sender's memory to the buffer that waits for it
//!   write ──────► a frame; from memory to memory, acknowledged by the next frame in the other direction
//!   read ───────► a request, and a frame with the data back
//! ```
//! The built-in TCP is a provider like libfabric's ([`crate::object`]). With the built-in TCP, a machine without libfabric can use
//! Ethernet, and a message costs only one system call at each end. Short writes and requests that follow a request without an
//! answer are gathered, and the next poll or the next message sends them together. Like libfabric's own TCP, the built-in TCP makes
//! progress only when it is polled.
//!
//! Contract. All threads may call an endpoint, whose lock makes the calls one at a time. All data from a peer is checked before
//! use: a peer reaches memory only by key, address and length within a registration, and a peer that breaks the rules of frames
//! is cut off.

mod arrive;
mod connect_retries;
mod connection;
mod door;
mod frame;
mod greet;
mod inner;
mod interfaces;
mod pace;
mod reader;
mod routes;
mod shared;
mod tries;
mod unsent_frame;

pub use frame::{decode_names, encode_names};
pub use interfaces::{Interface, interfaces};
pub use shared::OperationContext;
pub use tries::Detour;

use crate::access::{PollingThread, RemoteKey, TransferKind};
use crate::connection_state::{ConnectionState, KeepaliveTimes};
use crate::ffi::fi_cq_msg_entry;
use connection::{TcpConnectionState, TcpPeer};
use door::ListeningSockets;
use inner::{DOOR, TIMER, TcpInner};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::timerfd::{ClockId, TimerFd, TimerFlags};
use shared::ConnectionShared;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tries::Tries;
use weft_fabric::Sge;

/// Result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpPollOutcome {
    /// Number of operations that are complete.
    Over(usize),
    /// No operation is complete, but bytes have moved.
    Moved,
    Nothing,
}

/// Endpoint of a process, at the addresses of some interfaces.
pub struct Tcp {
    /// The addresses at which the endpoint listens. The first address is its name.
    names: Vec<SocketAddr>,
    wait: RawFd,
    /// Number of frames that wait for room.
    unsent: Arc<AtomicUsize>,
    inner: Mutex<TcpInner>,
}

impl Tcp {
    /// Opens an endpoint at the addresses of `own`. Fails if the first address cannot be used.
    pub fn open(mut own: Vec<Interface>, times: KeepaliveTimes) -> io::Result<Tcp> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        own.truncate(frame::NAMES_MOST);
        let door = ListeningSockets::open(&mut own)?;
        for listener in &door.listeners {
            epoll.add(listener, EpollEvent::new(EpollFlags::EPOLLIN, DOOR))?;
        }
        let flags = TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER))?;
        let names: Vec<SocketAddr> =
            door.listeners.iter().map(TcpListener::local_addr).collect::<io::Result<_>>()?;
        let wait = epoll.0.as_fd().as_raw_fd();
        let shared = ConnectionShared::new();
        let unsent = shared.unsent.clone();
        let inner = TcpInner {
            name: names[0],
            own,
            times,
            epoll,
            timer,
            timer_at: None,
            door,
            secret: None,
            peers: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            open: Vec::new(),
            trying: Vec::new(),
            better: None,
            detours: VecDeque::new(),
            shared,
            gathering: Vec::new(),
            gone: VecDeque::new(),
        };
        Ok(Tcp { names, wait, unsent, inner: Mutex::new(inner) })
    }

    fn inner(&self) -> MutexGuard<'_, TcpInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the addresses by which peers reach this endpoint, most likely first.
    pub fn names(&self) -> &[SocketAddr] {
        &self.names
    }

    /// Returns the descriptor that becomes readable when bytes have come or there is room to send again.
    pub fn wait(&self) -> RawFd {
        self.wait
    }

    /// Lets processes that know the secret of the job connect.
    pub fn let_in(&self, secret: u128) {
        self.inner().secret = Some(secret);
    }

    /// Adds a peer and returns its number. `names` has at least one address. `secret` is the secret shared with a peer of another
    /// job; `None` for a peer of this job.
    pub fn insert(&self, names: &[SocketAddr], secret: Option<u128>) -> u64 {
        let mut inner = self.inner();
        let name = names[0];
        let peer = TcpPeer::new(name, Tries::new(routes::routes(&inner.own, names)), secret);
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

    /// Forgets a peer: ends its connection, lets operations under way fail, and frees its number.
    pub fn remove(&self, number: u64) {
        let mut inner = self.inner();
        let at = number as usize;
        inner.end(at, libc::ESHUTDOWN);
        inner.gone.retain(|&(one, _)| one as usize != at);
        inner.trying.retain(|&one| one as usize != at);
        let name = inner.peers[at].name;
        if let Some(numbers) = inner.numbers.get_mut(&name) {
            numbers.retain(|&one| one as usize != at);
            if numbers.is_empty() {
                inner.numbers.remove(&name);
            }
        }
        inner.free.push(at as u32);
    }

    /// Lets peers reach memory by `key`. Returns false if other memory already has this key.
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

    /// Ends the peers' access to memory. A connection in the middle of a transfer with this memory is cut. This harms no correct
    /// peer, since the owner withdraws memory only when nobody needs it.
    pub fn withdraw(&self, key: u64) {
        let mut inner = self.inner();
        inner.shared.regions.remove(&key);
        let using: Vec<u32> =
            inner.open.iter().copied().filter(|&at| inner.peers[at as usize].uses(key)).collect();
        using.into_iter().for_each(|at| inner.end(at as usize, libc::ECONNABORTED));
    }

    /// Posts a buffer for the next message.
    ///
    /// # Safety
    /// The buffer is not touched until the operation is complete.
    pub unsafe fn post(&self, buffer: Sge, context: OperationContext) {
        self.inner().shared.posted.push((buffer, context));
    }

    /// Posts an operation to a peer. Returns the value that libfabric would return.
    fn to(
        &self,
        to: u64,
        post: impl FnOnce(&mut TcpPeer, &mut ConnectionShared) -> Result<(), i32>,
    ) -> isize {
        let mut inner = self.inner();
        let TcpInner { peers, shared, .. } = &mut *inner;
        let at = to as usize;
        if let TcpConnectionState::Ended(error) = peers[at].link {
            return -(error as isize);
        }
        let posted = post(&mut peers[at], shared);
        if matches!(peers[at].link, TcpConnectionState::None) {
            inner.connect_first(at);
        } else if peers[at].waits_for_room() {
            inner.watch(at);
        } else if peers[at].gathers() && !std::mem::replace(&mut peers[at].listed, true) {
            inner.gathering.push(at as u32);
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
    /// The parts may be read during the call.
    pub unsafe fn inject(&self, to: u64, parts: &[Sge]) -> isize {
        self.to(to, |peer, shared| peer.message(shared, parts))
    }

    /// Writes or reads a peer's memory at `remote`.
    ///
    /// # Safety
    /// The memory of `local` lives until the operation is complete.
    pub unsafe fn transfer(
        &self,
        to: u64,
        access: TransferKind,
        local: Sge,
        remote: RemoteKey,
        context: OperationContext,
    ) -> isize {
        self.to(to, |peer, shared| peer.transfer(shared, access, local, remote, context))
    }

    /// Takes completed operations. Polls first if no completed operation is known.
    pub fn take(&self, entries: &mut [fi_cq_msg_entry]) -> TcpPollOutcome {
        let mut inner = self.inner();
        let mut moved = false;
        if inner.shared.done.is_empty() {
            moved = inner.send_gathered() | inner.resume() | inner.look();
        }
        let mut count = 0;
        for entry in entries {
            let Some((op_context, len)) = inner.shared.done.pop_front() else { break };
            *entry = fi_cq_msg_entry { op_context, flags: 0, len };
            count += 1;
        }
        match count {
            // A lost peer is reported after everything else.
            0 if moved || !inner.gone.is_empty() => TcpPollOutcome::Moved,
            0 => TcpPollOutcome::Nothing,
            count => TcpPollOutcome::Over(count),
        }
    }

    /// Returns true if an operation has failed.
    pub fn has_failed(&self) -> bool {
        !self.inner().shared.failed.is_empty()
    }

    /// Takes a failed operation, with errno.
    pub fn take_failed(&self) -> Option<(OperationContext, i32)> {
        self.inner().shared.failed.pop_front()
    }

    /// Takes a peer whose connection has ended, with errno. Returns `None` while operations wait to be taken.
    pub fn take_gone(&self) -> Option<(u64, i32)> {
        let mut inner = self.inner();
        let ConnectionShared { done, failed, .. } = &inner.shared;
        if !done.is_empty() || !failed.is_empty() {
            return None;
        }
        inner.gone.pop_front().map(|(at, error)| (at.into(), error))
    }

    /// Returns the state of the connection to a peer.
    pub fn way(&self, number: u64) -> ConnectionState {
        match self.inner().peers[number as usize].link {
            TcpConnectionState::None
            | TcpConnectionState::Connecting(_)
            | TcpConnectionState::Paused
            | TcpConnectionState::Awaited => ConnectionState::BeingMade,
            TcpConnectionState::Connected(..)
            | TcpConnectionState::Asked(..)
            | TcpConnectionState::Open(_) => ConnectionState::There,
            TcpConnectionState::Ended(_) => ConnectionState::Gone,
        }
    }

    /// Takes the next peer that was reached over a route other than the first.
    pub fn take_detour(&self) -> Option<Detour> {
        self.inner().detours.pop_front()
    }

    /// Tells the endpoint which threads poll from now on. While the program computes, the endpoint asks for all bytes of all
    /// reads at once: if it asked for one part at a time, each part would wake the helper.
    pub fn set_poller(&self, poller: PollingThread) {
        let mut inner = self.inner();
        inner.shared.poller = poller;
        let unattended = poller == PollingThread::Helper;
        let TcpInner { open, peers, shared, .. } = &mut *inner;
        for &at in open.iter() {
            let peer = &mut peers[at as usize];
            if unattended
                && let Err(error) = peer.ask(shared).and_then(|()| peer.send_gathered(shared))
            {
                peer.broken = Some(error);
            }
        }
        if unattended {
            let touched: Vec<u32> =
                open.iter().copied().filter(|&at| peers[at as usize].waits_for_room()).collect();
            touched.into_iter().for_each(|at| inner.watch(at as usize));
        }
    }

    /// Lets sockets collect the data of reads before the descriptor becomes readable. Returns true if a socket does so.
    pub fn begin_collecting(&self) -> bool {
        self.inner().begin_collecting()
    }

    /// Lets each byte that comes make the descriptor readable.
    pub fn end_collecting(&self) {
        self.inner().end_collecting();
    }

    /// Returns true if a sleep is safe now: nothing has come, and new bytes make the descriptor readable.
    pub fn may_sleep(&self) -> bool {
        let inner = self.inner();
        let ConnectionShared { done, failed, .. } = &inner.shared;
        let is_over = done.is_empty() && failed.is_empty() && inner.gone.is_empty();
        is_over && inner.gathering.is_empty() && !inner.can_resume()
    }

    /// Returns true if a frame waits for room. Only a poll sends such frames.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.unsent.load(Ordering::Relaxed) > 0
    }

    /// Returns true if the kernels of all peers have acknowledged all sent bytes.
    pub fn has_arrived(&self) -> bool {
        let inner = self.inner();
        let arrived = |peer: &TcpPeer| {
            let TcpConnectionState::Open(fd) = &peer.link else { return true };
            let mut bytes: libc::c_int = 0;
            // SAFETY: `TIOCOUTQ` writes one `int`, and `bytes` is one.
            let told = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
            told != 0 || bytes == 0
        };
        !self.has_unsent() && inner.open.iter().all(|&at| arrived(&inner.peers[at as usize]))
    }

    /// Closes all connections. Memory that was lent to operations belongs to its owners again.
    pub fn shut(&self) {
        let mut inner = self.inner();
        for at in 0..inner.peers.len() {
            inner.end(at, libc::ESHUTDOWN);
        }
        let ConnectionShared { posted, done, failed, .. } = &mut inner.shared;
        posted.clear();
        done.clear();
        failed.clear();
        inner.gone.clear();
        for listener in &inner.door.listeners {
            let _ = inner.epoll.delete(listener);
        }
    }
}

// Miri has no sockets.
#[cfg(all(test, not(miri)))]
mod tests;
