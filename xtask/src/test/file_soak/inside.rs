//! Tests of files on devices of their own, inside the virtual machine.

mod cut;
mod device;
mod quota;
mod replay;
mod suite;

use std::path::PathBuf;
pub use suite::FILES;

/// Tests of files on such a device.
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
    /// Returns the number of times that the test prints `ok`.
    pub fn checks(self) -> usize {
        match self {
            What::Cut => cut::CHECKS,
            What::Quota => quota::CHECKS,
            What::Suite => suite::CHECKS,
        }
    }
}

/// Arguments of `vm-files`.
#[derive(clap::Args)]
pub struct Inside {
    what: What,
    /// An installation of Weft.
    prefix: PathBuf,
    /// The program of the test: of tests/c/files, or a Python with mpi4py.
    program: PathBuf,
    /// The folder of mpi4py's tests.
    tests: Option<PathBuf>,
}

/// Runs the test.
pub fn run(inside: &Inside) -> Result<(), String> {
    let Inside { what, prefix, program, tests } = inside;
    match what {
        What::Cut => cut::run(prefix, program),
        What::Quota => quota::run(prefix, program),
        What::Suite => suite::run(prefix, program, tests.as_deref()),
    }
}
