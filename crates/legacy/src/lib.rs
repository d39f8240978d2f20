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
