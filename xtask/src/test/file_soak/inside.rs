//! Inside the virtual machine: files on devices of its own.

mod cut;
mod device;
mod replay;

use std::path::PathBuf;

pub use cut::CHECKS as CUTS;

/// What is done to them.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum What {
    /// The power is cut.
    Cut,
}

/// What `vm-files` needs to know.
#[derive(clap::Args)]
pub struct Inside {
    what: What,
    /// An installation of Weft.
    prefix: PathBuf,
    /// The program of tests/c/files that does it.
    program: PathBuf,
}

/// Does it.
pub fn run(inside: &Inside) -> Result<(), String> {
    match inside.what {
        What::Cut => cut::run(&inside.prefix, &inside.program),
    }
}
