//! Arguments of the tests between hosts, and the programs that they run.

use clap::Args;
use std::path::PathBuf;

/// Programs of tests/c that run between hosts, each with its arguments.
pub const PROGRAMS: &[(&str, &[&str])] = &[
    ("hello", &[]),
    ("ring", &[]),
    ("halo", &["300"]),
    ("collectives", &["1"]),
    ("neighbors", &[]),
    ("semantics", &[]),
    ("out_of_order", &["1000"]),
    ("flood", &["4000", "warm"]),
    ("partitioned", &[]),
    ("windows", &[]),
    ("windows_asleep", &[]),
    ("counters", &["10"]),
    ("overlap_stress", &["20"]),
    ("interrupted", &[]),
    ("threads", &[]),
    ("tools_fabric", &[]),
    ("kini", &[]),
    ("striped", &["4"]),
    ("moves", &["send", "65536", "10"]),
    ("files", &[]),
    ("files_access", &[]),
    ("files_representations", &[]),
    // One process for each slot of the two hosts.
    ("spawn", &["4"]),
    ("connect", &["apart"]),
    ("spawn_outlives", &[]),
    ("connect_threads", &[]),
    ("connected_graphs", &["apart", "4"]),
];

/// The program of tests/c that ends because a process is killed.
pub const KILLED: &str = "spawn_killed";

/// Arguments of `net-tests`.
#[derive(Args)]
pub struct NetTestsArgs {
    /// An installation of Weft.
    #[arg(long)]
    pub prefix: PathBuf,
    /// The folder of the compiled programs.
    #[arg(long)]
    pub programs: PathBuf,
    /// The program that runs random programs.
    #[arg(long)]
    pub random: PathBuf,
    /// A Python with an mpi4py that our mpicc built.
    #[arg(long)]
    pub python: PathBuf,
    /// mpi4py's source, with its tests.
    #[arg(long)]
    pub sdist: PathBuf,
    /// True if the cables have only IPv6 addresses.
    #[arg(long)]
    pub ipv6: bool,
    /// Run only the tests that take too long for the usual tests.
    #[arg(long)]
    pub long: bool,
    /// Run only the parts whose names contain this text, for example to examine one part.
    #[arg(long, default_value = "")]
    pub only: String,
}
