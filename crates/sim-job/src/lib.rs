//! Runs any MPI program in virtual time. Each rank is a process of its own with the usual library, started by `mpiexec`. This
//! crate is the simulation process: it has the machine, the clocks and all events, and gives the ranks their turns.
//!
//! ```text
//!   SimJob::run     loop: due rank ──▶ turn: requests until the rank rests        job
//!                         no rank due ──▶ next event; none left ──▶ deadlock
//!   RankServer      carries out the requests of a rank on its `Sim`               server, posts, payloads, regions, reply
//!   QuietWait       turns in which only time passes, without the rank             quiet_turn
//!   FileTimes       time of accesses to files                                     files
//!   ProcessAccess   copies between the ranks' memories                            processes
//!   JobAccount      time of each rank by call, waits by pair, bytes of each pair  account
//!   JobRecord       what each rank did when, and the arrival that ended a wait    record
//!   JobHome         the processor on which simulation and ranks take turns        home
//!   calls           names of functions and numbers of calls, from files            calls
//!   critical_path   the chain of work and transfers that took the longest         critical_path
//! ```

#![warn(missing_docs)]

mod account;
mod calls;
mod compute;
mod critical_path;
mod files;
mod home;
mod job;
mod look_row;
mod payloads;
mod posts;
mod processes;
mod questions;
mod quiet_turn;
mod record;
mod regions;
mod reply;
mod server;

pub use account::{
    CallTime, JobAccount, PairTraffic, RankAccount, TrafficKind, WaitPair, WaitTime,
};
pub use compute::ComputeTime;
pub use critical_path::{CriticalPath, PathPart, PathStep, critical_path};
pub use job::{SimJob, SimJobFailure, SimJobOutcome};
pub use processes::CopiedBytes;
pub use record::{JobRecord, RankRecord, RankSegment, SegmentKind, WaitCause};
