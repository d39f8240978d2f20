//! Commands of the system.

use std::process::{Command, Stdio};

/// Returns a command as text.
pub fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs a command without output to the terminal, and returns its output.
///
/// # Errors
/// The command cannot be started, or it failed. The error has all output of the command.
pub fn quiet(command: &mut Command) -> Result<String, String> {
    let text = text(command);
    let output =
        command.stdin(Stdio::null()).output().map_err(|e| format!("cannot start '{text}': {e}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(out);
    }
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(format!("'{text}' failed: {}\n{out}{err}", output.status))
}
