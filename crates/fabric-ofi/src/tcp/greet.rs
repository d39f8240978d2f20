//! Greeting: the steps by which two endpoints make one connection.
//!
//! ```text
//!   first message to a peer ──► connect
//!                               challenge ◄──────── to every new connection
//!                               hello ────────────► no proof of the secret: the connection is closed
//!                                                   no connection yet:  yes, and the connection is open at both ends
//!                               both at once: yes to the endpoint with the smaller name, no to the other endpoint
//! ```
//! The connecting side sends no message before the yes. So nothing is ever sent twice, and everything before the yes can be
//! repeated ([`super::connect_retries`]).

use super::TcpInner;
use super::connection::{SentHello, TcpConnectionState};
use super::frame::{ANSWER, CHALLENGE, GreetingAnswer, GreetingWords, HELLO, challenged};
use crate::connection_state::limit;
use nix::errno::Errno;
use nix::sys::epoll::EpollFlags;
use nix::sys::socket::sockopt::{SocketError, TcpNoDelay};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockType, SockaddrStorage, bind, connect, getsockopt, recv,
    send, setsockopt, socket,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};

/// A send to a closed connection raises no signal.
const FLAGS: MsgFlags = MsgFlags::MSG_NOSIGNAL;

/// Returns a nonblocking socket.
pub fn tcp_socket(address: &SockaddrStorage) -> io::Result<OwnedFd> {
    let family = match address.as_sockaddr_in() {
        Some(_) => AddressFamily::Inet,
        None => AddressFamily::Inet6,
    };
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    Ok(socket(family, SockType::Stream, flags, None)?)
}

/// Result of reading a part of a greeting.
enum Heard {
    All,
    Some,
    /// The other end has closed the connection, with errno.
    End(i32),
}

/// Reads more bytes into `said`.
fn hear(socket: &OwnedFd, said: &mut [u8], have: &mut usize) -> Heard {
    match recv(socket.as_raw_fd(), &mut said[*have..], FLAGS) {
        Ok(0) => Heard::End(libc::ECONNRESET),
        Ok(count) => {
            *have += count;
            if *have < said.len() { Heard::Some } else { Heard::All }
        }
        Err(Errno::EAGAIN | Errno::EINTR) => Heard::Some,
        Err(error) => Heard::End(error as i32),
    }
}

impl TcpInner {
    /// Begins to connect to a peer, over the route that is to be tried now.
    pub fn connect(&mut self, at: usize) {
        let route = self.peers[at].tries.route();
        let begin = || -> io::Result<OwnedFd> {
            let to = SockaddrStorage::from(route.to);
            let socket = tcp_socket(&to)?;
            if let Some(from) = route.from {
                let from = SocketAddr::new(self.own[from].address, 0);
                bind(socket.as_raw_fd(), &SockaddrStorage::from(from))?;
            }
            let _ = setsockopt(&socket, TcpNoDelay, &true);
            limit(&socket, self.times);
            match connect(socket.as_raw_fd(), &to) {
                Ok(()) | Err(Errno::EINPROGRESS | Errno::EINTR) => Ok(socket),
                Err(error) => Err(error.into()),
            }
        };
        match begin() {
            Ok(socket) => {
                self.peers[at].link = TcpConnectionState::Connecting(socket);
                self.watch(at);
                self.begins(at);
            }
            Err(error) => self.fails(at, error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Handles the end of a connection attempt: the system has connected, or has failed.
    pub fn is_connected(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        let TcpConnectionState::Connecting(socket) = &peer.link else { return };
        let error = match getsockopt(socket, SocketError) {
            Ok(error) => error,
            Err(error) => error as i32,
        };
        if error != 0 {
            return self.fails(at, error);
        }
        if let TcpConnectionState::Connecting(socket) =
            std::mem::replace(&mut peer.link, TcpConnectionState::None)
        {
            peer.link = TcpConnectionState::Connected(socket, [0; CHALLENGE], 0);
        }
        self.watch(at);
    }

    /// Reads the challenge of a peer to which this process has connected.
    pub fn hear_challenge(&mut self, at: usize) {
        let secret = self.secret_with(at);
        let peer = &mut self.peers[at];
        let (TcpConnectionState::Connected(socket, said, have), Some(secret)) =
            (&mut peer.link, secret)
        else {
            return;
        };
        match hear(socket, said, have) {
            Heard::Some => return,
            Heard::End(error) => return self.ends_early(at, error),
            Heard::All => {}
        }
        // The bytes are not a challenge: another program has this port now.
        let Some(asked) = challenged(said) else { return self.end(at, libc::ECONNREFUSED) };
        let words =
            GreetingWords { from: self.name, to: peer.name, asked, drawn: crate::random::bytes() };
        match send(socket.as_raw_fd(), &words.hello(secret), FLAGS) {
            // The send buffer of a new connection has room for the hello.
            Ok(HELLO) => {}
            Ok(_) => return self.ends_early(at, libc::ECONNRESET),
            Err(error) => return self.ends_early(at, error as i32),
        }
        if let TcpConnectionState::Connected(socket, ..) =
            std::mem::replace(&mut peer.link, TcpConnectionState::None)
        {
            peer.link = TcpConnectionState::Asked(
                socket,
                Box::new(SentHello { words, said: [0; ANSWER], have: 0 }),
            );
        }
    }

    /// Reads the answer of a peer to which the hello was sent.
    pub fn hear_answer(&mut self, at: usize) {
        let secret = self.secret_with(at);
        let peer = &mut self.peers[at];
        let (TcpConnectionState::Asked(socket, asked), Some(secret)) = (&mut peer.link, secret)
        else {
            return;
        };
        let SentHello { words, said, have } = &mut **asked;
        match hear(socket, said, have) {
            Heard::Some => return,
            Heard::End(error) => return self.ends_early(at, error),
            Heard::All => {}
        }
        let is = |answer| weft_bootstrap::is_same_secret(said, &words.answer(secret, answer));
        let (yes, no) = (is(GreetingAnswer::Yes), is(GreetingAnswer::No));
        if no {
            return self.awaits(at);
        }
        let link = std::mem::replace(&mut peer.link, TcpConnectionState::Awaited);
        match link {
            TcpConnectionState::Asked(socket, ..) if yes => {
                self.opens(at, socket);
                self.notes_detour(at);
            }
            // Another program has this port now.
            link => {
                self.peers[at].link = link;
                self.end(at, libc::ECONNREFUSED);
            }
        }
    }

    /// Opens the connection with a peer.
    pub fn opens(&mut self, at: usize, socket: OwnedFd) {
        limit(&socket, self.times);
        self.peers[at].link = TcpConnectionState::Open(socket);
        self.peers[at].interest = EpollFlags::empty();
        self.watch(at);
        self.open.push(at as u32);
        self.trying.retain(|&one| one as usize != at);
        self.stop_idle_timer();
        self.flush(at);
    }
}
