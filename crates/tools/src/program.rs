//! `weft info --program`: says which ABI of MPI a program wants, which libraries it gets under `mpiexec`, and what is missing.
//!
//! ```text
//!   NAME ── executable.rs ── the file that runs (a script leads to its interpreter)
//!        ── elf_file.rs ──── libraries, RPATH, RUNPATH, symbols of MPI
//!        ── library_search.rs, loaded.rs ── all files that the dynamic loader would load
//!        ── mpi_abi.rs, report.rs ── the text
//! ```

mod elf_file;
mod executable;
mod library_search;
mod loaded;
mod mpi_abi;
mod report;
#[cfg(test)]
mod tests;

use crate::tree::Tree;
use executable::Executable;
use library_search::LibrarySearch;
use loaded::LoadedProgram;
pub use report::ProgramReport;

/// Reports on the program with this name or path.
pub fn info(name: &str) -> Result<ProgramReport, String> {
    let search = LibrarySearch::under_mpiexec(&Tree::of_this_program()?);
    let path = std::env::var("PATH").unwrap_or_else(|_| "/bin:/usr/bin".to_owned());
    report(name, &path, &search)
}

fn report(name: &str, path: &str, search: &LibrarySearch) -> Result<ProgramReport, String> {
    let executable = Executable::find(name, path)?;
    let loaded = LoadedProgram::load(&executable.path, search)?;
    Ok(report::write(&executable, &loaded, search))
}
