//! The hosts that a batch system has given to this job, as `mpiexec` finds them.

use std::env;
use std::process::{Command, Stdio};

use weft_bootstrap::limits::explain;

/// Asks the `mpiexec` beside this program. Returns its lines, or its message as a line if the batch system's variables are malformed.
pub fn lines() -> Vec<String> {
    let mpiexec = env::current_exe().unwrap_or_default().with_file_name("mpiexec");
    let mut command = Command::new(&mpiexec);
    command.arg("--show-allocation").stdin(Stdio::null());
    let text = match command.output() {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => output.stderr,
        Err(error) => format!("{}: {}", mpiexec.display(), explain(&error)).into_bytes(),
    };
    String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()
}
