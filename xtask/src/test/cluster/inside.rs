//! Arguments of the tests inside the virtual machine.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Machines in which the tests run.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Machines {
    One,
    Two,
    /// One machine, for tests that take too long for CI.
    Long,
}

/// Arguments of `vm-cluster`.
#[derive(Args)]
pub struct VmClusterArgs {
    #[arg(value_enum)]
    pub machines: Machines,
    /// An installation of Weft.
    #[arg(long)]
    pub prefix: PathBuf,
    /// The folder of the compiled programs.
    #[arg(long)]
    pub programs: PathBuf,
    /// A Python with an mpi4py that our mpicc built.
    #[arg(long)]
    pub python: PathBuf,
    /// mpi4py's source, with its tests.
    #[arg(long)]
    pub sdist: PathBuf,
    /// The conformance test of verbs.
    #[arg(long)]
    pub conformance: PathBuf,
    /// Run only the parts whose names contain this text, for example to examine one part.
    #[arg(long, default_value = "")]
    pub only: String,
}
