//! `libmpi.so.12`: the ABI of MPICH, which Intel MPI, MVAPICH and Cray MPI have, too.
//!
//! Handles are `int`. A predefined handle is a constant; any other handle has bit 31, the lane of a request, and the index of the
//! object (`dynamics.rs`). `MPI_File` is a pointer, which holds the standard's handle.

mod dynamics;
mod objects;
mod status;

weft_legacy::legacy_library! {
    use crate::dynamics;
    use weft_legacy::runtime::callbacks::create_op;
    use crate::objects::{DUPLICATES, bound, duplicate, performance_variable, weights};
    use crate::status::{MpichStatus as Status, STATUS_NUMBERS};
}
