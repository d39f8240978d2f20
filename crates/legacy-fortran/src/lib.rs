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
