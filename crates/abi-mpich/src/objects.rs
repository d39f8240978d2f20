//! Objects and functions that MPICH's headers name beside the functions of MPI.

use crate::entry_points::Datatype;
use crate::status::STATUS_NUMBERS;
use std::ffi::{c_int, c_void};
use weft_legacy::runtime::standard::constants;
use weft_legacy::runtime::{ExportedAddress, TypeBound};

/// Distinct addresses that stand for constants.
static PLACES: [c_int; 3] = [0; 3];

/// `MPI_UNWEIGHTED`.
#[unsafe(no_mangle)]
pub static MPI_UNWEIGHTED: ExportedAddress = ExportedAddress(&raw const PLACES[0]);
/// `MPI_WEIGHTS_EMPTY`.
#[unsafe(no_mangle)]
pub static MPI_WEIGHTS_EMPTY: ExportedAddress = ExportedAddress(&raw const PLACES[1]);
/// `MPI_T_PVAR_ALL_HANDLES`.
#[unsafe(no_mangle)]
pub static MPI_T_PVAR_ALL_HANDLES: ExportedAddress = ExportedAddress(&raw const PLACES[2]);
/// `MPI_F_STATUS_IGNORE`, which Fortran's library sets.
#[unsafe(no_mangle)]
pub static mut MPI_F_STATUS_IGNORE: *mut c_int = std::ptr::null_mut();
/// `MPI_F_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static mut MPI_F_STATUSES_IGNORE: *mut c_int = std::ptr::null_mut();
/// The status of `mpi_f08` that is ignored.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUS_IGNORE_OBJ: [c_int; STATUS_NUMBERS] = [0; STATUS_NUMBERS];
/// The statuses of `mpi_f08` that are ignored.
#[unsafe(no_mangle)]
pub static MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [[c_int; STATUS_NUMBERS]; 1] =
    [[0; STATUS_NUMBERS]; 1];
/// `MPI_F08_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: ExportedAddress =
    ExportedAddress((&raw const MPIR_F08_MPI_STATUS_IGNORE_OBJ).cast());
/// `MPI_F08_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: ExportedAddress =
    ExportedAddress((&raw const MPIR_F08_MPI_STATUSES_IGNORE_OBJ).cast());

fn is(place: usize, address: *const c_void) -> bool {
    address == (&raw const PLACES[place]).cast()
}

/// Converts the address of weights.
pub fn weights(address: *mut c_int) -> *mut c_int {
    let standard = match () {
        _ if is(0, address.cast()) => constants::MPI_UNWEIGHTED,
        _ if is(1, address.cast()) => constants::MPI_WEIGHTS_EMPTY,
        _ => return address,
    };
    std::ptr::without_provenance_mut(standard as usize)
}

/// Converts the handle of a performance variable.
pub fn performance_variable(handle: usize) -> usize {
    match is(2, std::ptr::without_provenance(handle)) {
        true => constants::MPI_T_PVAR_ALL_HANDLES as usize,
        false => handle,
    }
}

/// Returns the bound for which MPI 1 had a datatype.
pub fn bound(datatype: Datatype) -> Option<TypeBound> {
    match datatype.0 {
        0x4c00_0010 => Some(TypeBound::Lower),
        0x4c00_0011 => Some(TypeBound::Upper),
        _ => None,
    }
}

/// Copies an attribute: `MPI_DUP_FN`, `MPI_COMM_DUP_FN`, `MPI_TYPE_DUP_FN` and `MPI_WIN_DUP_FN`.
///
/// # Safety
/// `new` and `flag` may be written.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn MPIR_Dup_fn(
    _handle: c_int,
    _key: c_int,
    _extra: *mut c_void,
    value: *mut c_void,
    new: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: the caller promises it.
    unsafe {
        new.cast::<*mut c_void>().write(value);
        flag.write(1);
    }
    0
}

/// Defines questions for GPUs, each as `MPIX_` and `PMPIX_`. Buffers in the memory of a GPU are not supported.
macro_rules! without_gpu {
    (one: $($one:ident)*; stored: $($stored:ident)*) => {
        $(
            /// Returns 0: buffers in the memory of a GPU are not supported.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub extern "C" fn $one() -> c_int {
                0
            }
        )*
        $(
            /// Stores that buffers in the memory of a GPU are not supported.
            ///
            /// # Safety
            /// `is_supported` is NULL or may be written.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $stored(_kind: c_int, is_supported: *mut c_int) -> c_int {
                if !is_supported.is_null() {
                    // SAFETY: the pointer may be written: the caller promises it.
                    unsafe { is_supported.write(0) }
                }
                0
            }
        )*
    };
}

without_gpu! {
    one:
        MPIX_Query_cuda_support PMPIX_Query_cuda_support
        MPIX_Query_hip_support PMPIX_Query_hip_support
        MPIX_Query_ze_support PMPIX_Query_ze_support;
    stored: MPIX_GPU_query_support PMPIX_GPU_query_support
}
