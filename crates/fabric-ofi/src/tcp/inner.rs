//! What an endpoint knows, and what it does at a look.

use super::connection::{Link, Peer, Shared};
use super::door::Door;
use super::interfaces::Interface;
use super::tries::Detour;
use crate::connection_state::Times;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::timerfd::TimerFd;
use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, TcpStream};
use std::time::Instant;

/// What the epoll set calls those who connect, and the timer; peers have their numbers there, strangers theirs behind `STRANGER`.
pub const DOOR: u64 = u64::MAX;
pub const TIMER: u64 = u64::MAX - 1;
const STRANGER: u64 = 1 << 63;

/// Events that are taken at a time.
const EVENTS: usize = 32;

/// The endpoint, for whoever has its lock.
pub struct Inner {
    pub name: SocketAddr,
    /// Where it listens.
    pub own: Vec<Interface>,
    pub times: Times,
    pub epoll: Epoll,
    /// Shows in the epoll set, and when.
    pub timer: TimerFd,
    pub timer_at: Option<Instant>,
    pub door: Door,
    /// The job's, as soon as it is known.
    pub secret: Option<u64>,
    pub peers: Vec<Peer>,
    /// By name: a process of another job may be known once for each link with it.
    pub numbers: HashMap<SocketAddr, Vec<u32>>,
    /// Numbers that were taken out.
    pub free: Vec<u32>,
    /// Those with a connection, and those with which it is being made.
    pub open: Vec<u32>,
    pub trying: Vec<u32>,
    /// The own interface that has led to a peer where the first one did not.
    pub better: Option<usize>,
    pub detours: VecDeque<Detour>,
    pub shared: Shared,
    /// Peers whose connection is over, with errno.
    pub gone: VecDeque<(u32, i32)>,
}

impl Inner {
    /// What this process and a peer know, and no stranger does.
    pub fn secret_with(&self, at: usize) -> Option<u64> {
        self.peers[at].secret.or(self.secret)
    }

    /// Tells the epoll set what to wait for on a peer's socket.
    pub fn watch(&mut self, at: usize) {
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
    pub fn unwatch(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        peer.interest = EpollFlags::empty();
        if let Some(fd) = peer.fd() {
            let _ = self.epoll.delete(fd);
        }
    }

    pub fn watch_stranger(&self, stream: &TcpStream, number: u64) {
        let _ = self.epoll.add(stream, EpollEvent::new(EpollFlags::EPOLLIN, STRANGER | number));
    }

    pub fn unwatch_stranger(&self, stream: &TcpStream) {
        let _ = self.epoll.delete(stream);
    }

    /// A peer's connection is over.
    pub fn end(&mut self, at: usize, error: i32) {
        if matches!(self.peers[at].link, Link::Ended(_)) {
            return;
        }
        self.unwatch(at);
        self.open.retain(|&one| one as usize != at);
        self.peers[at].end(&mut self.shared, error);
        self.gone.push_back((at as u32, error));
    }

    /// Sends what waits for a peer.
    pub fn flush(&mut self, at: usize) -> bool {
        match self.peers[at].flush(&mut self.shared) {
            Ok(moved) => {
                self.watch(at);
                moved
            }
            Err(error) => self.breaks(at, error),
        }
    }

    /// A peer takes nothing more. What it has sent before is still read, up to the end.
    pub fn breaks(&mut self, at: usize, error: i32) -> bool {
        while let Ok(true) = self.peers[at].read(&mut self.shared) {}
        self.end(at, error);
        true
    }

    /// Reads from a peer, and sends what waits for it.
    pub fn move_on(&mut self, at: usize) -> bool {
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
    pub fn look(&mut self) -> bool {
        // Asked first: a read of a socket locks it, and what arrives meanwhile is left for the reader to take in.
        let mut events = [EpollEvent::empty(); EVENTS];
        let count = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
        let mut is_due = false;
        for event in &events[..count] {
            match event.data() {
                DOOR => self.take_strangers(),
                TIMER => is_due = true,
                number if number & STRANGER != 0 => self.hear_stranger(number & !STRANGER),
                at => match self.peers[at as usize].link {
                    Link::Connecting(_) => self.is_connected(at as usize),
                    Link::Connected(..) => self.hear_challenge(at as usize),
                    Link::Asked(..) => self.hear_answer(at as usize),
                    Link::Open(_) => _ = self.move_on(at as usize),
                    _ => {}
                },
            }
        }
        // Behind all that has come.
        if is_due {
            self.tend();
        }
        count > 0
    }

    /// Reads from those that had no buffer for a message, when there is one.
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

    /// Whether a peer waits for a buffer that is there.
    pub fn can_resume(&self) -> bool {
        let stalled = |&at: &u32| self.peers[at as usize].reader.is_stalled();
        !self.shared.posted.is_empty() && self.open.iter().any(stalled)
    }
}

// SAFETY: the contexts and the memory in it are numbers for whoever has lent them, which holds them for all threads.
unsafe impl Send for Inner {}
