//! Standard output and standard error of a process of `mpiexec`.

use std::os::fd::BorrowedFd;

/// Standard stream for output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    Output,
    Error,
}

/// Returns the descriptor of a stream, which stays open until the process ends.
pub fn standard(stream: StandardStream) -> BorrowedFd<'static> {
    let descriptor = match stream {
        StandardStream::Output => 1,
        StandardStream::Error => 2,
    };
    // SAFETY: `borrow_raw` needs an open descriptor. Rust's runtime opens 1 and 2, and no code closes them.
    unsafe { BorrowedFd::borrow_raw(descriptor) }
}
