//! The report to the parents of a spawned job: the reason why the job failed, and the last output on standard error of the rank
//! that failed first.
//!
//! ```text
//!   parents  start mpiexec with a socket as its standard input, and WEFT_LAST_WORDS
//!   mpiexec  keeps the socket, and has /dev/null as its standard input
//!            ── at the first failure: the reason, the last bytes of that rank's standard error ──► parents
//! ```
//! The parents report the reason and the output as the error of MPI_Comm_spawn. If the report cannot be sent, this is ignored,
//! because the parents may be gone.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::dup2_stdin;
use weft_bootstrap::failure_report::{FailureReport, VARIABLE};

/// Maximum number of bytes of standard error that are kept for each rank.
const KEPT: usize = 1024;

/// The socket to the parents.
static PARENTS: OnceLock<UnixStream> = OnceLock::new();

/// True if this process has sent its report.
static SENT: AtomicBool = AtomicBool::new(false);

/// Takes the socket to the parents from standard input, if it is such a socket. Standard input then becomes /dev/null. This
/// function must be called while the process has one thread.
pub fn take_socket() {
    if std::env::var_os(VARIABLE).is_none() {
        return;
    }
    // SAFETY: this process has one thread, as this function requires of its caller.
    unsafe { std::env::remove_var(VARIABLE) };
    let input = std::io::stdin();
    let (Ok(socket), Ok(null)) = (input.as_fd().try_clone_to_owned(), File::open("/dev/null"))
    else {
        return;
    };
    if dup2_stdin(&null).is_ok() {
        let socket = UnixStream::from(socket);
        // A parent that does not read the report must not stop the job.
        let _ = socket.set_nonblocking(true);
        let _ = PARENTS.set(socket);
    }
}

/// Returns true if there are parents, to which a report must be sent.
pub fn is_wanted() -> bool {
    PARENTS.get().is_some()
}

/// Sends the report, unless this process has already sent a report. `reason` is empty if no rank has failed.
pub fn send(reason: &str, words: &[u8]) {
    let Some(mut socket) = PARENTS.get() else { return };
    if !SENT.swap(true, Ordering::Relaxed) {
        let report = FailureReport { reason: reason.to_owned(), words: words.to_vec() };
        let _ = socket.write_all(&report.encode());
    }
}

/// The last bytes that each rank has written to standard error.
#[derive(Default)]
pub struct LastWords(BTreeMap<usize, Vec<u8>>);

impl LastWords {
    /// Adds text that a rank has written to standard error.
    pub fn add(&mut self, rank: usize, text: &[u8]) {
        let kept = self.0.entry(rank).or_default();
        kept.extend_from_slice(&text[text.len().saturating_sub(KEPT)..]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }

    /// Returns the last bytes of a rank.
    pub fn of(&self, rank: usize) -> &[u8] {
        self.0.get(&rank).map_or(&[], |text| text)
    }

    /// Returns the last bytes of the lowest rank that has written to standard error.
    pub fn of_lowest(&self) -> &[u8] {
        self.0.values().next().map_or(&[], |text| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_each_rank_wrote_is_kept() {
        let mut words = LastWords::default();
        assert_eq!((words.of(1), words.of_lowest()), (&b""[..], &b""[..]));
        words.add(2, b"two");
        words.add(1, &[b'x'; 3 * KEPT]);
        for _ in 0..KEPT {
            words.add(1, b"ab");
        }
        words.add(1, b"!");
        let one = words.of(1);
        assert!(one.len() == KEPT && one.ends_with(b"abab!"), "{} bytes", one.len());
        assert_eq!((words.of(2), words.of_lowest()), (&b"two"[..], one));
    }
}
