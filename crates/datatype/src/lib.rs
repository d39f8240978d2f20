//! MPI datatypes and reduction operators.
//!
//! A [`Datatype`] is an immutable type map. At commit, a type is compiled to a short program of contiguous runs and strided loops
//! (`layout.rs`). The program packs, unpacks and lists memory, completely or from any byte of the packed stream on. A
//! [`PredefinedOp`] is a predefined reduction operator, computed on predefined types.
//!
//! Packed data are the data bytes in type map order, without gaps, in the machine's own representation. Sizes and
//! displacements are 64-bit numbers of bytes; an overflow is an error.

#![warn(missing_docs)]

mod arrays;
mod atomic;
mod basic;
mod combine;
mod construct;
mod copies;
mod datatype;
mod defined;
mod error;
mod external;
mod layout;
mod level;
mod moves;
mod number;
mod op;
mod pack;
mod parametrized;
mod predefined;
mod reduce;
mod soft;
mod walk;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x87;

pub use arrays::{
    DISTRIBUTE_BLOCK, DISTRIBUTE_CYCLIC, DISTRIBUTE_DEFAULT, DISTRIBUTE_NONE, Distributed, ORDER_C,
    ORDER_FORTRAN,
};
pub use atomic::compare_and_swap;
pub use basic::{Basic, OperandClass, Repr};
pub use combine::ReductionArrays;
pub use datatype::contents::{Combiner, Contents, Width};
pub use datatype::{DEPTH_MAX, Datatype, Type};
pub use error::DatatypeError;
pub use op::PredefinedOp;
pub use predefined::Predefined;
pub use reduce::ElementSpacing;
