//! Functions that the library exports only to report that they do not work.

use super::standard::{constants, standard};
use super::{LegacyAbi, codes};
use std::ffi::c_int;
use std::io::{Write, stderr};

/// Name of a function, and the reason with a remedy.
pub type Unsupported = (&'static str, &'static str);

fn report((name, sentence): Unsupported) {
    // A process without standard error still gets the error code.
    let _ = writeln!(stderr(), "weft: {name} is not supported: {sentence}");
}

/// Reports the function and raises MPI_ERR_UNSUPPORTED_OPERATION on a communicator, which is the standard's handle. Returns the older
/// ABI's code if the error handler returns.
pub fn raise<A: LegacyAbi>(function: Unsupported, comm: usize) -> c_int {
    report(function);
    let code = constants::MPI_ERR_UNSUPPORTED_OPERATION as c_int;
    // SAFETY: the library checks the handle.
    unsafe { (standard().MPI_Comm_call_errhandler)(comm, code) };
    codes::from_standard::<A>(code)
}

/// Reports the function and ends the job.
pub fn abort(function: Unsupported) -> ! {
    report(function);
    // SAFETY: MPI_Abort may be called at any time.
    unsafe { (standard().MPI_Abort)(constants::MPI_COMM_WORLD as usize, 1) };
    std::process::abort()
}
