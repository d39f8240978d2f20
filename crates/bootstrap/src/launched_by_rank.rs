//! Whether this process was started by one that is a rank already.
//!
//! Such a process often has the launcher's variables all the same (Python starts programs with the
//! environment that it had at its own start). With Weft's `mpiexec` the launcher answers the
//! question; other launchers do not, so a rank leaves a sign: an abstract Unix socket with its
//! process id in the name, at which its descendants look.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

use crate::calls;

fn address(pid: i32) -> Option<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weft-rank-{pid}")).ok()
}

/// The sign of this process; it ends with the value, or with the process.
pub(crate) struct Sign(#[allow(dead_code, reason = "kept open")] UnixListener);

impl Sign {
    /// Says that this process is a rank. `None`: it cannot (nobody else minds).
    pub fn set() -> Option<Sign> {
        UnixListener::bind_addr(&address(std::process::id() as i32)?).ok().map(Sign)
    }
}

/// Whether a process above this one is a rank.
pub(crate) fn is_below_a_rank() -> bool {
    let me = std::process::id() as i32;
    std::iter::successors(parent(me), |&pid| parent(pid)).take_while(|&pid| pid > 1).any(is_a_rank)
}

/// Whether the sign of `pid` is there, and its own.
fn is_a_rank(pid: i32) -> bool {
    let Some(stream) = address(pid).and_then(|at| calls::connect(&at).ok()) else {
        return false;
    };
    getsockopt(&stream, sockopt::PeerCredentials)
        .is_ok_and(|peer| peer.pid() == pid && peer.uid() == geteuid().as_raw())
}

/// What `/proc/PID/stat` says of a process, from its state on, which proc(5) counts as the third; `None` if it is gone.
pub fn process_status(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so fields count from the last one.
    let fields = text.get(text.rfind(')')? + 1..)?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Parent of a process; `None` if it is gone.
pub(crate) fn parent(pid: i32) -> Option<i32> {
    process_status(pid)?.get(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_is_seen_as_long_as_it_is_there() {
        let me = std::process::id() as i32;
        assert!(!is_a_rank(me));
        let sign = Sign::set().unwrap();
        assert!(is_a_rank(me));
        // What the socket cannot tell is whose descendant asks: that is the walk's part.
        assert_eq!(parent(me), Some(std::os::unix::process::parent_id() as i32));
        drop(sign);
        assert!(!is_a_rank(me));
    }
}
