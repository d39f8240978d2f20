//! `libmpi_mpifh.so.40`: Fortran programs of Open MPI's ABI. `libmpi_usempif08.so.40` and `libmpi_usempi_ignore_tkr.so.40` are other
//! names of this library, and so are Debian's `libmpi_mpifh-gfortran.so.40` and the like: a loader takes files that are the same for
//! the same library.

mod special;

/// The entry points of the ABI, generated.
#[allow(
    non_snake_case,
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    clippy::unnecessary_cast
)]
#[allow(unused_unsafe, unused_mut, clashing_extern_declarations)]
mod entry_points {
    use crate::special::{self, STATUS_NUMBERS};
    use std::ffi::{c_char, c_int, c_void};
    use std::ptr::null_mut;
    use weft_legacy_fortran::runtime::arrays::NumberedHandles;
    use weft_legacy_fortran::runtime::attributes::{self, IntegerWidth, PredefinedKeys};
    use weft_legacy_fortran::runtime::callbacks::{self, FunctionState};
    use weft_legacy_fortran::runtime::peers::{CommQueries, PeerGroup};
    use weft_legacy_fortran::runtime::texts::{
        ArgumentLists, LeadingBlanks, PaddedText, TextArray, TextColumn,
    };
    use weft_legacy_fortran::runtime::{
        HandleCache, NumberedHandle, count_from_one, duplicates, length, slots, store_code,
    };

    include!(concat!(env!("OUT_DIR"), "/entry_points.rs"));
}
