//! Choice of the provider's descriptor that becomes readable when a message or completion comes.
//!
//! With most providers this is the descriptor of the completion queue. The provider `net` of libfabric 1.16 and 1.17, which
//! became `tcp` later, keeps the queue's descriptor readable once an operation was complete: the queue's descriptor is an epoll
//! descriptor that holds a signal which nobody takes back. The same epoll descriptor also holds the epoll descriptor of the
//! sockets, which reports exactly what is needed here. proc(5) describes how to list the descriptors that an epoll descriptor
//! holds (`tfd:` in fdinfo).
//!
//! `tcp;ofi_rxm` of the same versions signals each completion by a byte into a socket of its own, and takes the byte back at the
//! next poll. This takes three of the seven system calls of a short message. So this signal socket is removed from the set that
//! polls read, and sleeping threads poll the signal socket separately. The signal socket then gets one byte until a sleep begins,
//! and `fi_trywait` takes the byte back.
//!
//! ```text
//!   queue of ofi_rxm ─┬─ its signal
//!                     ├─ events of connections ─┬─ their signal
//!                     │                         └─ listening sockets
//!                     └─ queue of tcp ──────────┬─ its signal       <── polled in addition to the queue
//!                                               └─ sockets of peers
//! ```

use nix::sys::socket::{UnixAddr, getsockname};
use std::fs;
use std::os::fd::RawFd;
use std::ptr;

/// Name of an epoll descriptor in `/proc/self/fd`.
const EPOLL: &str = "anon_inode:[eventpoll]";

/// Returns the descriptor to sleep on: `of_queue`, or with `net` the epoll descriptor of the sockets if it can be found.
pub fn to_sleep_on(provider: &str, of_queue: RawFd) -> RawFd {
    match provider {
        "net" => epoll_within(of_queue).unwrap_or(of_queue),
        _ => of_queue,
    }
}

/// Takes the signal socket out of the lower queue's epoll set, before there are connections, and returns the socket. A thread
/// that sleeps on `of_queue` must also sleep on the signal socket. Returns `None` and changes nothing if there is no signal
/// socket.
pub fn take_signal(provider: &str, of_queue: RawFd) -> Option<RawFd> {
    if provider != "tcp;ofi_rxm" {
        return None;
    }
    let lone_signal = |queue: RawFd| match all_within(queue)[..] {
        [one] if getsockname::<UnixAddr>(one).is_ok() => Some((queue, one)),
        _ => None,
    };
    let mut found = all_within(of_queue).into_iter().filter(is_epoll).filter_map(lone_signal);
    let (queue, signal) = found.next().filter(|_| found.next().is_none())?;
    // SAFETY: both descriptors are open, and `EPOLL_CTL_DEL` does not read its event argument, which may be null.
    let taken = unsafe { libc::epoll_ctl(queue, libc::EPOLL_CTL_DEL, signal, ptr::null_mut()) };
    (taken == 0).then_some(signal)
}

/// Returns the epoll descriptor that the epoll descriptor `outer` holds, if there is exactly one.
fn epoll_within(outer: RawFd) -> Option<RawFd> {
    let mut within = all_within(outer).into_iter().filter(is_epoll);
    within.next().filter(|_| within.next().is_none())
}

fn is_epoll(fd: &RawFd) -> bool {
    fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|what| what.as_os_str() == EPOLL)
}

/// Returns the descriptors that an epoll descriptor holds.
fn all_within(epoll: RawFd) -> Vec<RawFd> {
    let held = fs::read_to_string(format!("/proc/self/fdinfo/{epoll}")).unwrap_or_default();
    held.lines().filter_map(held_by).collect()
}

/// Returns the descriptor in a line of fdinfo, if the line has one.
fn held_by(line: &str) -> Option<RawFd> {
    line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
    use std::os::fd::{AsFd, AsRawFd};
    use std::os::unix::net::UnixStream;

    fn epoll_of(all: &[&dyn AsFd]) -> Epoll {
        let made = Epoll::new(EpollCreateFlags::empty()).unwrap();
        for held in all {
            made.add(held, EpollEvent::new(EpollFlags::EPOLLIN, 0)).unwrap();
        }
        made
    }

    #[test]
    fn the_one_within_is_found() {
        let (signal, _other) = UnixStream::pair().unwrap();
        let sockets = epoll_of(&[]);
        let outer = epoll_of(&[&signal, &sockets.0]);
        let (fd, within) = (outer.0.as_raw_fd(), sockets.0.as_raw_fd());
        assert_eq!(to_sleep_on("net", fd), within);
        assert_eq!(to_sleep_on("tcp;ofi_rxm", fd), fd);
        assert_eq!(epoll_within(within), None);
        let two = epoll_of(&[&outer.0, &sockets.0]);
        assert_eq!(epoll_within(two.0.as_raw_fd()), None);
        assert_eq!(epoll_within(-1), None);
    }

    #[test]
    fn the_signal_of_the_queue_below_is_taken_out_of_it() {
        let (signal, _other) = UnixStream::pair().unwrap();
        let (own, _other) = UnixStream::pair().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let connections = epoll_of(&[&own, &listener]);
        let queue = epoll_of(&[&signal]);
        let outer = epoll_of(&[&own, &connections.0, &queue.0]);
        let fd = outer.0.as_raw_fd();
        assert_eq!(take_signal("net", fd), None);
        assert_eq!(take_signal("tcp;ofi_rxm", fd), Some(signal.as_raw_fd()));
        assert_eq!(all_within(queue.0.as_raw_fd()), []);
        assert_eq!(all_within(connections.0.as_raw_fd()).len(), 2);
        // The signal socket is gone, and other descriptors are not taken for a signal socket.
        assert_eq!(take_signal("tcp;ofi_rxm", fd), None);
        let tcp = epoll_of(&[&listener]);
        let outer = epoll_of(&[&tcp.0]);
        assert_eq!(take_signal("tcp;ofi_rxm", outer.0.as_raw_fd()), None);
        // With two candidates, nothing shows which candidate is the signal socket.
        let (one, two) = (epoll_of(&[&signal]), epoll_of(&[&own]));
        let outer = epoll_of(&[&one.0, &two.0]);
        assert_eq!(take_signal("tcp;ofi_rxm", outer.0.as_raw_fd()), None);
    }
}
