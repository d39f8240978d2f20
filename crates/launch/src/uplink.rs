//! Messages of an agent to `mpiexec`, queued for the agent's standard output.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::frames::{MAGIC, Up, encode};

/// Number of bytes that can be written without waiting to a pipe that polls as writable (PIPE_BUF).
const ATOMIC: usize = 4096;

struct FrameQueue {
    target: BorrowedFd<'static>,
    bytes: Vec<u8>,
    written: usize,
    broken: bool,
    /// True after [`Up::Done`] was queued.
    done: bool,
}

/// Queue of messages. All clones share the same queue.
#[derive(Clone)]
pub struct Uplink(Rc<RefCell<FrameQueue>>);

impl Uplink {
    /// Creates a queue for `target` with the greeting in it.
    pub fn new(target: BorrowedFd<'static>) -> Self {
        let bytes = MAGIC.as_bytes().to_vec();
        Uplink(Rc::new(RefCell::new(FrameQueue {
            target,
            bytes,
            written: 0,
            broken: false,
            done: false,
        })))
    }

    /// Queues a message.
    pub fn send(&self, message: &Up) {
        let mut queue = self.0.borrow_mut();
        if !queue.broken {
            queue.done |= *message == Up::Done;
            queue.bytes.extend(encode(message));
        }
    }

    /// Returns true if messages wait to be written.
    pub fn is_waiting(&self) -> bool {
        let queue = self.0.borrow();
        queue.written < queue.bytes.len()
    }

    /// Returns true if the end of all ranks was reported, and all messages were written.
    pub fn has_reported_end(&self) -> bool {
        let queue = self.0.borrow();
        queue.done && !queue.broken && queue.written == queue.bytes.len()
    }

    /// Returns the descriptor to poll for writing.
    pub fn descriptor(&self) -> BorrowedFd<'static> {
        self.0.borrow().target
    }

    /// Writes a piece of the queue, if the target is writable.
    pub fn write_if_ready(&self) {
        let target = self.descriptor();
        let mut ready = [PollFd::new(target, PollFlags::POLLOUT)];
        if self.is_waiting() && poll(&mut ready, PollTimeout::ZERO) == Ok(1) {
            self.write();
        }
    }

    /// Writes a piece of the queue. The target must poll as writable.
    pub fn write(&self) {
        let mut queue = self.0.borrow_mut();
        let rest = &queue.bytes[queue.written..];
        match nix::unistd::write(queue.target, &rest[..rest.len().min(ATOMIC)]) {
            Ok(count) => queue.written += count,
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => {}
            // `mpiexec` is gone. The error is ignored here, because the end of the input reports this.
            Err(_) => {
                queue.broken = true;
                queue.written = queue.bytes.len();
            }
        }
        if queue.written == queue.bytes.len() || queue.written > 1 << 20 {
            let written = std::mem::take(&mut queue.written);
            queue.bytes.drain(..written);
        }
    }
}
