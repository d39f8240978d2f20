//! Two older ABIs, MPICH's and Open MPI's, over the standard ABI.
//!
//! ```text
//!   program ── libmpi.so.12 or libmpi.so.40 (weft-abi-mpich, weft-abi-openmpi) ── libmpi_abi.so.1 (weft-abi)
//!              converts handles, constants, statuses, codes                       does the work
//! ```
//! [`generate`] writes the entry points from the standard's data and from `data/legacy.csv`; the build scripts of the two libraries
//! call it. [`runtime`] is what the entry points call. An entry point allocates nothing unless an array has more than
//! [`runtime::INLINE`] elements, and takes no lock.

pub mod generate;
pub mod runtime;

/// Defines a library of an older ABI: its entry points, which the build script has generated and which use the names that are
/// given, and the constructor that loads the standard's library before the program calls anything.
#[macro_export]
macro_rules! legacy_library {
    ($($own:item)*) => {
        /// The entry points of the ABI, generated.
        #[allow(non_snake_case, non_upper_case_globals, unused_unsafe, unused_mut)]
        #[allow(clashing_extern_declarations)]
        #[allow(clippy::missing_safety_doc, clippy::too_many_arguments, clippy::let_and_return)]
        #[allow(clippy::unnecessary_cast, clippy::redundant_closure)]
        mod entry_points {
            $($own)*
            use weft_legacy::runtime::arguments::*;
            use weft_legacy::runtime::standard::{constants, standard};
            use weft_legacy::runtime::tool_object::{ToolKind, ToolObject};
            use weft_legacy::runtime::*;

            mod generated {
                include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));
            }
            pub use generated::*;
        }

        // Tests of the library call nothing of the standard's library.
        #[cfg_attr(not(test), used)]
        #[cfg_attr(not(test), unsafe(link_section = ".init_array"))]
        static LOAD: extern "C" fn() = load;

        extern "C" fn load() {
            let overhead = entry_points::own::MPI_BSEND_OVERHEAD;
            // SAFETY: the loader calls this as a constructor of the library.
            unsafe { weft_legacy::runtime::standard::load((&raw const LOAD).cast(), overhead) }
        }
    };
}
