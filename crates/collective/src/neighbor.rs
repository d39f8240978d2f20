//! Exchanges along the edges of a topology (MPI 5.0, section 8.6). All neighborhood collectives are
//! one exchange: they differ in which memory a block is, and that is settled above.

mod direct;

pub use direct::direct;
