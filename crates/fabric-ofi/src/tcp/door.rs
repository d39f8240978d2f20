//! Strangers: connections whose peers have not yet proved that they belong to the job.
//!
//! Strangers delay no peer. Their sockets are read without waiting. A stranger that sends nothing is dropped after a time, or
//! earlier if there are too many strangers.

use super::TcpInner;
use super::connection::TcpConnectionState;
use super::frame::{GreetingAnswer, GreetingWords, HELLO, Nonce, challenge, claimed};
use super::interfaces::Interface;
use nix::sys::epoll::{EpollEvent, EpollFlags};
use nix::sys::socket::{Backlog, SockaddrStorage, bind, listen};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

pub const STRANGER: u64 = 1 << 63;

/// Maximum number of strangers at a time. A further stranger replaces the stranger that has waited longest.
const STRANGERS: usize = 128;

/// Maximum number of strangers at which each stranger has the longer time for its greeting. Strangers may be peers whose programs
/// compute.
const FEW: usize = 16;

/// Maximum time for a stranger's greeting. The first value applies if there are few strangers, the second if there are many.
const GREETING: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(5)];

/// Maximum number of connections that wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// A connection whose peer has not yet proved that it belongs to the job.
pub struct Stranger {
    number: u64,
    stream: TcpStream,
    asked: Nonce,
    said: [u8; HELLO],
    have: usize,
    since: Instant,
}

/// The listening sockets, and the strangers.
pub struct ListeningSockets {
    /// Sockets for each address at which the endpoint listens. The first address is its name.
    pub listeners: Vec<TcpListener>,
    /// Spare descriptor. If no other descriptor is left, the spare descriptor is closed for a moment, so that a waiting
    /// connection can be accepted and closed. Otherwise the epoll set would report the waiting connection again and again.
    spare: Option<File>,
    next: u64,
    pub strangers: Vec<Stranger>,
}

/// Listens at `address`, at a port that the system chooses.
fn listener(address: std::net::IpAddr) -> io::Result<TcpListener> {
    let address = SockaddrStorage::from(SocketAddr::new(address, 0));
    let listener = super::greet::tcp_socket(&address)?;
    bind(listener.as_raw_fd(), &address)?;
    listen(&listener, Backlog::new(BACKLOG)?)?;
    Ok(listener.into())
}

impl ListeningSockets {
    /// Listens at all interfaces of `own`, and removes from `own` the interfaces at which listening fails. Returns an error if
    /// listening fails at the first interface.
    pub fn open(own: &mut Vec<Interface>) -> io::Result<ListeningSockets> {
        let first = listener(own[0].address)?;
        let mut listeners = vec![first];
        let mut rest = own.split_off(1);
        rest.retain(|interface| match listener(interface.address) {
            Ok(opened) => {
                listeners.push(opened);
                true
            }
            Err(_) => false,
        });
        own.extend(rest);
        let spare = File::open("/dev/null").ok();
        Ok(ListeningSockets { listeners, spare, next: 0, strangers: Vec::new() })
    }

    /// Returns the maximum time for a greeting, for the present number of strangers.
    fn greeting(&self) -> Duration {
        GREETING[usize::from(self.strangers.len() > FEW)]
    }

    /// Returns the time at which the oldest stranger is dropped.
    pub fn due(&self) -> Option<Instant> {
        self.strangers.first().map(|one| one.since + self.greeting())
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl TcpInner {
    /// Drops the strangers that have taken too long.
    pub fn expire_strangers(&mut self, now: Instant) {
        while self.door.due().is_some_and(|due| due <= now) {
            self.drop_stranger(0);
        }
    }

    /// Accepts new connections.
    pub fn take_strangers(&mut self) {
        for place in 0..self.door.listeners.len() {
            self.take_strangers_at(place);
        }
        self.set_timer(self.door.due());
    }

    fn take_strangers_at(&mut self, place: usize) {
        // The limit leaves time for peers during a flood of connections.
        for _ in 0..STRANGERS {
            match self.door.listeners[place].accept() {
                Ok((stream, _)) => self.add_stranger(stream),
                Err(error) => match errno(&error) {
                    libc::EMFILE | libc::ENFILE if self.door.spare.is_some() => {
                        self.door.spare = None;
                        // The connection is dropped, and the peer tries again.
                        let _ = self.door.listeners[place].accept();
                        self.door.spare = File::open("/dev/null").ok();
                    }
                    // These errors concern only the new connection: accept(2) also reports errors of the network that the new
                    // connection has met.
                    libc::EINTR
                    | libc::ECONNABORTED
                    | libc::EPROTO
                    | libc::EPERM
                    | libc::ENETDOWN
                    | libc::EHOSTDOWN
                    | libc::ENETUNREACH
                    | libc::EHOSTUNREACH
                    | libc::ETIMEDOUT => {}
                    _ => return,
                },
            }
        }
    }

    fn drop_stranger(&mut self, place: usize) {
        let one = self.door.strangers.remove(place);
        let _ = self.epoll.delete(&one.stream);
        self.stop_idle_timer();
    }

    fn add_stranger(&mut self, mut stream: TcpStream) {
        let asked = crate::random::bytes();
        // The send buffer of a new connection has room for the challenge.
        let said = stream.set_nonblocking(true).and_then(|()| stream.write_all(&challenge(asked)));
        if said.is_err() {
            return;
        }
        let _ = stream.set_nodelay(true);
        if self.door.strangers.len() >= STRANGERS {
            self.drop_stranger(0);
        }
        let number = self.door.next;
        self.door.next += 1;
        let _ = self.epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, STRANGER | number));
        let (said, have, since) = ([0; HELLO], 0, Instant::now());
        self.door.strangers.push(Stranger { number, stream, asked, said, have, since });
    }

    /// Reads what a stranger has sent.
    pub fn hear_stranger(&mut self, number: u64) {
        let found = self.door.strangers.iter().position(|one| one.number == number);
        let (Some(place), Some(_)) = (found, self.secret) else { return };
        let one = &mut self.door.strangers[place];
        match one.stream.read(&mut one.said[one.have..]) {
            Ok(count) if count > 0 => one.have += count,
            Err(error) if matches!(errno(&error), libc::EAGAIN | libc::EINTR) => return,
            _ => return self.drop_stranger(place),
        }
        if one.have < HELLO {
            return;
        }
        let one = self.door.strangers.remove(place);
        let _ = self.epoll.delete(&one.stream);
        // Several peers may have this name. The stranger is the peer whose secret the stranger knows.
        let peers = claimed(&one.said).and_then(|name| self.numbers.get(&name));
        let met = peers.into_iter().flatten().find_map(|&at| {
            let secret = self.secret_with(at as usize)?;
            let words = GreetingWords::heard(secret, &one.said, self.name, one.asked)?;
            Some((at as usize, secret, words))
        });
        if let Some((at, secret, words)) = met {
            self.meet(at, secret, words, one.stream);
        }
        self.stop_idle_timer();
    }

    /// Opens a connection that a peer has made, or refuses it.
    fn meet(&mut self, at: usize, secret: u128, words: GreetingWords, mut stream: TcpStream) {
        let yes = match self.peers[at].link {
            TcpConnectionState::None | TcpConnectionState::Awaited | TcpConnectionState::Paused => {
                true
            }
            // Nothing was sent on this process's own connection yet.
            TcpConnectionState::Connecting(_) | TcpConnectionState::Connected(..) => true,
            // Both processes have connected at the same time. The connection from the endpoint with the smaller name is kept.
            TcpConnectionState::Asked(..) => words.from < self.name,
            TcpConnectionState::Open(_) | TcpConnectionState::Ended(_) => false,
        };
        // The send buffer of a new connection has room for the answer.
        let answer = if yes { GreetingAnswer::Yes } else { GreetingAnswer::No };
        let said = stream.write_all(&words.answer(secret, answer));
        if yes && said.is_ok() {
            self.unwatch(at);
            self.opens(at, stream.into());
        }
    }
}
