//! Start of a job, before there is a fabric: rank, size, and a key-value space by which processes find each other. Values become
//! readable to all processes at a fence.

#![warn(missing_docs)]

pub mod calls;
mod channel;
mod client;
mod environment;
pub mod failure_report;
mod fingerprint;
mod foreign;
pub mod host_names;
mod keyed_hash;
mod launched_by_rank;
pub mod limits;
mod member;
pub mod memory;
pub mod nodes;
mod on_node;
mod pmi1;
mod pmi2;
mod pmix;
pub mod ports;
pub mod privileged;
pub mod report;
mod single;
pub mod slot_table;
mod text;
mod threads;
mod ticket;
pub mod wire;

pub use environment::{announced_size, from_environment};
pub use fingerprint::{Difference, Fingerprint};
pub use foreign::variables as foreign_variables;
pub use keyed_hash::{is_same_secret, keyed_hash, keyed_hash_128};
pub use launched_by_rank::process_status;
pub use member::hash;
pub use on_node::OnNode;
pub use pmix::SETTING as PMIX_SETTING;
pub use report::{Pending, Phase, Report, clock_millis, thread_nanos};
pub use single::SingleProcess;
pub use threads::{ThreadBootstrap, threads};
pub use ticket::{Ticket, VARIABLE};

use std::fmt;

/// Reason why the job could not be joined, in words for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootstrapError(pub String);

impl fmt::Display for BootstrapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BootstrapError {}

/// The launcher's services to one process. Implementations: Weft's `mpiexec`; launchers that speak
/// PMI-1, PMI-2 or PMIx; a world of one; threads of one process (for tests).
pub trait Bootstrap: Send {
    /// Returns the rank in the job, in `0..size`.
    fn rank(&self) -> usize;

    /// Returns the number of processes of the job.
    fn size(&self) -> usize;

    /// Returns the name of the job. No other job on this machine has the same name at this time.
    fn job(&self) -> &str;

    /// Returns the node of each process, by rank. Processes with equal numbers share memory.
    fn nodes(&self) -> Vec<usize> {
        vec![0; self.size()]
    }

    /// Returns the index of the program on the launcher's command line, where `:` separates programs, if the launcher reports it.
    fn app_number(&self) -> Option<usize> {
        None
    }

    /// Returns the slot in which this process reports its waits to the launcher. `None` if the launcher reads no reports.
    fn report(&self) -> Option<Report> {
        None
    }

    /// Publishes a value under `key` of this process. Other processes can read it after the next fence. A key may be put only
    /// once, and consists of 1 to 40 letters, digits and characters of `-_.:/`. A value has at most 1 MiB, which every launcher
    /// accepts.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), BootstrapError>;

    /// Returns the value that `rank` published under `key` before the last fence.
    fn get(&mut self, rank: usize, key: &str) -> Result<Vec<u8>, BootstrapError>;

    /// Waits for all processes of the job.
    fn fence(&mut self) -> Result<(), BootstrapError>;

    /// Reports that this process is about to leave MPI normally (MPI_Finalize).
    fn finalized(&mut self) -> Result<(), BootstrapError>;

    /// Ends the complete job. `message` is printed once. Does not return if the launcher ends this process.
    fn abort(&mut self, code: i32, message: &str);
}
