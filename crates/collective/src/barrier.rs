//! Barriers: nobody leaves before everybody has come (MPI 5.0, section 6.3).

mod dissemination;
mod pairwise_exchange;

pub use dissemination::dissemination;
pub use pairwise_exchange::pairwise_exchange;
