//! State of an endpoint, and the work of one poll of its sockets.

use super::connection::{TcpConnectionState, TcpPeer};
use super::door::{ListeningSockets, STRANGER};
use super::interfaces::Interface;
use super::shared::ConnectionShared;
use super::tries::Detour;
use crate::connection_state::KeepaliveTimes;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::TimerFd;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Instant;

/// Numbers of the listening sockets and of the timer in the epoll set. In this set, a peer has its usual number, and a stranger has
/// its number with the bit `STRANGER`.
pub const DOOR: u64 = u64::MAX;
pub const TIMER: u64 = u64::MAX - 1;

/// Maximum number of events that one poll takes.
const EVENTS: usize = 32;

/// The endpoint's state, behind its lock.
pub struct TcpInner {
    pub name: SocketAddr,
    /// The interfaces at which the endpoint listens.
    pub own: Vec<Interface>,
    pub times: KeepaliveTimes,
    pub epoll: Epoll,
    /// The timer in the epoll set, and the time for which it is set.
    pub timer: TimerFd,
    pub timer_at: Option<Instant>,
    pub door: ListeningSockets,
    /// The secret of the job, as soon as it is known.
    pub secret: Option<u128>,
    pub peers: Vec<TcpPeer>,
    /// Numbers of the peers by name. A process of another job has one number for each link with that job.
    pub numbers: HashMap<SocketAddr, Vec<u32>>,
    /// Numbers of peers that were removed.
    pub free: Vec<u32>,
    /// Peers with an open connection, and peers with a connection that is being made.
    pub open: Vec<u32>,
    pub trying: Vec<u32>,
    /// Interface of this process that has led to a peer to which the first interface did not lead.
    pub better: Option<usize>,
    pub detours: VecDeque<Detour>,
    pub shared: ConnectionShared,
    /// Peers with gathered requests. The list may also have peers whose requests were sent meanwhile.
    pub gathering: Vec<u32>,
    /// Peers whose connection has ended, with errno.
    pub gone: VecDeque<(u32, i32)>,
}

impl TcpInner {
    /// Returns the secret for the greeting with a peer: the shared secret for a peer of another job, else the secret of this job.
    pub fn secret_with(&self, at: usize) -> Option<u128> {
        self.peers[at].secret.or(self.secret)
    }

    /// Registers the events for which a peer's socket waits in the epoll set.
    pub fn watch(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        let wanted = peer.wanted();
        if wanted == peer.interest {
            return;
        }
        let before = std::mem::replace(&mut peer.interest, wanted);
        let Some(fd) = peer.fd() else { return };
        let mut event = EpollEvent::new(wanted, at as u64);
        // A socket that the epoll set refuses is still read at each poll.
        let _ = match before.is_empty() {
            true => self.epoll.add(fd, event).or_else(|_| self.epoll.modify(fd, &mut event)),
            false => self.epoll.modify(fd, &mut event),
        };
    }

    /// Removes a peer's socket from the epoll set, before it is closed. Closing the socket does not remove it if a child of this
    /// process also has the socket.
    pub fn unwatch(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.interest = EpollFlags::empty();
        if let Some(fd) = peer.fd() {
            let _ = self.epoll.delete(fd);
        }
    }

    /// Ends a peer's connection.
    pub fn end(&mut self, at: usize, error: i32) {
        if matches!(self.peers[at].link, TcpConnectionState::Ended(_)) {
            return;
        }
        self.unwatch(at);
        self.open.retain(|&one| one as usize != at);
        self.peers[at].end(&mut self.shared, error);
        self.gone.push_back((at as u32, error));
    }

    /// Sends the pieces that wait for a peer.
    pub fn flush(&mut self, at: usize) -> bool {
        match self.peers[at].flush(&mut self.shared) {
            Ok(moved) => {
                self.watch(at);
                moved
            }
            Err(error) => self.breaks(at, error),
        }
    }

    /// Sends the gathered requests of all peers.
    pub fn send_gathered(&mut self) -> bool {
        let mut moved = false;
        while let Some(at) = self.gathering.pop() {
            let peer = &mut self.peers[at as usize];
            peer.listed = false;
            moved |= peer.gathers() && self.flush(at as usize);
        }
        moved
    }

    /// Ends the connection of a peer that accepts no more bytes, after all bytes that the peer has sent are read.
    pub fn breaks(&mut self, at: usize, error: i32) -> bool {
        while let Ok(true) = self.peers[at].read(&mut self.shared) {}
        self.end(at, error);
        true
    }

    /// Reads from a peer, and sends the pieces that wait for this peer.
    pub fn move_on(&mut self, at: usize) -> bool {
        let moved = match self.peers[at].read(&mut self.shared) {
            Ok(moved) => moved,
            Err(error) => {
                self.end(at, error);
                return true;
            }
        };
        let flushed = self.peers[at].has_waiting() && self.flush(at);
        self.watch(at);
        moved | flushed
    }

    /// Polls all sockets. Returns true if anything has moved.
    pub fn look(&mut self) -> bool {
        // The epoll set is asked before sockets are read. A read locks the socket, and then the reading thread itself must
        // process bytes that arrive meanwhile.
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        let mut is_due = false;
        for event in &events[..count] {
            match event.data() {
                DOOR => self.take_strangers(),
                TIMER => is_due = true,
                number if number & STRANGER != 0 => self.hear_stranger(number & !STRANGER),
                at => match self.peers[at as usize].link {
                    TcpConnectionState::Connecting(_) => self.is_connected(at as usize),
                    TcpConnectionState::Connected(..) => self.hear_challenge(at as usize),
                    TcpConnectionState::Asked(..) => self.hear_answer(at as usize),
                    TcpConnectionState::Open(_) => _ = self.move_on(at as usize),
                    _ => {}
                },
            }
        }
        // Timers are handled after all bytes that have come.
        if is_due {
            self.tend();
        }
        count > 0
    }

    /// Lets sockets collect the data of reads, then reads once, because bytes that came before are not reported later. Returns true
    /// if a socket collects.
    pub fn begin_collecting(&mut self) -> bool {
        let mut collects = false;
        for place in 0..self.open.len() {
            let Some(&at) = self.open.get(place) else { break };
            if self.peers[at as usize].begin_collecting() {
                collects = true;
                self.move_on(at as usize);
            }
        }
        collects
    }

    /// Lets all sockets report each byte.
    pub fn end_collecting(&mut self) {
        let TcpInner { open, peers, .. } = self;
        open.iter().for_each(|&at| peers[at as usize].end_collecting());
    }

    /// Reads from peers that had no buffer for a message, if there is a buffer now.
    pub fn resume(&mut self) -> bool {
        let mut moved = false;
        for place in 0..self.open.len() {
            let Some(&at) = self.open.get(place) else { break };
            if self.peers[at as usize].reader.is_stalled() && !self.shared.posted.is_empty() {
                moved |= self.move_on(at as usize);
            }
        }
        moved
    }

    /// Returns true if a peer waits for a buffer and a buffer is free.
    pub fn can_resume(&self) -> bool {
        let stalled = |&at: &u32| self.peers[at as usize].reader.is_stalled();
        !self.shared.posted.is_empty() && self.open.iter().any(stalled)
    }
}

// SAFETY: `Send` needs that another thread may use the raw pointers. The contexts are never dereferenced here, and the makers of
// the `Sge`s keep the memory for all threads.
unsafe impl Send for TcpInner {}
