//! `mpiexec --agent`: the parent of the ranks on one host of a job. `mpiexec` starts the agent through ssh or the
//! command of a batch system. Both exchange messages over the agent's standard input and output. The agent ends its ranks when this connection ends.

use std::env;
use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use weft_bootstrap::nodes::identity;

use crate::complain;
use crate::failure::Cause;
use crate::foreground;
use crate::frames::{Down, Share, Up, take};
use crate::inherited::Inheritance;
use crate::options::Options;
use crate::signs::AliveTimes;
use crate::spawn;
use crate::standard_streams::{StandardStream, standard};
use crate::supervisor::{self, HostPart, Upstream};
use crate::uplink::Uplink;

/// Runs the ranks that `mpiexec` requests.
pub fn run() -> ExitCode {
    foreground::guard(attend)
}

/// Returns the descriptor of standard input, which stays open until the process ends.
fn input() -> BorrowedFd<'static> {
    let stdin: &'static std::io::Stdin = Box::leak(Box::new(std::io::stdin()));
    stdin.as_fd()
}

/// Writes all queued messages.
fn flush(uplink: &Uplink) {
    while uplink.is_waiting() {
        uplink.write();
    }
}

/// Waits until `mpiexec` has sent bytes. Returns `false` if a sign of life must be sent first.
fn wait(times: AliveTimes) -> bool {
    let mut ready = [PollFd::new(input(), PollFlags::POLLIN)];
    let none = times.timeout.is_zero();
    let interval = PollTimeout::try_from(times.interval).unwrap_or(PollTimeout::MAX);
    poll(&mut ready, if none { PollTimeout::NONE } else { interval }) != Ok(0)
}

fn attend(control: UnixStream, inheritance: Inheritance) -> i32 {
    let uplink = Uplink::new(standard(StandardStream::Output));
    uplink.send(&Up::Host(identity()));
    flush(&uplink);
    let mut inbox = Vec::new();
    let (mut times, mut silence) = (AliveTimes::default(), Duration::ZERO);
    let share = loop {
        match take(&mut inbox) {
            Ok(Some(Down::Start(share))) => break *share,
            Ok(Some(Down::Times(given))) => {
                times = given;
                continue;
            }
            Ok(Some(Down::Alive)) => continue,
            // The job has ended before its ranks were started.
            Ok(Some(_)) => return 1,
            Ok(None) => {}
            Err(error) => {
                complain(format_args!("mpiexec --agent: {error}"));
                return 1;
            }
        }
        if !wait(times) {
            silence += times.interval;
            if silence >= times.timeout {
                complain("mpiexec --agent: nothing is heard of mpiexec");
                return 1;
            }
            uplink.send(&Up::Alive);
            flush(&uplink);
            continue;
        }
        silence = Duration::ZERO;
        let mut piece = [0; 64 * 1024];
        match nix::unistd::read(input(), &mut piece) {
            Err(nix::Error::EINTR) => {}
            Ok(count @ 1..) => inbox.extend(&piece[..count]),
            _ => return 1,
        }
    };
    if let Err(error) = enter(&share) {
        let (rank, app) = share.ranks.first().copied().unwrap_or_default();
        let program = share.apps.get(app as usize).map(spawn::given).unwrap_or_default();
        let cause = Cause::Start { program, error, code: 126, limited: false };
        uplink.send(&Up::Failed { rank, cause });
        uplink.send(&Up::Done);
        flush(&uplink);
        return reported(&uplink, 126);
    }
    let part = HostPart::share(&share);
    let Share { apps, placement, report_bindings, grace, .. } = share;
    let grace = Duration::from_millis(grace);
    let options = Options { apps, placement, report_bindings, grace, ..Options::default() };
    let upstream = Upstream::new(uplink.clone(), input(), inbox, times);
    let code = supervisor::supervise(options, Ok(part), Some(upstream), control, inheritance);
    reported(&uplink, code)
}

/// Returns the exit code of the agent. After a complete report it is 0: `mpiexec` knows how the ranks ended, and a batch system would
/// print its own line about any other code.
fn reported(uplink: &Uplink, code: i32) -> i32 {
    if uplink.has_reported_end() { 0 } else { code }
}

/// Sets the environment variables and the working directory to those of `mpiexec`.
fn enter(share: &Share) -> Result<(), String> {
    // setenv(3) accepts no empty name and no name with `=`.
    let plain = |name: &OsString| !name.is_empty() && !name.as_bytes().contains(&b'=');
    for (name, value) in share.environment.iter().filter(|(name, _)| plain(name)) {
        // SAFETY: `set_var` requires that no other thread uses the environment. This process has one thread.
        unsafe { env::set_var(name, value) };
    }
    env::set_current_dir(&share.directory).map_err(|error| {
        format!(
            "directory {}: {error}; -wdir names one that all hosts have",
            share.directory.to_string_lossy()
        )
    })
}
