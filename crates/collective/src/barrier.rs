//! Barriers: no rank leaves before all ranks have arrived (MPI 5.0, section 6.3).

pub(crate) mod barrier_central;
pub(crate) mod barrier_pairwise_exchange;
pub(crate) mod barrier_rds;
pub(crate) mod barrier_rgm;
pub(crate) mod barrier_rpe;
pub(crate) mod dissemination;
pub(crate) mod fetch_add;
pub(crate) mod n_way;

pub use barrier_central::central;
pub use barrier_pairwise_exchange::pairwise_exchange;
pub use barrier_rds::rds;
pub use barrier_rgm::rgm;
pub use barrier_rpe::rpe;
pub use dissemination::dissemination;
pub use fetch_add::fetch_add;
pub use n_way::n_way_dissemination;
