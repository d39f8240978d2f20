//! The job of spawned processes, as its parents see it: whether it has ended, and how.

use crate::constants::MPI_ERR_SPAWN;
use crate::error::Error;
use crate::node::Engine;
use crate::waiting::Call;
use nix::sys::signal::Signal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The job of the children, at its parents' root.
pub(super) struct Children {
    /// Names of the programs.
    pub names: String,
    /// Exit code of mpiexec; empty until mpiexec has ended, `None` inside if there is no code.
    pub ended: Arc<OnceLock<Option<i32>>>,
}

impl Children {
    /// Returns the reason why there are no children, if mpiexec has ended.
    pub fn why_gone(&self) -> Option<Error> {
        let code = *self.ended.get()?;
        let how = match code {
            Some(127) => "the program was not found".to_owned(),
            Some(0) => "it ended without a call of MPI_Init".to_owned(),
            Some(code) => {
                let signal = Signal::try_from(code - 128).ok();
                let by = signal.map_or_else(String::new, |signal| format!(" (that of {signal})"));
                format!("it ended with exit code {code}{by} before MPI_Init was over")
            }
            None => "mpiexec was killed".to_owned(),
        };
        Some(Error::new(MPI_ERR_SPAWN, format_args!("{}: {how}", self.names)))
    }

    /// Returns the reason why children that have called were lost. Waits a while for mpiexec, which ends the remaining children.
    pub fn why_lost(&self, call: &Call, engine: &Engine) -> Option<Error> {
        let since = Instant::now();
        engine.drive(call, || {
            let over = self.ended.get().is_some() || since.elapsed() > ENDING;
            over.then(|| self.why_gone())
        })
    }
}

/// Maximum time that mpiexec may take to end a job in which a process has died.
const ENDING: Duration = Duration::from_secs(10);
