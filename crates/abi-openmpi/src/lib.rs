//! `libmpi.so.40`: the ABI of Open MPI.
//!
//! Handles are addresses. A predefined handle is the address of an object that the library exports, and whose first word is the
//! standard's handle. A program that is not position-independent has a copy of the object, with the same first word. Any other
//! handle is the standard's handle itself ([`objects`]).

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
    use crate::objects::{
        self, PredefinedObject, address, bound, duplicate, performance_variable, weights,
    };
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
