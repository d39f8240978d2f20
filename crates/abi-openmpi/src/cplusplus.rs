//! Symbols of Open MPI's library that its C++ bindings (`libmpi_cxx.so.40`) need. MPI 3.0 removed the bindings, but libraries of
//! distributions are still linked with them (Trilinos, SuperLU and PETSc in Debian 12), and do not load without these symbols.
//!
//! Functions of the bindings that call functions of MPI work. Those that create callbacks enter Open MPI's library itself: they end
//! the job with a sentence.

use std::cell::UnsafeCell;
use std::ffi::c_int;
use weft_legacy::runtime::standard::constants;
use weft_legacy::runtime::unsupported;

/// An object that the bindings' library may write, at its start.
#[repr(C, align(64))]
pub struct WritableObject<const WORDS: usize>(UnsafeCell<[usize; WORDS]>);

// SAFETY: this library reads the first word only, which the bindings do not write.
unsafe impl<const WORDS: usize> Sync for WritableObject<WORDS> {}

impl<const WORDS: usize> WritableObject<WORDS> {
    const fn new(first: usize) -> WritableObject<WORDS> {
        let mut words = [0; WORDS];
        words[0] = first;
        WritableObject(UnsafeCell::new(words))
    }
}

/// `MPI::ERRORS_THROW_EXCEPTIONS`. An error ends the job with its description: an exception would leave this library by its entry
/// points, which are not C++.
#[unsafe(no_mangle)]
pub static ompi_mpi_errors_throw_exceptions: WritableObject<128> =
    WritableObject::new(constants::MPI_ERRORS_ARE_FATAL as usize);

/// Number of internal error codes. The bindings convert such codes, which this library never returns.
#[unsafe(no_mangle)]
pub static ompi_errcode_intern_lastused: c_int = 0;

/// Array of internal error codes, which is empty.
#[unsafe(no_mangle)]
pub static ompi_errcodes_intern: WritableObject<32> = WritableObject::new(0);

/// List of data representations, which is empty.
#[unsafe(no_mangle)]
pub static ompi_registered_datareps: WritableObject<32> = WritableObject::new(0);

/// Defines functions of Open MPI's library that end the job.
macro_rules! callbacks {
    ($($name:ident $binding:literal)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> c_int {
            let sentence = "Weft has no callbacks of the C++ bindings, which MPI 3.0 removed. Use the function of C.";
            unsupported::abort(($binding, sentence))
        }
    )*};
}

callbacks! {
    ompi_attr_create_keyval "MPI::Create_keyval"
    ompi_errhandler_create "MPI::Create_errhandler"
    ompi_errhandler_invoke "an error handler of the C++ bindings"
    ompi_op_set_cxx_callback "MPI::Op::Init"
}
