//! How two endpoints come to have one connection.
//!
//! ```text
//!   first message to a peer ──► connect, hello ──────────► nobody of the job: closed
//!                                                          no connection yet:  yes, and it is open at both ends
//!                               both at once: that of the smaller name is the one, the other one is told no
//! ```
//! Who connects sends nothing before the yes, so nothing is ever sent twice. Strangers hold up nobody: all sockets are read without
//! waiting, and those that say nothing go after a while, or when there are too many.

use super::Inner;
use super::connection::Link;
use super::frame::{ANSWER, HELLO, answer, claimed, hello, who};
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::sockopt::{SocketError, TcpNoDelay};
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect,
    getsockopt, listen, recv, send, setsockopt, socket,
};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// Those at once who have connected and not said who they are; beyond them, who has waited longest goes.
const STRANGERS: usize = 128;

/// How long one may take to say it.
const GREETING: Duration = Duration::from_secs(5);

/// Connections that wait to be taken, at most; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// Nobody is signalled where the other end is gone.
const FLAGS: MsgFlags = MsgFlags::MSG_NOSIGNAL;

/// Somebody who has connected.
pub struct Stranger {
    number: u64,
    stream: TcpStream,
    said: [u8; HELLO],
    have: usize,
    since: Instant,
}

/// The queue of those who connect.
pub struct Door {
    pub listener: TcpListener,
    /// Given back for a moment where there is no descriptor left: else who waits would be told of it again and again.
    spare: Option<File>,
    next: u64,
    pub strangers: Vec<Stranger>,
}

impl Door {
    /// Opens one at `address`, at a port of the system's choice.
    pub fn open(address: std::net::IpAddr) -> io::Result<Door> {
        let address = SockaddrStorage::from(SocketAddr::new(address, 0));
        let listener = tcp_socket(&address)?;
        bind(listener.as_raw_fd(), &address)?;
        listen(&listener, Backlog::new(BACKLOG)?)?;
        let spare = File::open("/dev/null").ok();
        Ok(Door { listener: listener.into(), spare, next: 0, strangers: Vec::new() })
    }
}

/// A socket that waits for nothing.
fn tcp_socket(address: &SockaddrStorage) -> io::Result<OwnedFd> {
    let family = match address.as_sockaddr_in() {
        Some(_) => AddressFamily::Inet,
        None => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(family, SockType::Stream, flags, None)?)
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Inner {
    /// Begins to connect to a peer.
    pub fn connect(&mut self, at: usize) {
        let begin = || -> io::Result<OwnedFd> {
            let to = SockaddrStorage::from(self.peers[at].name);
            let socket = tcp_socket(&to)?;
            // From the endpoint's own interface.
            bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(self.name.ip(), 0)))?;
            let _ = setsockopt(&socket, TcpNoDelay, &true);
            match connect(socket.as_raw_fd(), &to) {
                Ok(()) | Err(Errno::EINPROGRESS | Errno::EINTR) => Ok(socket),
                Err(error) => Err(error.into()),
            }
        };
        match begin() {
            Ok(socket) => {
                self.peers[at].link = Link::Connecting(socket);
                self.watch(at);
            }
            Err(error) => self.end(at, errno(&error)),
        }
    }

    /// The system has connected, or cannot.
    pub fn is_connected(&mut self, at: usize) {
        let secret = self.secret_with(at);
        let peer = &mut self.peers[at];
        let (Link::Connecting(socket), Some(secret)) = (&peer.link, secret) else { return };
        let error = getsockopt(socket, SocketError);
        match error {
            Ok(0) => {}
            Ok(error) => return self.end(at, error),
            Err(error) => return self.end(at, error as i32),
        }
        let said = hello(secret, self.name, peer.name);
        match send(socket.as_raw_fd(), &said, FLAGS) {
            // A new connection has room for that.
            Ok(HELLO) => {}
            Ok(_) => return self.end(at, libc::EIO),
            Err(error) => return self.end(at, error as i32),
        }
        if let Link::Connecting(socket) = std::mem::replace(&mut peer.link, Link::None) {
            peer.link = Link::Asked(socket, [0; ANSWER], 0);
        }
        self.watch(at);
    }

    /// Something has come from a peer that was asked.
    pub fn hear_answer(&mut self, at: usize) {
        let secret = self.secret_with(at);
        let peer = &mut self.peers[at];
        let (Link::Asked(socket, said, have), Some(secret)) = (&mut peer.link, secret) else {
            return;
        };
        let wanted = &mut said[*have..];
        match recv(socket.as_raw_fd(), wanted, FLAGS) {
            Ok(0) => return self.end(at, libc::ECONNREFUSED),
            Ok(count) => *have += count,
            Err(Errno::EAGAIN | Errno::EINTR) => return,
            Err(error) => return self.end(at, error as i32),
        }
        if *have < ANSWER {
            return;
        }
        let said = *said;
        let (yes, no) = (
            answer(secret, true, peer.name, self.name),
            answer(secret, false, peer.name, self.name),
        );
        let link = std::mem::replace(&mut peer.link, Link::Awaited);
        if said == yes {
            if let Link::Asked(socket, ..) = link {
                self.opens(at, socket);
            }
        } else if said != no {
            // Somebody else has this port now.
            self.end(at, libc::ECONNREFUSED);
        }
    }

    /// The connection with a peer is there.
    fn opens(&mut self, at: usize, socket: OwnedFd) {
        self.peers[at].link = Link::Open(socket);
        self.peers[at].interest = EpollFlags::empty();
        self.watch(at);
        self.open.push(at as u32);
        self.flush(at);
    }

    /// Takes who has connected.
    pub fn take_strangers(&mut self) {
        while self.door.strangers.first().is_some_and(|one| one.since.elapsed() > GREETING) {
            self.drop_stranger(0);
        }
        // A flood of them leaves time for peers.
        for _ in 0..STRANGERS {
            match self.door.listener.accept() {
                Ok((stream, _)) => self.add_stranger(stream),
                Err(error) => match errno(&error) {
                    libc::EMFILE | libc::ENFILE if self.door.spare.is_some() => {
                        self.door.spare = None;
                        let _ = self.door.listener.accept();
                        self.door.spare = File::open("/dev/null").ok();
                    }
                    libc::EINTR | libc::ECONNABORTED => {}
                    _ => return,
                },
            }
        }
    }

    fn drop_stranger(&mut self, place: usize) {
        let one = self.door.strangers.remove(place);
        self.unwatch_stranger(&one.stream);
    }

    fn add_stranger(&mut self, stream: TcpStream) {
        if stream.set_nonblocking(true).is_err() {
            return;
        }
        let _ = stream.set_nodelay(true);
        if self.door.strangers.len() >= STRANGERS {
            self.drop_stranger(0);
        }
        let number = self.door.next;
        self.door.next += 1;
        self.watch_stranger(&stream, number);
        let since = Instant::now();
        self.door.strangers.push(Stranger { number, stream, said: [0; HELLO], have: 0, since });
        // Most have spoken already.
        self.hear_stranger(number);
    }

    /// Something has come from somebody who has connected.
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
        self.unwatch_stranger(&one.stream);
        // Of the peers of that name it is the one whose secret it knows.
        let name = claimed(&one.said);
        let peers = name.and_then(|name| self.numbers.get(&name)).into_iter().flatten();
        let mut known = peers.filter_map(|&at| Some((at as usize, self.secret_with(at as usize)?)));
        let met = known.find(|&(_, secret)| who(secret, &one.said, self.name).is_some());
        if let (Some(name), Some((at, secret))) = (name, met) {
            self.meet(at, name, secret, one.stream);
        }
    }

    /// A peer has connected.
    fn meet(&mut self, at: usize, name: SocketAddr, secret: u64, mut stream: TcpStream) {
        let yes = match self.peers[at].link {
            Link::None | Link::Awaited => true,
            // Both at once.
            Link::Connecting(_) | Link::Asked(..) => name < self.name,
            Link::Open(_) | Link::Ended(_) => false,
        };
        // A new connection has room for that.
        let said = stream.write_all(&answer(secret, yes, self.name, name));
        if yes && said.is_ok() {
            self.unwatch(at);
            self.opens(at, stream.into());
        }
    }
}
