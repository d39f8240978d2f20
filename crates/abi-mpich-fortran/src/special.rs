//! Variables of Fortran whose addresses have a meaning: members of common blocks. The program has blocks of the same names; the
//! loader makes all libraries use the program's.

use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;
use std::ptr::{null_mut, without_provenance_mut};

/// Number of integers in a status.
pub const STATUS_NUMBERS: usize = 5;

type FortranStatus = [c_int; STATUS_NUMBERS];

/// Block of a buffer's special addresses, and of the status that is ignored.
#[repr(C)]
pub struct BufferBlock {
    bottom: c_int,
    in_place: c_int,
    status_ignore: FortranStatus,
}

/// Block of the statuses and codes that are ignored.
#[repr(C)]
pub struct ArrayBlock {
    statuses_ignore: FortranStatus,
    errcodes_ignore: c_int,
}

/// Block of the texts that stand for no arguments.
#[repr(C)]
pub struct TextBlock {
    argvs_null: c_char,
    argv_null: c_char,
}

/// Common block of `MPI_BOTTOM`, `MPI_IN_PLACE` and `MPI_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static mut mpipriv1_: BufferBlock =
    BufferBlock { bottom: 0, in_place: 0, status_ignore: [0; STATUS_NUMBERS] };
/// Common block of `MPI_STATUSES_IGNORE` and `MPI_ERRCODES_IGNORE`.
#[unsafe(no_mangle)]
pub static mut mpipriv2_: ArrayBlock =
    ArrayBlock { statuses_ignore: [0; STATUS_NUMBERS], errcodes_ignore: 0 };
/// Common block of `MPI_ARGVS_NULL` and `MPI_ARGV_NULL`.
#[unsafe(no_mangle)]
pub static mut mpiprivc_: TextBlock = TextBlock { argvs_null: 0, argv_null: 0 };
/// Common block of `MPI_UNWEIGHTED`.
#[unsafe(no_mangle)]
pub static mut mpifcmb5_: c_int = 0;
/// Common block of `MPI_WEIGHTS_EMPTY`.
#[unsafe(no_mangle)]
pub static mut mpifcmb9_: c_int = 0;

/// Defines variables of the modules behind `mpi_f08`.
macro_rules! module_variables {
    ($($name:ident: $kind:ty, $constant:literal;)*) => {
        $(
            #[doc = concat!("`", $constant, "` of `mpi_f08`.")]
            #[unsafe(no_mangle)]
            pub static mut $name: $kind = 0;
        )*
    };
}

module_variables! {
    MPIR_F08_MPI_BOTTOM: c_int, "MPI_BOTTOM";
    MPIR_F08_MPI_IN_PLACE: c_int, "MPI_IN_PLACE";
    __mpi_f08_link_constants_MOD_mpi_errcodes_ignore: c_int, "MPI_ERRCODES_IGNORE";
    mpi_f08_link_constants_mp_mpi_errcodes_ignore_: c_int, "MPI_ERRCODES_IGNORE";
    __mpi_f08_link_constants_MOD_mpi_unweighted: c_int, "MPI_UNWEIGHTED";
    mpi_f08_link_constants_mp_mpi_unweighted_: c_int, "MPI_UNWEIGHTED";
    __mpi_f08_link_constants_MOD_mpi_weights_empty: c_int, "MPI_WEIGHTS_EMPTY";
    mpi_f08_link_constants_mp_mpi_weights_empty_: c_int, "MPI_WEIGHTS_EMPTY";
    __mpi_f08_link_constants_MOD_mpi_argv_null: c_char, "MPI_ARGV_NULL";
    mpi_f08_link_constants_mp_mpi_argv_null_: c_char, "MPI_ARGV_NULL";
    __mpi_f08_link_constants_MOD_mpi_argvs_null: c_char, "MPI_ARGVS_NULL";
    mpi_f08_link_constants_mp_mpi_argvs_null_: c_char, "MPI_ARGVS_NULL";
}

/// Returns true if an address is that of a variable of the modules, which gfortran and Intel's compilers name differently.
macro_rules! is_variable {
    ($at:expr, $gfortran:ident, $intel:ident) => {{
        let at = $at.cast_const();
        at == &raw const $gfortran || at == &raw const $intel
    }};
}

/// `MPI_IN_PLACE` and `MPI_STATUS_IGNORE` in C.
const IN_PLACE: usize = usize::MAX;
const STATUS_IGNORE: usize = 1;

unsafe extern "C" {
    static mut MPI_F_STATUS_IGNORE: *mut c_int;
    static mut MPI_F_STATUSES_IGNORE: *mut c_int;
    // Statuses of `mpi_f08` that are ignored.
    static mut MPIR_F08_MPI_STATUS_IGNORE_OBJ: FortranStatus;
    static mut MPIR_F08_MPI_STATUSES_IGNORE_OBJ: [FortranStatus; 1];
    static MPI_UNWEIGHTED: *mut c_int;
    static MPI_WEIGHTS_EMPTY: *mut c_int;
}

/// Tells C where Fortran's statuses lie, before the program calls anything.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

extern "C" fn load() {
    // SAFETY: the loader calls this as a constructor of the library; no other thread reads the variables yet.
    unsafe {
        MPI_F_STATUS_IGNORE = (&raw mut mpipriv1_.status_ignore).cast();
        MPI_F_STATUSES_IGNORE = (&raw mut mpipriv2_.statuses_ignore).cast();
    }
}

/// Returns the address of a member of a block.
#[inline(always)]
fn member<B, M>(block: *mut B, offset: usize) -> *mut M {
    block.cast::<u8>().wrapping_add(offset).cast()
}

/// Returns the address of a buffer in C.
#[inline(always)]
pub fn buffer(at: *mut c_void) -> *mut c_void {
    let in_place = member(&raw mut mpipriv1_, offset_of!(BufferBlock, in_place));
    if at == in_place || at == (&raw mut MPIR_F08_MPI_IN_PLACE).cast() {
        return without_provenance_mut(IN_PLACE);
    }
    let bottom = member(&raw mut mpipriv1_, offset_of!(BufferBlock, bottom));
    if at == bottom || at == (&raw mut MPIR_F08_MPI_BOTTOM).cast() { null_mut() } else { at }
}

/// Returns the address of a status, or of an array of statuses, in C.
#[inline(always)]
pub fn status(at: *mut c_int) -> *mut c_int {
    let one = member(&raw mut mpipriv1_, offset_of!(BufferBlock, status_ignore));
    let many = member(&raw mut mpipriv2_, offset_of!(ArrayBlock, statuses_ignore));
    let modern = [
        (&raw mut MPIR_F08_MPI_STATUS_IGNORE_OBJ).cast(),
        (&raw mut MPIR_F08_MPI_STATUSES_IGNORE_OBJ).cast(),
    ];
    if at == one || at == many || modern.contains(&at) {
        without_provenance_mut(STATUS_IGNORE)
    } else {
        at
    }
}

/// Returns the address of weights in C.
pub fn weights(at: *mut c_int) -> *mut c_int {
    // SAFETY: the C library sets these variables before this library is loaded, and nobody changes them.
    let (unweighted, empty) = unsafe { (MPI_UNWEIGHTED, MPI_WEIGHTS_EMPTY) };
    if at == &raw mut mpifcmb5_
        || is_variable!(
            at,
            __mpi_f08_link_constants_MOD_mpi_unweighted,
            mpi_f08_link_constants_mp_mpi_unweighted_
        )
    {
        return unweighted;
    }
    let is_empty = at == &raw mut mpifcmb9_
        || is_variable!(
            at,
            __mpi_f08_link_constants_MOD_mpi_weights_empty,
            mpi_f08_link_constants_mp_mpi_weights_empty_
        );
    if is_empty { empty } else { at }
}

/// Returns the address of error codes in C.
pub fn error_codes(at: *mut c_int) -> *mut c_int {
    let old = member(&raw mut mpipriv2_, offset_of!(ArrayBlock, errcodes_ignore));
    if at == old
        || is_variable!(
            at,
            __mpi_f08_link_constants_MOD_mpi_errcodes_ignore,
            mpi_f08_link_constants_mp_mpi_errcodes_ignore_
        )
    {
        null_mut()
    } else {
        at
    }
}

/// Returns true if the address of arguments means MPI_ARGV_NULL or MPI_ARGVS_NULL.
pub fn is_no_argument(at: *const c_char) -> bool {
    let names = [offset_of!(TextBlock, argv_null), offset_of!(TextBlock, argvs_null)];
    let old = names.iter().any(|&offset| at == member::<_, c_char>(&raw mut mpiprivc_, offset));
    let modern = [
        &raw const __mpi_f08_link_constants_MOD_mpi_argv_null,
        &raw const __mpi_f08_link_constants_MOD_mpi_argvs_null,
        &raw const mpi_f08_link_constants_mp_mpi_argv_null_,
        &raw const mpi_f08_link_constants_mp_mpi_argvs_null_,
    ];
    old || modern.contains(&at)
}
