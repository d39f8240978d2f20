//! Tests of files that take too long for the usual tests.

pub(crate) mod inside;
mod machine;
mod nfs;
mod others;

use super::c_programs::{compile, folder};
use super::files::built;
use super::python::{self, Mpi4py};
use super::tally::Tally;
use crate::root;
use inside::DeviceTest;
use std::path::Path;

/// Parts of the soak test of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileParts {
    /// All parts.
    All,
    /// Files, when the power is cut.
    Cut,
    /// Files that exceed a quota.
    Quota,
    /// mpi4py's tests of files on ext4.
    Suite,
    /// Files that two hosts share through NFS.
    Nfs,
    /// HDF5, h5py and PnetCDF.
    Others,
}

type Part = fn(&Path, &mut Tally) -> Result<(), String>;

/// Runs the parts that take too long for the usual tests: power cuts, quotas, other file systems, NFS between two hosts, and
/// programs of other projects. If a part cannot run, the soak test fails, because a machine for this test should be able to run all
/// parts.
pub(super) fn soak(prefix: &Path, which: FileParts) -> Result<(), String> {
    let mut tally = Tally::default();
    let parts: [(FileParts, Part); 5] = [
        (FileParts::Cut, cut),
        (FileParts::Quota, quota),
        (FileParts::Suite, suite),
        (FileParts::Nfs, by_nfs),
        (FileParts::Others, others_all),
    ];
    let wanted = parts.into_iter().filter(|(part, _)| which == FileParts::All || which == *part);
    let failed: Vec<String> = wanted.filter_map(|(_, run)| run(prefix, &mut tally).err()).collect();
    println!("\n{} passed", tally.passed);
    for reason in &tally.not_run {
        println!("NOT RUN: {reason}");
    }
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    if tally.not_run.is_empty() { Ok(()) } else { Err("some of it was NOT RUN".to_owned()) }
}

/// Runs the programs of other projects that are short enough for the usual tests.
pub(super) fn run(tally: &mut Tally) -> Result<(), String> {
    others::run(&crate::demo::install()?, others::SuiteLength::Short, tally)
}

fn cut(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    machine::run(DeviceTest::Cut, &[prefix, &built(prefix, "synced")?], tally)
}

fn quota(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    machine::run(DeviceTest::Quota, &[prefix, &built(prefix, "full")?], tally)
}

fn suite(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let Mpi4py { python, sdist } = python::mpi4py(prefix)?;
    machine::run(DeviceTest::Suite, &[prefix, &python, &sdist.join("test")], tally)
}

fn others_all(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    others::run(prefix, others::SuiteLength::Full, tally)
}

fn by_nfs(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let programs = folder()?;
    for (source, name) in nfs::PROGRAMS {
        compile(prefix, &root().join("tests/c").join(source), &programs.join(name))?;
    }
    nfs::run(prefix, &programs, tally)
}
