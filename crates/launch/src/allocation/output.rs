//! Output of a batch system's command.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use weft_bootstrap::limits::explain;

/// Maximum time of a command.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum size of the output, in bytes.
const LONGEST: usize = 16 << 20;

/// Reads the output up to its end.
fn read(mut pipe: ChildStdout, deadline: Instant) -> Result<Vec<u8>, String> {
    let mut all = Vec::new();
    let mut piece = [0; 64 * 1024];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], left) {
            Ok(0) => return Err(format!("it has not ended within {} s", PATIENCE.as_secs())),
            Err(nix::Error::EINTR) => continue,
            _ => {}
        }
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(all),
            Ok(count) => all.extend(&piece[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.to_string()),
        }
        if all.len() > LONGEST {
            return Err(format!("it printed more than {LONGEST} bytes"));
        }
    }
}

/// Runs a command and returns what it prints. Its messages go to standard error.
pub(super) fn of(words: &[&str]) -> Result<String, String> {
    let mut command = Command::new(words.first().copied().unwrap_or_default());
    command.args(words.get(1..).unwrap_or_default());
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| explain(&error))?;
    let output = child.stdout.take().map(|pipe| read(pipe, Instant::now() + PATIENCE));
    if !matches!(output, Some(Ok(_))) {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    let output = output.unwrap_or_else(|| Ok(Vec::new()))?;
    if !status.success() {
        return Err(format!("it ended with {status}"));
    }
    String::from_utf8(output).map_err(|_| "its output is not UTF-8 text".into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn commands_are_run() {
        assert_eq!(super::of(&["echo", "a b"]).unwrap(), "a b\n");
        for (words, error) in [
            (&["false"][..], "it ended with exit status: 1"),
            (&["/no/such/flux"], "No such file"),
            (&["cat", "/dev/zero"], "more than 16777216 bytes"),
            (&["printf", "\\377"], "not UTF-8"),
        ] {
            let said = super::of(words).unwrap_err();
            assert!(said.contains(error), "{words:?}: {said}");
        }
    }
}
