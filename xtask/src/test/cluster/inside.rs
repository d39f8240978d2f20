//! What the tests inside the virtual machine are told.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which machines the tests run in.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Machines {
    One,
    Two,
    /// One, for as long as it takes.
    Long,
}

/// What `vm-cluster` needs to know.
#[derive(Args)]
pub struct Inside {
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
    /// Only the parts with this text in their names; to look into one of them.
    #[arg(long, default_value = "")]
    pub only: String,
}
