//! Exchanges along the edges of a topology (MPI 5.0, section 8.6). All neighborhood collectives are the same exchange. The
//! collectives only differ in the memory of each block, which the layer above determines.

mod neighbor_direct;

pub use neighbor_direct::direct;
