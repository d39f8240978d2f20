//! Which descriptor of the provider tells that something comes.
//!
//! That of the completion queue does with most. `net`, the TCP of libfabric 1.16 and 1.17 that became `tcp` later, keeps it readable
//! once something was over: it holds a signal that nobody takes back, and beside it the epoll descriptor with the sockets, which tells
//! what is asked for here. proc(5) says what an epoll descriptor holds (`tfd:` in fdinfo).

use std::fs;
use std::os::fd::RawFd;

/// What an epoll descriptor is called in `/proc/self/fd`.
const EPOLL: &str = "anon_inode:[eventpoll]";

/// The one to sleep on: `of_queue`, or with `net` the one with the sockets, where it can be found.
pub fn to_sleep_on(provider: &str, of_queue: RawFd) -> RawFd {
    match provider {
        "net" => epoll_within(of_queue).unwrap_or(of_queue),
        _ => of_queue,
    }
}

/// The epoll descriptor that the epoll descriptor `outer` holds, if it is one alone.
fn epoll_within(outer: RawFd) -> Option<RawFd> {
    let held = fs::read_to_string(format!("/proc/self/fdinfo/{outer}")).ok()?;
    let is_epoll = |fd: &RawFd| {
        fs::read_link(format!("/proc/self/fd/{fd}")).is_ok_and(|what| what.as_os_str() == EPOLL)
    };
    let mut within = held.lines().filter_map(held_by).filter(is_epoll);
    within.next().filter(|_| within.next().is_none())
}

/// The descriptor of a line of fdinfo, if it says one.
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
}
