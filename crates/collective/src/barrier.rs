//! Barriers: no rank leaves before all ranks have come (MPI 5.0, section 6.3).

pub(crate) mod central;
pub(crate) mod dissemination;
mod fetch_add;
mod n_way;
mod pairwise_exchange;
mod rds;
mod rgm;
mod rpe;

pub use central::central;
pub use dissemination::dissemination;
pub use fetch_add::fetch_add;
pub use n_way::n_way_dissemination;
pub use pairwise_exchange::pairwise_exchange;
pub use rds::rds;
pub use rgm::rgm;
pub use rpe::rpe;
