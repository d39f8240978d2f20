//! Runs any MPI program in virtual time. Each rank is a process of its own with the usual library, started by `mpiexec`. This
//! crate is the simulation process: it has the machine, the clocks and all events, and gives the ranks their turns.
//!
//! ```text
//!   SimJob::run     loop: due rank ──▶ turn: requests until the rank rests        job
//!                         no rank due ──▶ next event; none left ──▶ deadlock
//!   RankServer      carries out the requests of a rank on its `Sim`               server, posts, payloads, regions, reply
//!   ProcessAccess   copies between the ranks' memories                            processes
//!   JobAccount      time of each rank by call and kind, bytes of each pair        account
//! ```

#![warn(missing_docs)]

mod account;
mod compute;
mod job;
mod payloads;
mod posts;
mod processes;
mod regions;
mod reply;
mod server;

pub use account::{CallTime, JobAccount, PairTraffic, RankAccount};
pub use compute::ComputeTime;
pub use job::{SimJob, SimJobFailure, SimJobOutcome};
