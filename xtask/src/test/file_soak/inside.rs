//! Tests of files inside the virtual machine. Each test has its own device.

mod cut;
mod device;
mod quota;
mod replay;
mod suite;

use std::path::PathBuf;
pub use suite::FILES;

/// Tests of files on a device of the virtual machine.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum DeviceTest {
    /// The power is cut.
    Cut,
    /// A user's quota is used up.
    Quota,
    /// mpi4py's tests.
    Suite,
}

impl DeviceTest {
    /// Returns the number of times that the test prints `ok`.
    pub fn checks(self) -> usize {
        match self {
            DeviceTest::Cut => cut::CHECKS,
            DeviceTest::Quota => quota::CHECKS,
            DeviceTest::Suite => suite::CHECKS,
        }
    }
}

/// Arguments of `vm-files`.
#[derive(clap::Args)]
pub struct VmFilesArgs {
    what: DeviceTest,
    /// An installation of Weft.
    prefix: PathBuf,
    /// The program of the test: of tests/c/files, or a Python with mpi4py.
    program: PathBuf,
    /// The folder of mpi4py's tests.
    tests: Option<PathBuf>,
}

/// Runs the test.
pub fn run(inside: &VmFilesArgs) -> Result<(), String> {
    let VmFilesArgs { what, prefix, program, tests } = inside;
    match what {
        DeviceTest::Cut => cut::run(prefix, program),
        DeviceTest::Quota => quota::run(prefix, program),
        DeviceTest::Suite => suite::run(prefix, program, tests.as_deref()),
    }
}
