//! Those who have connected and not said who they are.
//!
//! Strangers hold up nobody: all sockets are read without waiting, and those that say nothing go after a while, or when there are
//! too many.

use super::Inner;
use super::connection::Link;
use super::frame::{HELLO, Nonce, Words, challenge, claimed};
use super::interfaces::Interface;
use nix::sys::socket::{Backlog, SockaddrStorage, bind, listen};
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// Those at once who have connected and not said who they are; beyond them, who has waited longest goes.
const STRANGERS: usize = 128;

/// So few of them are no trouble: they may be peers whose programs compute.
const FEW: usize = 16;

/// How long a stranger may take to say who it is, among few and among many.
const GREETING: [Duration; 2] = [Duration::from_secs(60), Duration::from_secs(5)];

/// Connections that wait to be taken, at most; the system may allow fewer.
const BACKLOG: i32 = 4096;

/// Somebody who has connected.
pub struct Stranger {
    number: u64,
    stream: TcpStream,
    asked: Nonce,
    said: [u8; HELLO],
    have: usize,
    since: Instant,
}

/// The queues of those who connect.
pub struct Door {
    /// One for each address at which the endpoint listens; that of the first is its name.
    pub listeners: Vec<TcpListener>,
    /// Given back for a moment where there is no descriptor left: else who waits would be told of it again and again.
    spare: Option<File>,
    next: u64,
    pub strangers: Vec<Stranger>,
}

/// Listens at `address`, at a port of the system's choice.
fn listener(address: std::net::IpAddr) -> io::Result<TcpListener> {
    let address = SockaddrStorage::from(SocketAddr::new(address, 0));
    let listener = super::greet::tcp_socket(&address)?;
    bind(listener.as_raw_fd(), &address)?;
    listen(&listener, Backlog::new(BACKLOG)?)?;
    Ok(listener.into())
}

impl Door {
    /// Listens at all of `own`, and takes out of it what cannot be listened at. The first one must be.
    pub fn open(own: &mut Vec<Interface>) -> io::Result<Door> {
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
        Ok(Door { listeners, spare, next: 0, strangers: Vec::new() })
    }

    /// How long a stranger may take at the moment.
    fn greeting(&self) -> Duration {
        GREETING[usize::from(self.strangers.len() > FEW)]
    }

    /// When the one that has waited longest has to go.
    pub fn due(&self) -> Option<Instant> {
        self.strangers.first().map(|one| one.since + self.greeting())
    }
}

fn errno(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EIO)
}

impl Inner {
    /// Sends those away who have taken too long.
    pub fn expire_strangers(&mut self, now: Instant) {
        while self.door.due().is_some_and(|due| due <= now) {
            self.drop_stranger(0);
        }
    }

    /// Takes who has connected.
    pub fn take_strangers(&mut self) {
        for place in 0..self.door.listeners.len() {
            self.take_strangers_at(place);
        }
        self.set_timer(self.door.due());
    }

    fn take_strangers_at(&mut self, place: usize) {
        // A flood of them leaves time for peers.
        for _ in 0..STRANGERS {
            match self.door.listeners[place].accept() {
                Ok((stream, _)) => self.add_stranger(stream),
                Err(error) => match errno(&error) {
                    libc::EMFILE | libc::ENFILE if self.door.spare.is_some() => {
                        self.door.spare = None;
                        // It tries again.
                        let _ = self.door.listeners[place].accept();
                        self.door.spare = File::open("/dev/null").ok();
                    }
                    // The others are as good as before: what the network did to a connection is reported here, too.
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
        self.unwatch_stranger(&one.stream);
    }

    fn add_stranger(&mut self, mut stream: TcpStream) {
        let asked = crate::random::bytes();
        // A new connection has room for that.
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
        self.watch_stranger(&stream, number);
        let (said, have, since) = ([0; HELLO], 0, Instant::now());
        self.door.strangers.push(Stranger { number, stream, asked, said, have, since });
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
        let peers = claimed(&one.said).and_then(|name| self.numbers.get(&name));
        let met = peers.into_iter().flatten().find_map(|&at| {
            let secret = self.secret_with(at as usize)?;
            let words = Words::heard(secret, &one.said, self.name, one.asked)?;
            Some((at as usize, secret, words))
        });
        if let Some((at, secret, words)) = met {
            self.meet(at, secret, words, one.stream);
        }
    }

    /// A peer has connected.
    fn meet(&mut self, at: usize, secret: u64, words: Words, mut stream: TcpStream) {
        let yes = match self.peers[at].link {
            Link::None | Link::Awaited | Link::Paused => true,
            // Nothing was said on the own one yet.
            Link::Connecting(_) | Link::Connected(..) => true,
            // Both at once.
            Link::Asked(..) => words.from < self.name,
            Link::Open(_) | Link::Ended(_) => false,
        };
        // A new connection has room for that.
        let said = stream.write_all(&words.answer(secret, yes));
        if yes && said.is_ok() {
            self.unwatch(at);
            self.opens(at, stream.into());
        }
    }
}
