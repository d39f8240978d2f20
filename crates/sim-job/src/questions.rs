//! SIGQUIT, by which the user asks what the ranks wait for.

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;

/// The signals that ask. They are blocked in this thread as long as the value lives; programs that are started do not inherit this.
pub struct UserQuestions {
    signals: SignalFd,
    before: SigSet,
}

impl UserQuestions {
    pub fn new() -> io::Result<UserQuestions> {
        let asking = SigSet::from(Signal::SIGQUIT);
        let before = SigSet::thread_get_mask()?;
        asking.thread_block()?;
        let signals =
            SignalFd::with_flags(&asking, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(UserQuestions { signals, before })
    }

    /// Returns true if a process has asked since the last call. A question from the terminal does not count: the terminal asks all
    /// processes in its foreground, so also the launcher.
    pub fn take(&self) -> bool {
        let mut asked = false;
        while let Ok(Some(signal)) = self.signals.read_signal() {
            asked |= signal.ssi_code != libc::SI_KERNEL;
        }
        asked
    }
}

impl Drop for UserQuestions {
    fn drop(&mut self) {
        // Without the old mask, later questions wait.
        let _ = self.before.thread_set_mask();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "signalfd")]
    fn a_signal_is_a_question_and_does_not_end_the_process() {
        let questions = UserQuestions::new().unwrap();
        assert!(!questions.take());
        nix::sys::signal::raise(Signal::SIGQUIT).unwrap();
        assert!(questions.take());
        assert!(!questions.take());
    }
}
