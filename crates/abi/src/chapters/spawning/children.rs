//! The job of spawned processes, as its parents see it: how it has ended, where it has.

use crate::constants::MPI_ERR_SPAWN;
use crate::error::Error;
use crate::node::Engine;
use crate::waiting::Call;
use nix::sys::signal::Signal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The job of the children, as its parents' root sees it.
pub(super) struct Children {
    /// The programs.
    pub names: String,
    /// How mpiexec has ended; empty until then.
    pub ended: Arc<OnceLock<Option<i32>>>,
}

impl Children {
    /// Why there are none, where mpiexec has ended.
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

    /// The same of children that have called and then do not come: mpiexec ends what is left of them.
    pub fn why_lost(&self, call: &Call, engine: &Engine) -> Option<Error> {
        let since = Instant::now();
        engine.drive(call, || {
            let over = self.ended.get().is_some() || since.elapsed() > ENDING;
            over.then(|| self.why_gone())
        })
    }
}

/// How long mpiexec may take to end a job of which a process has died.
const ENDING: Duration = Duration::from_secs(10);
