//! Messages in virtual time, for the processor time that computing takes longer after a turn.
//!
//! The loop calls the library's functions directly, as a compiled program does: after a turn, each further page of code would cost a
//! miss of its own.

use super::{BYTE, FitProgram, FitRank, SHORT, TAG, WORLD};
use std::ffi::c_int;
use std::time::Instant;
use weft_client::ClientLibrary;

/// Number of rounds, and of laps of a round. The laps are many, because the clock is read in each round, which leaves other caches cold.
const TURN_ROUNDS: usize = 11;
const TURN_LAPS: usize = 200;

type SendFunction = unsafe extern "C" fn(*const u64, c_int, usize, c_int, c_int, usize) -> c_int;
type ReceiveFunction =
    unsafe extern "C" fn(*mut u64, c_int, usize, c_int, c_int, usize, usize) -> c_int;

/// Runs a rank. Rank 0 prints the median time of a message of [`SHORT`] bytes.
pub(super) fn run(args: &FitRank) -> Result<(), String> {
    // The library that measures passes calls on to a library that is loaded already.
    let _library = ClientLibrary::load(args.library.to_str().unwrap_or_default())?;
    let program = FitProgram::start(args)?;
    let mut times = [0.0; TURN_ROUNDS];
    let code = laps(&program, &mut times);
    if code != 0 {
        return Err(format!("a message returned {code}"));
    }
    if program.is_first() {
        times.sort_by(f64::total_cmp);
        println!("{:.4}", times[times.len() / 2]);
    }
    program.program.call("MPI_Finalize", &[])
}

/// Measures messages, a round for each of `times`, in microseconds. Returns the code of the functions, 0 for success.
fn laps(program: &FitProgram, times: &mut [f64]) -> c_int {
    // SAFETY: the addresses are those of MPI_Send and MPI_Recv, which have these parameters.
    let (send, receive) = unsafe {
        let send = std::mem::transmute::<usize, SendFunction>(program.send);
        (send, std::mem::transmute::<usize, ReceiveFunction>(program.receive))
    };
    let (peer, tag, bytes) = (1 - program.program.me as c_int, TAG as c_int, SHORT as c_int);
    let (out, mut into, mut code) = (0, 0, 0);
    for time in times {
        let start = Instant::now();
        for _ in 0..TURN_LAPS {
            if program.is_first() {
                // SAFETY: both buffers have SHORT bytes.
                unsafe {
                    code |= send(&raw const out, bytes, BYTE, peer, tag, WORLD);
                    code |= receive(&raw mut into, bytes, BYTE, peer, tag, WORLD, 0);
                }
            } else {
                // SAFETY: both buffers have SHORT bytes.
                unsafe {
                    code |= receive(&raw mut into, bytes, BYTE, peer, tag, WORLD, 0);
                    code |= send(&raw const out, bytes, BYTE, peer, tag, WORLD);
                }
            }
        }
        *time = start.elapsed().as_secs_f64() * 1e6 / TURN_LAPS as f64 / 2.0;
    }
    code
}
