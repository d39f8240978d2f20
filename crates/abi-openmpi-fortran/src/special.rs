//! Variables of Fortran whose addresses have a meaning: common blocks. The program has blocks of the same names; the loader makes
//! all libraries use the program's.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::{null_mut, without_provenance_mut};

/// Number of integers in a status.
pub const STATUS_NUMBERS: usize = 6;

/// Defines the common blocks.
macro_rules! common_blocks {
    ($($name:ident: $kind:ty = $value:expr, $constant:literal;)*) => {
        $(
            #[doc = concat!("Common block of `", $constant, "`.")]
            #[unsafe(no_mangle)]
            pub static mut $name: $kind = $value;
        )*
    };
}

common_blocks! {
    mpi_fortran_bottom_: c_int = 0, "MPI_BOTTOM";
    mpi_fortran_in_place_: c_int = 0, "MPI_IN_PLACE";
    mpi_fortran_status_ignore_: [c_int; STATUS_NUMBERS] = [0; STATUS_NUMBERS], "MPI_STATUS_IGNORE";
    mpi_fortran_statuses_ignore_: [c_int; STATUS_NUMBERS] = [0; STATUS_NUMBERS], "MPI_STATUSES_IGNORE";
    mpi_fortran_errcodes_ignore_: c_int = 0, "MPI_ERRCODES_IGNORE";
    mpi_fortran_unweighted_: c_int = 0, "MPI_UNWEIGHTED";
    mpi_fortran_weights_empty_: c_int = 0, "MPI_WEIGHTS_EMPTY";
    mpi_fortran_argv_null_: c_char = 0, "MPI_ARGV_NULL";
    mpi_fortran_argvs_null_: c_char = 0, "MPI_ARGVS_NULL";
}

/// `MPI_IN_PLACE`, `MPI_UNWEIGHTED` and `MPI_WEIGHTS_EMPTY` in C.
const IN_PLACE: usize = 1;
const UNWEIGHTED: usize = 2;
const WEIGHTS_EMPTY: usize = 3;

unsafe extern "C" {
    static mut MPI_F_STATUS_IGNORE: *mut c_int;
    static mut MPI_F_STATUSES_IGNORE: *mut c_int;
}

/// Tells C where Fortran's statuses lie, before the program calls anything.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

extern "C" fn load() {
    // SAFETY: the loader calls this as a constructor of the library; no other thread reads the variables yet.
    unsafe {
        MPI_F_STATUS_IGNORE = (&raw mut mpi_fortran_status_ignore_).cast();
        MPI_F_STATUSES_IGNORE = (&raw mut mpi_fortran_statuses_ignore_).cast();
    }
}

/// Returns true if the address of a buffer means MPI_IN_PLACE.
#[inline(always)]
pub fn is_in_place(at: *mut c_void) -> bool {
    at == (&raw mut mpi_fortran_in_place_).cast()
}

/// Returns the address of a buffer in C.
#[inline(always)]
pub fn buffer(at: *mut c_void) -> *mut c_void {
    if is_in_place(at) {
        return without_provenance_mut(IN_PLACE);
    }
    if at == (&raw mut mpi_fortran_bottom_).cast() { null_mut() } else { at }
}

/// Returns the address of a status, or of an array of statuses, in C.
#[inline(always)]
pub fn status(at: *mut c_int) -> *mut c_int {
    let ignored = at == (&raw mut mpi_fortran_status_ignore_).cast()
        || at == (&raw mut mpi_fortran_statuses_ignore_).cast();
    if ignored { null_mut() } else { at }
}

/// Returns the address of weights in C.
pub fn weights(at: *mut c_int) -> *mut c_int {
    if at == &raw mut mpi_fortran_unweighted_ {
        return without_provenance_mut(UNWEIGHTED);
    }
    if at == &raw mut mpi_fortran_weights_empty_ {
        without_provenance_mut(WEIGHTS_EMPTY)
    } else {
        at
    }
}

/// Returns the address of error codes in C.
pub fn error_codes(at: *mut c_int) -> *mut c_int {
    if at == &raw mut mpi_fortran_errcodes_ignore_ { null_mut() } else { at }
}

/// Returns true if the address of arguments means MPI_ARGV_NULL or MPI_ARGVS_NULL.
pub fn is_no_argument(at: *const c_char) -> bool {
    [&raw const mpi_fortran_argv_null_, &raw const mpi_fortran_argvs_null_].contains(&at)
}
