//! End of the job by an error.

use crate::state::{ProcessPhase, state};
use std::ffi::c_int;

/// Ends the job. `message` is printed once, by the launcher if there is one.
pub fn die(code: c_int, message: &str) -> ! {
    let state = state();
    // SAFETY: `fflush` accepts NULL, which flushes all streams.
    unsafe { libc::fflush(std::ptr::null_mut()) };
    if state.phase.get() != ProcessPhase::Forked
        && let Ok(mut bootstrap) = state.bootstrap.try_borrow_mut()
        && let Some(bootstrap) = &mut *bootstrap
    {
        bootstrap.abort(code, message);
    } else {
        eprintln!("weft: {message}");
    }
    // Exit handlers of the program do not run, because they could wait for peers for ever.
    // SAFETY: `_exit` takes no pointers, and ends the process.
    unsafe { libc::_exit(if code & 0xff == 0 { 1 } else { code }) }
}
