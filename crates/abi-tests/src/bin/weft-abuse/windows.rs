//! Window of a case: of only this process, with the epoch open in which a function must be called.

use crate::fixture::World;
use crate::mpi::Mpi;
use crate::signature::constant;
use std::ffi::c_int;

/// Number of bytes of a window.
pub const BYTES: usize = 256;
/// Number of bytes that are attached to a dynamic window, and size of the windows that a function under test makes.
pub const ATTACHED: usize = 64;

/// Returns the group of this process.
fn group(mpi: &Mpi) -> usize {
    mpi.make("MPI_Comm_group", &[constant("MPI_COMM_SELF")])
}

/// Makes a window of a communicator for a function.
pub fn make(world: &World, comm: usize, stem: &str) -> usize {
    let (mpi, info) = (world.mpi, constant("MPI_INFO_NULL"));
    let dynamic = matches!(stem, "Win_attach" | "Win_detach");
    let win = if dynamic {
        mpi.make("MPI_Win_create_dynamic", &[info, comm])
    } else {
        let mut base = 0usize;
        let base = &raw mut base as usize;
        mpi.make("MPI_Win_allocate", &[BYTES, 1, info, comm, base])
    };
    mpi.must("MPI_Win_set_errhandler", &[win, constant("MPI_ERRORS_RETURN")]);
    prepare(world, win, stem);
    win
}

/// Makes the calls that must precede a good call.
fn prepare(world: &World, win: usize, stem: &str) {
    let mpi = world.mpi;
    let exposed = |then: &[&str]| {
        let mut group = group(mpi);
        mpi.must("MPI_Win_post", &[group, 0, win]);
        for name in then {
            match *name {
                "MPI_Win_start" => mpi.must(name, &[group, 0, win]),
                _ => mpi.must(name, &[win]),
            }
        }
        mpi.must("MPI_Group_free", &[&raw mut group as usize]);
    };
    match stem {
        "Win_unlock" => mpi.must("MPI_Win_lock", &[constant("MPI_LOCK_SHARED"), 0, 0, win]),
        "Win_unlock_all" => mpi.must("MPI_Win_lock_all", &[0, win]),
        "Win_start" => exposed(&[]),
        "Win_complete" => exposed(&["MPI_Win_start"]),
        "Win_wait" | "Win_test" => exposed(&["MPI_Win_start", "MPI_Win_complete"]),
        // The memory of the second parameter.
        "Win_detach" => mpi.must("MPI_Win_attach", &[win, world.slot(1), ATTACHED]),
        _ if stem.starts_with("Win_flush") || !stem.starts_with("Win") && !stem.is_empty() => {
            mpi.must("MPI_Win_lock_all", &[0, win]);
        }
        _ => {}
    }
}

/// Ends all open epochs, and frees the window, which may be freed already.
pub fn free(mpi: &Mpi, mut win: usize) {
    if mpi.code("MPI_Win_set_errhandler", &[win, constant("MPI_ERRORS_RETURN")]) != 0 {
        return;
    }
    mpi.code("MPI_Win_unlock_all", &[win]);
    mpi.code("MPI_Win_unlock", &[0, win]);
    mpi.code("MPI_Win_complete", &[win]);
    let over = || {
        let mut flag: c_int = 0;
        let code = mpi.code("MPI_Win_test", &[win, &raw mut flag as usize]);
        code != 0 || std::hint::black_box(flag) != 0
    };
    if !over() {
        // The window is posted, and this process has not accessed it yet.
        let mut group = group(mpi);
        mpi.code("MPI_Win_start", &[group, 0, win]);
        mpi.code("MPI_Win_complete", &[win]);
        mpi.code("MPI_Group_free", &[&raw mut group as usize]);
        mpi.code("MPI_Win_wait", &[win]);
    }
    mpi.must("MPI_Win_free", &[&raw mut win as usize]);
}
