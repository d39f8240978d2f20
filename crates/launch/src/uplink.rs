//! An agent's words to `mpiexec`, queued for its standard output.

use std::cell::RefCell;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::frames::{MAGIC, Up, encode};

/// A pipe that polls as writable takes this much without waiting (PIPE_BUF).
const ATOMIC: usize = 4096;

struct Queue {
    target: BorrowedFd<'static>,
    bytes: Vec<u8>,
    written: usize,
    broken: bool,
}

/// The queue; clones are the same one.
#[derive(Clone)]
pub struct Uplink(Rc<RefCell<Queue>>);

impl Uplink {
    /// Queues the greeting for `target`.
    pub fn new(target: BorrowedFd<'static>) -> Self {
        let bytes = MAGIC.as_bytes().to_vec();
        Uplink(Rc::new(RefCell::new(Queue { target, bytes, written: 0, broken: false })))
    }

    /// Queues a message.
    pub fn send(&self, message: &Up) {
        let mut queue = self.0.borrow_mut();
        if !queue.broken {
            queue.bytes.extend(encode(message));
        }
    }

    /// Whether there is something to write.
    pub fn is_waiting(&self) -> bool {
        let queue = self.0.borrow();
        queue.written < queue.bytes.len()
    }

    /// To poll for writing.
    pub fn descriptor(&self) -> BorrowedFd<'static> {
        self.0.borrow().target
    }

    /// Writes a piece of the output, if this does not block.
    pub fn write_if_ready(&self) {
        let target = self.descriptor();
        let mut ready = [PollFd::new(target, PollFlags::POLLOUT)];
        if self.is_waiting() && poll(&mut ready, PollTimeout::ZERO) == Ok(1) {
            self.write();
        }
    }

    /// Writes a piece. Only to be called when the target polls as writable.
    pub fn write(&self) {
        let mut queue = self.0.borrow_mut();
        let rest = &queue.bytes[queue.written..];
        match nix::unistd::write(queue.target, &rest[..rest.len().min(ATOMIC)]) {
            Ok(count) => queue.written += count,
            Err(nix::Error::EINTR | nix::Error::EAGAIN) => {}
            // mpiexec is gone, which the end of our input says too.
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
