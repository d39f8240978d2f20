//! Inside the virtual machine: files on devices of its own.

mod cut;
mod device;
mod quota;
mod replay;
mod suite;

use std::path::PathBuf;
pub use suite::FILES;

/// What is done to them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum What {
    /// The power is cut.
    Cut,
    /// A user's quota is used up.
    Quota,
    /// mpi4py's tests.
    Suite,
}

impl What {
    /// How often it says `ok`.
    pub fn checks(self) -> usize {
        match self {
            What::Cut => cut::CHECKS,
            What::Quota => quota::CHECKS,
            What::Suite => suite::CHECKS,
        }
    }
}

/// What `vm-files` needs to know.
#[derive(clap::Args)]
pub struct Inside {
    what: What,
    /// An installation of Weft.
    prefix: PathBuf,
    /// The program that does it: of tests/c/files, or a Python with mpi4py.
    program: PathBuf,
    /// The folder of mpi4py's tests.
    tests: Option<PathBuf>,
}

/// Does it.
pub fn run(inside: &Inside) -> Result<(), String> {
    let Inside { what, prefix, program, tests } = inside;
    match what {
        What::Cut => cut::run(prefix, program),
        What::Quota => quota::run(prefix, program),
        What::Suite => suite::run(prefix, program, tests.as_deref()),
    }
}
