//! `libmpi.so.12`: the ABI of MPICH, which Intel MPI, MVAPICH and Cray MPI have, too.
//!
//! Handles are `int`. A predefined handle is a constant; any other handle has bit 31, the lane of a request, and the index of the
//! object ([`dynamics`]). `MPI_File` is a pointer, which holds the standard's handle.

mod duplicates;
mod dynamics;
mod objects;
mod status;

/// The entry points of the ABI, generated.
#[allow(
    non_snake_case,
    non_upper_case_globals,
    clippy::missing_safety_doc,
    clippy::too_many_arguments
)]
#[allow(
    unused_unsafe,
    unused_mut,
    clippy::let_and_return,
    clippy::unnecessary_cast,
    clashing_extern_declarations
)]
mod entry_points {
    use crate::duplicates::{self, duplicate};
    use crate::dynamics;
    use crate::objects::{bound, performance_variable, weights};
    use crate::status::{STATUS_NUMBERS, Status};
    use weft_legacy::runtime::arguments::*;
    use weft_legacy::runtime::standard::{constants, standard};
    use weft_legacy::runtime::tool_object::{ToolKind, ToolObject};
    use weft_legacy::runtime::*;

    mod generated {
        include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));
    }
    pub use generated::*;
}

/// Loads the standard's library before the program calls anything.
#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

extern "C" fn load() {
    // SAFETY: the loader calls this as a constructor of the library.
    unsafe {
        weft_legacy::runtime::standard::load(
            (&raw const LOAD).cast(),
            entry_points::own::MPI_BSEND_OVERHEAD,
        )
    }
}
