//! Frames that wait for room in a socket, and the call that sends.

use std::os::fd::{AsRawFd, OwnedFd};
use weft_fabric::Sge;

pub const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// A frame that waits for room, or gathered requests.
pub struct UnsentFrame {
    /// `own` is the head with the bytes that were copied behind it. `lent` is the sender's memory that follows these bytes.
    pub own: Vec<u8>,
    pub lent: Sge,
    pub sent: usize,
    /// Key of the registration that contains `lent`.
    pub key: Option<u64>,
}

impl UnsentFrame {
    /// Returns the pieces that are still to be sent.
    pub fn pieces(&self) -> [libc::iovec; 2] {
        let own = &self.own[self.sent.min(self.own.len())..];
        let after = self.sent.saturating_sub(self.own.len());
        let lent = self.lent.part(after, self.lent.len() - after);
        let piece = |at: *mut u8, len| libc::iovec { iov_base: at.cast(), iov_len: len };
        [piece(own.as_ptr().cast_mut(), own.len()), piece(lent.ptr(), lent.len())]
    }

    pub fn len(&self) -> usize {
        self.own.len() + self.lent.len()
    }
}

/// Sends the pieces. Returns the number of bytes sent, or 0 if there is no room. Errors: errno.
pub fn send(fd: &OwnedFd, pieces: &mut [libc::iovec]) -> Result<usize, i32> {
    // SAFETY: all fields are integers and raw pointers, for which zero is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (pieces.as_mut_ptr(), pieces.len());
    loop {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: `sendmsg` needs readable pieces. Their owners keep them until the operations are complete (`Sge::new`), and the
        // kernel only reads them.
        let count = unsafe { libc::sendmsg(fd.as_raw_fd(), &message, flags) };
        if count >= 0 {
            return Ok(count as usize);
        }
        match std::io::Error::last_os_error().raw_os_error().unwrap_or(0) {
            libc::EINTR => {}
            libc::EAGAIN => return Ok(0),
            error => return Err(error),
        }
    }
}
