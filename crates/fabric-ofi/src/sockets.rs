//! TCP connections of this process's endpoints. libfabric does not show its connections. So this module finds them by their
//! addresses among the descriptors of the process, sets the times after which the kernel gives them up, and observes them.

use crate::connection_state::{ConnectionState, limit};
use crate::job::OfiCore;
use crate::provider_facts::BUILT_IN;
use nix::errno::Errno;
use nix::sys::socket::{Shutdown, SockaddrStorage, getpeername, getsockname, shutdown};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};

/// The connections of this process at one moment.
pub struct Sockets {
    /// True if the provider uses TCP and its connections can be seen.
    tcp: bool,
    /// Connections: descriptor, local address and remote address.
    ends: Vec<(RawFd, SocketAddr, SocketAddr)>,
    /// Local addresses of broken connections with unread bytes. The system no longer knows their other ends.
    unread: Vec<SocketAddr>,
    /// Remote addresses of connection requests that have not been answered.
    being_made: Vec<SocketAddr>,
}

fn ip(address: SockaddrStorage) -> Option<SocketAddr> {
    let four = address.as_sockaddr_in().map(|a| SocketAddr::from((a.ip(), a.port())));
    four.or_else(|| address.as_sockaddr_in6().map(|a| SocketAddr::from((a.ip(), a.port()))))
}

/// Returns the address, in its IPv4 form if it is an IPv4 address mapped to IPv6.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns both ends of a connection of this process, or `None` if the descriptor is not a connection.
fn ends(fd: RawFd) -> Option<(SocketAddr, SocketAddr)> {
    let own = ip(getsockname::<SockaddrStorage>(fd).ok()?)?;
    let other = ip(getpeername::<SockaddrStorage>(fd).ok()?)?;
    Some((plain(own), plain(other)))
}

/// Returns the local address of a broken connection that has unread bytes.
fn broken_unread(fd: RawFd) -> Option<SocketAddr> {
    let own = ip(getsockname::<SockaddrStorage>(fd).ok()?)?;
    if getpeername::<SockaddrStorage>(fd) != Err(Errno::ENOTCONN) {
        return None;
    }
    let mut bytes: libc::c_int = 0;
    // SAFETY: `FIONREAD` writes one `int`, and `bytes` is one. The kernel refuses the request for a descriptor that has no receive
    // queue.
    let told = unsafe { libc::ioctl(fd, libc::FIONREAD, &raw mut bytes) };
    (told == 0 && bytes > 0).then(|| plain(own))
}

/// Returns the remote addresses of connections in a table of the kernel (`/proc/net/tcp`) whose request is not answered yet.
fn unanswered(table: &str) -> Vec<SocketAddr> {
    const SYN_SENT: &str = "02";
    let address = |text: &str| {
        let (ip, port) = text.split_once(':')?;
        let words: Vec<u32> = (0..ip.len())
            .step_by(8)
            .map(|at| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok())
            .collect::<Option<_>>()?;
        // The kernel prints addresses word by word, in the byte order of the machine.
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let ip = match bytes.len() {
            4 => IpAddr::from(<[u8; 4]>::try_from(&bytes[..]).ok()?),
            _ => IpAddr::from(<[u8; 16]>::try_from(&bytes[..]).ok()?),
        };
        Some(plain(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?)))
    };
    let line = |line: &str| {
        let mut words = line.split_whitespace().skip(2);
        let (other, state) = (words.next()?, words.next()?);
        (state == SYN_SENT).then(|| address(other)).flatten()
    };
    table.lines().skip(1).filter_map(line).collect()
}

impl Sockets {
    /// Finds the connections, and sets the times after which the kernel gives them up.
    pub fn own(core: &OfiCore) -> Sockets {
        let (ends, unread, being_made) = (Vec::new(), Vec::new(), Vec::new());
        let mut all = Sockets { tcp: false, ends, unread, being_made };
        if core.ip(0, core.rank).is_none() {
            return all;
        }
        // If the connections cannot be seen, their state is unknown, which does not make a peer lost.
        let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return all };
        all.tcp = true;
        let numbers =
            descriptors.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for fd in numbers.collect::<Vec<RawFd>>() {
            let Some((here, there)) = self::ends(fd) else {
                all.unread.extend(broken_unread(fd));
                continue;
            };
            // A connection belongs to this fabric if it goes to a peer's endpoint, or comes to this process's endpoint.
            let ours =
                |rail| core.ip(rail, core.rank) == Some(here) || core.is_an_endpoint(rail, there);
            if (0..core.rails()).any(ours) {
                // SAFETY: `borrow_raw` needs a descriptor that is open during the borrow. It was open a moment ago, and libfabric
                // closes none during a call of this library.
                limit(&unsafe { BorrowedFd::borrow_raw(fd) }, core.times);
                all.ends.push((fd, here, there));
            }
        }
        for table in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
            all.being_made.extend(unanswered(&std::fs::read_to_string(table).unwrap_or_default()));
        }
        all
    }

    /// Returns the connections with a peer on a rail. The result includes connections that other ranks of the peer's host have
    /// made, because the kernel does not show which rank made a connection.
    fn with(&self, core: &OfiCore, rail: usize, rank: usize) -> impl Iterator<Item = RawFd> {
        let (own, peer) = (core.ip(rail, core.rank), core.ip(rail, rank));
        let of_host = move |there: &SocketAddr| peer.is_some_and(|peer| there.ip() == peer.ip());
        let ours = move |here: &SocketAddr, there: &SocketAddr| {
            Some(*there) == peer || (Some(*here) == own && of_host(there))
        };
        let all = self.ends.iter().filter(move |(_, here, there)| ours(here, there));
        all.map(|&(fd, ..)| fd)
    }

    /// Ends all connections with a peer on a rail and returns their number. A connection that was read to its end does not appear
    /// in a later call. A broken connection with unread bytes counts for each peer that could be its other end. Returns `None` if
    /// the connections cannot be seen.
    pub fn shut(&self, core: &OfiCore, rail: usize, rank: usize) -> Option<usize> {
        core.ip(rail, rank).filter(|_| self.tcp)?;
        let ended = |fd| {
            // The connection may have been broken already.
            let _ = shutdown(fd, Shutdown::Both);
        };
        let own = core.ip(rail, core.rank).map(|own| own.ip());
        let unread = self.unread.iter().filter(|here| Some(here.ip()) == own).count();
        Some(self.with(core, rail, rank).map(ended).count() + unread)
    }

    /// Returns the state of the connection to a peer on a rail. If the provider does not show the state, this function examines the
    /// kernel's connections between the two hosts. A connection of another rank of this host also counts.
    pub fn to(&self, core: &OfiCore, rail: usize, rank: usize) -> ConnectionState {
        if let Some(way) = core.way(rail, rank) {
            return way;
        }
        let Some(peer) = core.ip(rail, rank).filter(|_| self.tcp) else {
            return ConnectionState::Unknown;
        };
        if self.with(core, rail, rank).next().is_some() {
            ConnectionState::There
        } else if self.being_made.contains(&peer) {
            ConnectionState::BeingMade
        } else {
            ConnectionState::Gone
        }
    }
}

/// Parses the address of an endpoint from the form that the library shows. Returns `None` unless the provider uses TCP.
pub fn address(provider: &str, shown: &str) -> Option<SocketAddr> {
    let name = provider.split(';').next().unwrap_or_default();
    if ![BUILT_IN, "tcp", "net"].contains(&name) {
        return None;
    }
    shown.parse().ok().map(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn requests_without_answer_are_found_in_the_kernels_table() {
        let table = "  sl  local_address rem_address   st tx_queue\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n   \
            1: 01004D0A:B2C2 02004D0A:873B 02 00000001:00000000\n   \
            2: 01004D0A:B2C2 03004D0A:873B 01 00000000:00000000\n";
        assert_eq!(unanswered(table), ["10.77.0.2:34619".parse().unwrap()]);
        let six = "head\n 0: 000077FD000000000000000001000000:0016 000077FD000000000000000002000000:0017 02 0\n";
        assert_eq!(unanswered(six), ["[fd77::2]:23".parse().unwrap()]);
    }

    #[test]
    fn both_ends_of_a_connection_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let stream = TcpStream::connect(at).unwrap();
        assert_eq!(ends(stream.as_raw_fd()), Some((stream.local_addr().unwrap(), at)));
        assert_eq!(ends(listener.as_raw_fd()), None, "nobody is at the other end");
        assert!(ends(0).is_none());
    }

    #[test]
    fn what_is_unread_of_a_broken_connection_is_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = listener.accept().unwrap();
        let (fd, here) = (receiver.as_raw_fd(), receiver.local_addr().unwrap());
        sender.write_all(b"late").unwrap();
        assert_eq!(broken_unread(fd), None, "it is not broken");
        sender.shutdown(Shutdown::Both).unwrap();
        receiver.shutdown(Shutdown::Both).unwrap();
        while ends(fd).is_some() {
            std::thread::yield_now();
        }
        assert_eq!(broken_unread(fd), Some(here));
        let mut bytes = [0; 4];
        receiver.read_exact(&mut bytes).unwrap();
        assert_eq!((&bytes, broken_unread(fd)), (b"late", None), "what was unread is read");
        assert_eq!(broken_unread(listener.as_raw_fd()), None);
    }

    #[test]
    fn addresses_are_those_of_tcp() {
        assert_eq!(address("tcp;ofi_rxm", "10.0.0.1:5"), Some("10.0.0.1:5".parse().unwrap()));
        assert_eq!(address("tcp;ofi_rxm", "[fd77::1]:5"), Some("[fd77::1]:5".parse().unwrap()));
        assert_eq!(address("net", "10.0.0.1:5"), Some("10.0.0.1:5".parse().unwrap()));
        assert_eq!(address("udp;ofi_rxd", "10.0.0.1:5"), None);
        assert_eq!(address("tcp;ofi_rxm", "what"), None);
    }
}
