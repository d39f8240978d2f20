//! Detection of a process that a rank has started, and that is not a rank itself.
//!
//! Such a process often has the launcher's variables, because Python starts programs with the environment from its own start.
//! Weft's `mpiexec` detects such processes itself. Under other launchers, a rank leaves a sign for its descendants: an abstract
//! Unix socket with the process id of the rank in its name.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;

use crate::calls;

fn address(pid: i32) -> Option<SocketAddr> {
    SocketAddr::from_abstract_name(format!("weft-rank-{pid}")).ok()
}

/// Sign that this process is a rank. The sign disappears when the value is dropped or the process ends.
pub(crate) struct Sign(#[allow(dead_code, reason = "kept open")] UnixListener);

impl Sign {
    /// Marks this process as a rank. Returns `None` if the socket cannot be made, which is not an error.
    pub fn set() -> Option<Sign> {
        UnixListener::bind_addr(&address(std::process::id() as i32)?).ok().map(Sign)
    }
}

/// Returns true if an ancestor of this process is a rank.
pub(crate) fn is_below_a_rank() -> bool {
    let me = std::process::id() as i32;
    std::iter::successors(parent(me), |&pid| parent(pid)).take_while(|&pid| pid > 1).any(is_a_rank)
}

/// Returns true if process `pid` has the sign of a rank.
fn is_a_rank(pid: i32) -> bool {
    let Some(stream) = address(pid).and_then(|at| calls::connect(&at).ok()) else {
        return false;
    };
    getsockopt(&stream, sockopt::PeerCredentials)
        .is_ok_and(|peer| peer.pid() == pid && peer.uid() == geteuid().as_raw())
}

/// Returns the fields of `/proc/PID/stat` from the state on, the third field of proc(5). Returns `None` if the process is gone.
pub fn process_status(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain any character, so fields count from the last closing parenthesis.
    let fields = text.get(text.rfind(')')? + 1..)?;
    Some(fields.split_ascii_whitespace().map(str::to_owned).collect())
}

/// Returns the parent of a process; `None` if the process is gone.
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
        // A process other than a descendant can also see the sign. `is_below_a_rank` therefore looks only at ancestors.
        assert_eq!(parent(me), Some(std::os::unix::process::parent_id() as i32));
        drop(sign);
        assert!(!is_a_rank(me));
    }
}
