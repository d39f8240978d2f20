//! `libmpi.so.40`: the ABI of Open MPI.
//!
//! Handles are addresses. A predefined handle is the address of an object that the library exports, and whose first word is the
//! standard's handle. A program that is not position-independent has a copy of the object, with the same first word. Any other
//! handle is the standard's handle itself (`objects.rs`).

mod cplusplus;
mod objects;
mod status;

weft_legacy::legacy_library! {
    use crate::objects::{
        self, PredefinedObject, address, bound, duplicate, performance_variable, weights,
    };
    use crate::status::{OpenMpiStatus as Status, STATUS_NUMBERS};
}
