//! Fortran programs that were built for two older ABIs.
//!
//! ```text
//!   program ── libmpi_mpifh.so.40 or libmpifort.so.12 ── libmpi.so.40 or libmpi.so.12 ── libmpi_abi.so.1
//!              converts integers, texts, indices          converts handles, codes        does the work
//! ```
//! [`generate`] writes the entry points from the standard's data; the build scripts of the two libraries call it. [`runtime`] is what
//! the entry points call. No Fortran compiler takes part: the libraries know the conventions that compilers share. A logical is 0
//! for false. The lengths of texts follow all arguments.

pub mod generate;
pub mod runtime;

/// Defines a Fortran library of an older ABI: its entry points, which the build script has generated and which use the items that are
/// given.
#[macro_export]
macro_rules! legacy_fortran_library {
    ($($own:item)*) => {
        /// The entry points of the ABI, generated.
        #[allow(non_snake_case, unused_unsafe, unused_mut, clashing_extern_declarations)]
        #[allow(clippy::missing_safety_doc, clippy::too_many_arguments, clippy::unnecessary_cast)]
        mod entry_points {
            $($own)*
            use std::ffi::{c_char, c_int, c_void};
            use std::ptr::null_mut;
            use weft_legacy_fortran::runtime::arrays::NumberedHandles;
            use weft_legacy_fortran::runtime::attributes::{self, IntegerWidth, PredefinedKeys};
            use weft_legacy_fortran::runtime::callbacks;
            use weft_legacy_fortran::runtime::texts::{
                ArgumentLists, LeadingBlanks, PaddedText, TextArray, TextColumn,
            };
            use weft_legacy_fortran::runtime::{
                HandleCache, NumberedHandle, count_from_one, length, store_code,
            };

            include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));
        }
    };
}
