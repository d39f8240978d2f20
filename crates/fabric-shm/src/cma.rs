//! Cross-memory attach: reading and writing a peer's own memory by system calls.

use weft_bootstrap::calls::repeat_c;
use weft_fabric::{Fault, Sge};

/// The direction in which bytes move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    /// From the peer to this process.
    Read,
    /// From this process to the peer.
    Write,
}

/// Moves `local.len()` bytes between `local` and address `remote` of process `pid`, which is rank `peer`. Errors: `PeerLost` if the
/// process has ended, `Unsupported` if the system does not permit the transfer, `System` otherwise (EFAULT: no such memory).
pub fn transfer(
    way: CopyDirection,
    pid: i32,
    peer: usize,
    local: Sge,
    remote: u64,
) -> Result<(), Fault> {
    let mut moved = 0;
    // The kernel moves fewer bytes than requested beyond 2 GiB, and where pages are missing.
    while moved < local.len() {
        let rest = local.part(moved, local.len() - moved);
        let here = libc::iovec { iov_base: rest.ptr().cast(), iov_len: rest.len() };
        let at = remote.wrapping_add(moved as u64) as usize;
        let there =
            libc::iovec { iov_base: std::ptr::without_provenance_mut(at), iov_len: rest.len() };
        // SAFETY: `here` names memory that is valid for its length: the caller of `Sge::new` promised it. The kernel looks
        // `there` up in the other process.
        let call = || unsafe {
            match way {
                CopyDirection::Read => libc::process_vm_readv(pid, &here, 1, &there, 1, 0),
                CopyDirection::Write => libc::process_vm_writev(pid, &here, 1, &there, 1, 0),
            }
        };
        match repeat_c(call) {
            Ok(0) => return Err(fault(way, peer, libc::EFAULT)),
            Ok(n) => moved += n as usize,
            Err(error) => return Err(fault(way, peer, error.raw_os_error().unwrap_or(0))),
        }
    }
    Ok(())
}

fn fault(way: CopyDirection, peer: usize, errno: i32) -> Fault {
    let what = match way {
        CopyDirection::Read => "process_vm_readv",
        CopyDirection::Write => "process_vm_writev",
    };
    match errno {
        libc::ESRCH => Fault::lost(peer),
        libc::EPERM | libc::ENOSYS => Fault::unsupported(peer, what),
        errno => Fault::system(what, errno),
    }
}
