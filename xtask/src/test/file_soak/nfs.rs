//! Files on NFS that two hosts have mounted: two virtual machines, of which the first is the server. As on any cluster, each host
//! may have cached pages that the other host does not know of.

use super::inside::FILES;
use super::others::tail;
use crate::root;
use crate::test::python::{self, Mpi4py};
use crate::test::tally::Tally;
use crate::test::tools::{captured_code, quiet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's server and its libraries. They are unpacked, not installed, so that no service starts on this machine.
const SERVER: [&str; 6] = [
    "nfs-kernel-server",
    "libtirpc3",
    "libevent-core-2.1-7",
    "libwrap0",
    "libnl-3-200",
    "libnl-genl-3-200",
];

/// Mount point on both machines.
const PLACE: &str = "/tmp/nfs";

/// Runs, each with its name, its mount options and its number of jobs. Programs that call MPI_File_sync use mounts with the default
/// options. Programs whose ranks only wait for each other need mounts without a cache.
const RUNS: [(&str, &str, usize); 2] = [("files", "", 5), ("strict", ",noac", 2)];

/// Programs of tests/c that run on NFS, and their names in the folder of built programs.
pub const PROGRAMS: [(&str, &str); 4] = [
    ("files/between.c", "files-between"),
    ("files/full_later.c", "files-full-later"),
    ("files.c", "files"),
    ("files_access.c", "files_access"),
];

/// Runs the programs that were built in `programs`. If the virtual machines cannot run, records this in the tally.
pub fn run(prefix: &Path, programs: &Path, tally: &mut Tally) -> Result<(), String> {
    let server = match server() {
        Ok(server) => server,
        Err(why) => {
            tally.not_run.push(format!("NFS: no server: {}", tail(&why)));
            return Ok(());
        }
    };
    let Mpi4py { python, sdist } = python::mpi4py(prefix)?;
    for (what, options, jobs) in RUNS {
        let own = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
        let scripts = root().join("xtask/src/test/file_soak/nfs");
        let mut command = Command::new(own);
        command.args(["vm", "--two", "--only", "0", "--timeout", "2400", "--", "sh"]);
        command.arg(scripts.join("mounts.sh")).arg(&server).args([PLACE, options, "sh"]);
        command.arg(scripts.join("jobs.sh")).arg(PLACE).args([prefix, programs, &python]);
        command.arg(sdist.join("test")).arg(what).args(FILES);
        match captured_code(&mut command)? {
            (0, said) => match said.lines().filter(|line| line.contains("ok   NFS")).count() {
                passed if passed == jobs => tally.passed += passed,
                passed => return Err(format!("NFS, {what}: {passed} of {jobs} jobs said ok")),
            },
            (code, _) if code == i32::from(weft_vm::NOT_RUN) => {
                tally.not_run.push(
                    "NFS: no virtual machine here; the line NOT RUN above says why".to_owned(),
                );
                return Ok(());
            }
            (code, _) => {
                return Err(format!("NFS, {what}: code {code} (above, and target/vm/last.log)"));
            }
        }
    }
    Ok(())
}

/// Returns the folder of the unpacked server.
fn server() -> Result<PathBuf, String> {
    let folder = root().join("target/soak-files/nfs");
    if folder.join("usr/sbin/rpc.nfsd").exists() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut apt = Command::new("apt-get");
    apt.args(["-qq", "-o", "APT::Sandbox::User=root", "download"]).args(SERVER);
    quiet(apt.current_dir(&folder))?;
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "deb"));
    for file in files {
        quiet(Command::new("dpkg").arg("-x").arg(file).arg(&folder))?;
    }
    Ok(folder)
}
