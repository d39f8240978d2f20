//! Descriptors that end a sleep.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A descriptor on which threads of this process ring to end a sleep.
pub struct WakeDescriptor(OwnedFd);

impl WakeDescriptor {
    pub fn new() -> io::Result<WakeDescriptor> {
        // SAFETY: `eventfd` takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `from_raw_fd` needs an open descriptor without another owner: it was just made.
        Ok(WakeDescriptor(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: `write` needs 8 readable bytes: `one` has them. The call does not block. If the counter is full, the descriptor
        // is already readable.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }
}
