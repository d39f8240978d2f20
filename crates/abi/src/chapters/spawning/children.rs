//! Job of the spawned processes, as its parents see it: its state, and the reason of its end.

use crate::constants::{MPI_ERR_SPAWN, MPI_MAX_ERROR_STRING};
use crate::engine::Engine;
use crate::error::Error;
use crate::waiting::WaitingCall;
use nix::sys::signal::Signal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use weft_bootstrap::failure_report::FailureReport;

/// Job of the children, at the root of the parents.
pub(super) struct Children {
    /// Names of the programs.
    pub names: String,
    /// End of mpiexec; empty until mpiexec has ended.
    pub ended: Arc<OnceLock<JobEnd>>,
}

/// Exit code and report with which mpiexec has ended.
pub(super) struct JobEnd {
    /// Exit code, if there is one.
    pub code: Option<i32>,
    /// Report of the first failure. An mpiexec of another MPI library sends no report.
    pub report: Option<FailureReport>,
}

/// Number of bytes of an error string that are reserved for the names of the function and its communicator, which come before the
/// text.
const CALL: usize = 100;

impl JobEnd {
    /// Describes the end of the job of the programs `names`.
    fn describe(&self, names: &str) -> String {
        let reason = self.report.as_ref().map_or("", |report| &report.reason);
        let how = match self.code {
            Some(127) if reason.is_empty() => format!("{names}: the program was not found"),
            Some(126 | 127) => reason.to_owned(),
            Some(0) => format!("{names}: it ended without a call of MPI_Init"),
            Some(_) if !reason.is_empty() => format!("{reason} (before MPI_Init was over)"),
            Some(code) => {
                let signal = Signal::try_from(code - 128).ok();
                let by = signal.map_or_else(String::new, |signal| format!(" (that of {signal})"));
                format!("{names}: it ended with exit code {code}{by} before MPI_Init was over")
            }
            None => format!("{names}: mpiexec was killed"),
        };
        // The last output is added only if the error string, whose length is limited, has room for a useful part of it.
        const LAST: &str = "; last words: ";
        let room = (MPI_MAX_ERROR_STRING as usize).saturating_sub(CALL + how.len() + LAST.len());
        let words = self.report.as_ref().map(|report| report.last_words(room)).unwrap_or_default();
        if words.is_empty() { how } else { how + LAST + &words }
    }
}

impl Children {
    /// Returns the reason why there are no children, if mpiexec has ended.
    pub fn why_gone(&self) -> Option<Error> {
        self.ended.get().map(|end| Error::new(MPI_ERR_SPAWN, end.describe(&self.names)))
    }

    /// Returns the reason why children were lost after they called the port. Waits a while for the end of mpiexec, which first ends
    /// the remaining children.
    pub fn why_lost(&self, call: &WaitingCall, engine: &Engine) -> Option<Error> {
        let since = Instant::now();
        engine.drive(call, || {
            let over = self.ended.get().is_some() || since.elapsed() > ENDING;
            over.then(|| self.why_gone())
        })
    }
}

/// Maximum time that mpiexec may take to end a job in which a process has died.
const ENDING: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    fn described(code: Option<i32>, reason: &str, words: &str) -> String {
        let report = FailureReport { reason: reason.to_owned(), words: words.into() };
        JobEnd { code, report: Some(report) }.describe("a, b")
    }

    #[test]
    fn the_reason_and_the_last_words_are_said() {
        for (code, reason, words, expected) in [
            (
                Some(3),
                "rank 1 (b) ended with exit code 3",
                "no\nlicence\n",
                "rank 1 (b) ended with exit code 3 (before MPI_Init was over); last words: no\\nlicence",
            ),
            (
                Some(127),
                "cannot start \"b\" (rank 1): none",
                "",
                "cannot start \"b\" (rank 1): none",
            ),
            (
                Some(0),
                "",
                "usage: b FILE\n",
                "a, b: it ended without a call of MPI_Init; last words: usage: b FILE",
            ),
            (
                Some(143),
                "",
                "",
                "a, b: it ended with exit code 143 (that of SIGTERM) before MPI_Init was over",
            ),
            (None, "", "", "a, b: mpiexec was killed"),
        ] {
            assert_eq!(described(code, reason, words), expected);
        }
        let unknown = JobEnd { code: Some(127), report: None };
        assert_eq!(unknown.describe("a"), "a: the program was not found");
    }

    #[test]
    fn the_last_of_long_words_fits_into_an_error_string() {
        let text = described(Some(1), "rank 0 (a) aborted", &("x".repeat(900) + " the end"));
        assert!(text.ends_with("x the end") && text.len() + CALL <= MPI_MAX_ERROR_STRING as usize);
        assert!(!described(Some(1), &"r".repeat(600), "words").contains("last words"));
    }
}
