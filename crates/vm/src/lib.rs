//! `cargo xtask vm -- COMMAND`: runs a command in a small virtual machine whose kernel has soft-RoCE, so that code on verbs
//! is tested against the RDMA stack of a real kernel on any machine. CONTRIBUTING.md describes the environment of COMMAND.

#![warn(missing_docs)]

pub mod agent;
pub mod client;
pub mod commands;
mod frame;
mod host;
mod image;
mod log;
mod options;
mod qemu;
pub mod rails;
mod run;

use host::VmUnavailable;
use log::Log;
pub use options::VmArgs;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code if this machine cannot run the virtual machine; the same code as in automake's tests.
pub const NOT_RUN: u8 = 77;
/// Exit code if COMMAND took too long; the same code as of timeout(1).
pub const TIMED_OUT: u8 = 124;
/// Exit code if the virtual machine failed, not COMMAND.
pub const FAILED: u8 = 125;

/// Runs COMMAND. Returns its exit code, or a code above with a line that gives the reason.
pub fn main(args: &VmArgs) -> ExitCode {
    let folder = root().join("target/vm");
    match in_folder(args, &folder) {
        Ok(code) => ExitCode::from(code),
        Err(VmUnavailable::NotRun(reason)) => {
            eprintln!("NOT RUN: {reason}");
            ExitCode::from(NOT_RUN)
        }
        Err(VmUnavailable::Failed(error)) => {
            eprintln!("vm: {error}");
            ExitCode::from(FAILED)
        }
    }
}

fn in_folder(args: &VmArgs, folder: &Path) -> Result<u8, VmUnavailable> {
    fs::create_dir_all(folder).map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    // The lock is held until the end: two runs would share the output folder, the log and the processors.
    let lock = folder.join("lock");
    let lock = File::create(&lock).map_err(|e| {
        let name = lock.display();
        format!("cannot write {name}: {e} (if another user made the folder: remove it)")
    })?;
    if lock.try_lock().is_err() {
        eprintln!("vm: waiting for another run in {}", folder.display());
        lock.lock().map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let log = Log::begin(&folder.join("last.log"))?;
    let result = host::prepare(&log)
        .and_then(|()| image::get(folder, args.rebuild, &log))
        .and_then(|image| run::run(args, &image, folder, &log));
    log.note(&format!("end: {result:?}"));
    result
}

/// Returns the root of the workspace.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).expect("this crate lies in crates/").to_owned()
}
