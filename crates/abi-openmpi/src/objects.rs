//! Objects and functions that Open MPI's headers name beside the functions of MPI, and handles as addresses.

use crate::entry_points::{Comm, Datatype, Own, Request};
use crate::status::STATUS_NUMBERS;
use std::ffi::{c_char, c_int, c_void};
use weft_legacy::runtime::arguments::HandleArgument;
use weft_legacy::runtime::standard::constants;
use weft_legacy::runtime::{ExportedAddress, TypeBound, codes};

/// A predefined object, of the size that copy relocations need. The first word is the standard's handle.
#[repr(C, align(64))]
pub struct PredefinedObject<const BYTES: usize> {
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> PredefinedObject<BYTES> {
    /// Makes the object of a handle.
    pub const fn new(standard: usize) -> PredefinedObject<BYTES> {
        let mut bytes = [0; BYTES];
        let word = standard.to_ne_bytes();
        let mut i = 0;
        while i < word.len() {
            bytes[i] = word[i];
            i += 1;
        }
        PredefinedObject { bytes }
    }
}

/// Lowest bits of a handle. They are 0 in the address of an object, and the class of the standard's handle in any other handle.
const CLASS: usize = 0xf;

/// Lower bound of the addresses of objects: Linux maps nothing below it.
const LOWEST: usize = 0x10000;

/// Returns the standard's handle. A number that is no address stays, and is no object's handle.
#[inline(always)]
pub fn to_standard(handle: usize) -> usize {
    if handle & CLASS != 0 || handle < LOWEST {
        return handle;
    }
    // SAFETY: the program passes handles that MPI defines, so this is the address of an object, which begins with a word.
    unsafe { *std::ptr::with_exposed_provenance(handle) }
}

/// Returns the address of an exported object. In a program that is not position-independent, the loader puts the address of the
/// program's copy in its place.
#[inline(always)]
pub fn address<T>(object: *const T) -> usize {
    object.expose_provenance()
}

/// `MPI_LB` of MPI 1.
#[unsafe(no_mangle)]
pub static ompi_mpi_lb: PredefinedObject<512> = PredefinedObject::new(LOWER);
/// `MPI_UB` of MPI 1.
#[unsafe(no_mangle)]
pub static ompi_mpi_ub: PredefinedObject<512> = PredefinedObject::new(UPPER);

/// First words of the objects for bounds. No datatype of the standard has these handles.
const LOWER: usize = 1;
const UPPER: usize = 2;

/// Returns the bound for which MPI 1 had a datatype.
pub fn bound(datatype: Datatype) -> Option<TypeBound> {
    match to_standard(datatype.0) {
        LOWER => Some(TypeBound::Lower),
        UPPER => Some(TypeBound::Upper),
        _ => None,
    }
}

/// Converts the address of weights.
pub fn weights(address: *mut c_int) -> *mut c_int {
    let standard = match address.addr() {
        2 => constants::MPI_UNWEIGHTED,
        3 => constants::MPI_WEIGHTS_EMPTY,
        _ => return address,
    };
    std::ptr::without_provenance_mut(standard as usize)
}

/// Converts the handle of a performance variable.
pub fn performance_variable(handle: usize) -> usize {
    if handle == usize::MAX { constants::MPI_T_PVAR_ALL_HANDLES as usize } else { handle }
}

/// Runs MPI_Comm_idup. The library stores the new handle in the program's memory when the request completes: a handle of the
/// program is the standard's.
///
/// # Safety
/// `place` and `request` are NULL or may be written, `place` until the request is complete.
pub unsafe fn duplicate(
    place: *mut Comm,
    request: *mut Request,
    start: impl FnOnce(*mut usize, *mut usize) -> c_int,
) -> c_int {
    let mut started = HandleArgument::out(request);
    let code = start(place.cast(), started.pass());
    // SAFETY: `request` is NULL or may be written: the caller promises it.
    unsafe { started.finish() };
    codes::from_standard::<Own>(code)
}

static IGNORED: [c_int; STATUS_NUMBERS] = [0; STATUS_NUMBERS];

/// `MPI_F_STATUS_IGNORE`, which Fortran's library sets.
#[unsafe(no_mangle)]
pub static mut MPI_F_STATUS_IGNORE: *mut c_int = std::ptr::null_mut();
/// `MPI_F_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static mut MPI_F_STATUSES_IGNORE: *mut c_int = std::ptr::null_mut();
/// `MPI_F08_STATUS_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUS_IGNORE: ExportedAddress = ExportedAddress(&raw const IGNORED[0]);
/// `MPI_F08_STATUSES_IGNORE`.
#[unsafe(no_mangle)]
pub static MPI_F08_STATUSES_IGNORE: ExportedAddress = ExportedAddress(&raw const IGNORED[0]);

/// Defines functions of attributes that copy nothing, that copy the value, and that do nothing.
macro_rules! attribute_functions {
    (none: $($none:ident)*; dup: $($dup:ident)*; delete: $($delete:ident)*;) => {
        $(
            /// Copies no attribute.
            ///
            /// # Safety
            /// `flag` may be written.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $none(
                _: usize, _: c_int, _: *mut c_void, _: *mut c_void, _: *mut c_void, flag: *mut c_int,
            ) -> c_int {
                // SAFETY: the caller promises it.
                unsafe { flag.write(0) };
                0
            }
        )*
        $(
            /// Copies an attribute.
            ///
            /// # Safety
            /// `new` and `flag` may be written.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $dup(
                _: usize, _: c_int, _: *mut c_void, value: *mut c_void, new: *mut c_void, flag: *mut c_int,
            ) -> c_int {
                // SAFETY: the caller promises it.
                unsafe {
                    new.cast::<*mut c_void>().write(value);
                    flag.write(1);
                }
                0
            }
        )*
        $(
            /// Does nothing.
            #[unsafe(no_mangle)]
            pub extern "C" fn $delete(_: usize, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
                0
            }
        )*
    };
}

attribute_functions! {
    none: OMPI_C_MPI_NULL_COPY_FN OMPI_C_MPI_COMM_NULL_COPY_FN OMPI_C_MPI_TYPE_NULL_COPY_FN OMPI_C_MPI_WIN_NULL_COPY_FN;
    dup: OMPI_C_MPI_DUP_FN OMPI_C_MPI_COMM_DUP_FN OMPI_C_MPI_TYPE_DUP_FN OMPI_C_MPI_WIN_DUP_FN;
    delete: OMPI_C_MPI_NULL_DELETE_FN OMPI_C_MPI_COMM_NULL_DELETE_FN OMPI_C_MPI_TYPE_NULL_DELETE_FN OMPI_C_MPI_WIN_NULL_DELETE_FN;
}

/// Stores three empty texts: where a process is bound is known by `mpiexec`.
///
/// # Safety
/// The texts are NULL or have room for a byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OMPI_Affinity_str(
    _format: c_int,
    bound: *mut c_char,
    current: *mut c_char,
    exists: *mut c_char,
) -> c_int {
    for text in [bound, current, exists] {
        if !text.is_null() {
            // SAFETY: the text has room for a byte: the caller promises it.
            unsafe { text.write(0) }
        }
    }
    0
}
