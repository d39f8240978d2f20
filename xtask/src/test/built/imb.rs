//! Intel's MPI benchmarks, which were built with Intel MPI and have MPICH's ABI: each benchmark runs to its end.

use super::places::BuiltFor;
use super::program::{PackagedProgram, PackagedRun, ProgramResult};
use std::collections::BTreeSet;

/// Makes the entry of a program of benchmarks, with its further arguments.
macro_rules! benchmarks {
    ($program:literal $(, $argument:literal)*) => {
        PackagedProgram {
            name: $program,
            mpi: BuiltFor::Intel,
            command: &[concat!("{intel}/bin/", $program), "-iter", "2", "-msglog", "3:10" $(, $argument)*],
            outcome: finished,
            ..PackagedProgram::USUAL
        }
    };
}

pub(super) const PROGRAMS: &[PackagedProgram] =
    &[benchmarks!("IMB-MPI1"), benchmarks!("IMB-NBC"), benchmarks!("IMB-RMA")];

/// Returns the names of the benchmarks that ran, with the number of lines of each that has times.
fn finished(run: &PackagedRun) -> Result<ProgramResult, String> {
    let end = "# All processes entering MPI_Finalize";
    let names = run.output.lines().filter_map(|line| line.strip_prefix("# Benchmarking "));
    // A benchmark runs on several numbers of ranks.
    let names: BTreeSet<_> = names.map(str::trim).collect();
    if !run.output.contains(end) || names.is_empty() {
        return Err(format!("the benchmarks do not end:\n{}", run.output));
    }
    let names: Vec<_> = names.into_iter().collect();
    Ok(ProgramResult { text: names.join("\n"), ..ProgramResult::default() })
}
