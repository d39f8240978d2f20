//! Names of ports, with their addresses and secrets.

use super::{Stream, secret};
use crate::calls::{connect, repeat};
use crate::hash;
use crate::limits::explain;
use crate::nodes::identity;
use nix::sys::socket::{getsockopt, setsockopt, sockopt};
use nix::unistd::geteuid;
use std::io::{self, Error, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener};
use std::time::Duration;

/// Beginning of the names of ports: the kind, and the version of the protocol.
const PREFIX: &str = "weft-port-2";

/// Maximum time for a host to answer a connection request.
const CONNECTING: Duration = Duration::from_secs(10);

/// Returns a name of 16 digits that is equal in all processes that can connect by local sockets.
pub fn machine() -> String {
    format!("{:016x}", hash(&identity()))
}

/// Location of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PortPlace {
    /// On the same machine: the name of the machine, and the number in the name of an abstract socket.
    Machine(String, u128),
    /// On a network.
    Network(SocketAddr),
}

/// Parts of the name of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub place: PortPlace,
    pub secret: u128,
}

impl Address {
    pub fn encode(&self) -> String {
        let secret = self.secret;
        match &self.place {
            PortPlace::Machine(name, socket) => {
                format!("{PREFIX}:here:{secret:032x}:{name}:{socket:032x}")
            }
            PortPlace::Network(address) => format!("{PREFIX}:tcp:{secret:032x}:{address}"),
        }
    }

    pub fn decode(name: &str) -> Option<Address> {
        let number =
            |text: &str| (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok()).flatten();
        let rest = name.strip_prefix(PREFIX)?.strip_prefix(':')?;
        let (kind, rest) = rest.split_once(':')?;
        let (secret, place) = rest.split_once(':')?;
        let place = match kind {
            "here" => {
                let (name, socket) = place.split_once(':')?;
                PortPlace::Machine(name.to_owned(), number(socket)?)
            }
            "tcp" => PortPlace::Network(place.parse().ok()?),
            _ => return None,
        };
        Some(Address { place, secret: number(secret)? })
    }

    /// Connects to the port.
    pub fn connect(&self) -> io::Result<Stream> {
        match &self.place {
            PortPlace::Machine(name, _) if *name != machine() => {
                let text = "it is a port of another machine, or of another network name space of this one, and no network leads \
                            there: start the job that opens it with WEFT_FABRIC=shm+ofi";
                Err(Error::new(ErrorKind::Unsupported, text))
            }
            PortPlace::Machine(_, socket) => {
                let stream = connect(&abstract_name(*socket)?)?;
                match is_own_user(&stream) {
                    true => Ok(stream),
                    false => {
                        Err(Error::new(ErrorKind::PermissionDenied, "the port is another user's"))
                    }
                }
            }
            PortPlace::Network(address) => {
                let stream = TcpStream::connect_timeout(address, CONNECTING).map_err(|error| {
                    Error::new(error.kind(), format!("{address}: {}", explain(&error)))
                })?;
                plain(stream)
            }
        }
    }
}

fn abstract_name(socket: u128) -> io::Result<net::SocketAddr> {
    net::SocketAddr::from_abstract_name(format!("weft-port-{socket:032x}"))
}

/// Converts a connection over a network to a plain stream. The stream ends half a minute after the host at the other end has
/// vanished.
fn plain(stream: TcpStream) -> io::Result<Stream> {
    stream.set_nodelay(true)?;
    setsockopt(&stream, sockopt::KeepAlive, &true)?;
    setsockopt(&stream, sockopt::TcpKeepIdle, &10)?;
    setsockopt(&stream, sockopt::TcpKeepInterval, &5)?;
    setsockopt(&stream, sockopt::TcpKeepCount, &4)?;
    Ok(Stream::from(OwnedFd::from(stream)))
}

/// Returns true if the process at the other end of a local socket belongs to this user.
fn is_own_user(stream: &Stream) -> bool {
    getsockopt(stream, sockopt::PeerCredentials).is_ok_and(|peer| peer.uid() == geteuid().as_raw())
}

/// Socket that takes connections.
pub(super) enum Listener {
    Machine(UnixListener),
    Network(TcpListener),
}

impl Listener {
    /// Opens a port for processes of this machine, or at address `at` of a network.
    pub fn open(at: Option<IpAddr>) -> io::Result<(Listener, Address)> {
        let (listener, place) = match at {
            None => {
                let socket = secret()?;
                let listener = UnixListener::bind_addr(&abstract_name(socket)?)?;
                (Listener::Machine(listener), PortPlace::Machine(machine(), socket))
            }
            Some(ip) => {
                let listener = TcpListener::bind((ip, 0))?;
                let place = PortPlace::Network(listener.local_addr()?);
                (Listener::Network(listener), place)
            }
        };
        match &listener {
            Listener::Machine(listener) => listener.set_nonblocking(true)?,
            Listener::Network(listener) => listener.set_nonblocking(true)?,
        }
        Ok((listener, Address { place, secret: secret()? }))
    }

    /// Returns the descriptor to poll for new connections.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Machine(listener) => listener.as_fd(),
            Listener::Network(listener) => listener.as_fd(),
        }
    }

    /// Takes the next connection, without waiting. Returns `None` if the process at the other end belongs to another user.
    pub fn accept(&self) -> io::Result<Option<Stream>> {
        match self {
            Listener::Machine(listener) => {
                let (stream, _) = repeat(|| listener.accept())?;
                Ok(Some(stream).filter(is_own_user))
            }
            Listener::Network(listener) => plain(repeat(|| listener.accept())?.0).map(Some),
        }
    }
}

/// Returns true if `name` has the form of a port's name.
pub fn is_port(name: &str) -> bool {
    Address::decode(name).is_some()
}

/// Returns true if `name` is the name of a port on a network.
pub fn is_on_network(name: &str) -> bool {
    Address::decode(name).is_some_and(|address| matches!(address.place, PortPlace::Network(_)))
}
