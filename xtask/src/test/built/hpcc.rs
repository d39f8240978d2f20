//! HPC Challenge, as Debian built it for Open MPI: all of its parts check their results, and the summary has the same entries.

use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// A small problem, on a grid of all ranks.
const INPUT: &str = "HPLinpack benchmark input file
Innovative Computing Laboratory, University of Tennessee
HPL.out      output file name (if any)
8            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
48           Ns
1            # of NBs
16           NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
{rows}       Ps
{columns}    Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### This line is ignored (it serves as a separator). #####
0            Number of additional problem sizes for PTRANS
1200         values of N
0            number of additional blocking sizes for PTRANS
40           values of NB
";

pub(super) const PROGRAMS: &[PackagedProgram] = &[PackagedProgram {
    name: "hpcc",
    command: &["{debian}/usr/bin/hpcc"],
    files: &[("hpccinf.txt", INPUT)],
    outcome: summary,
    ..PackagedProgram::USUAL
}];

/// Entries of the summary that count mistakes.
const MISTAKES: [&str; 4] = [
    "MPIRandomAccess_Errors",
    "MPIRandomAccess_LCG_Errors",
    "MPIRandomAccess_ErrorsFraction",
    "PTRANS_residual",
];

/// Lines of the transposed matrix and of HPL.
const REPORTS: [&str; 2] = [
    "    5 tests completed and passed residual checks.",
    "              1 tests completed and passed residual checks,",
];

/// Maximum mistake of the Fourier transform of a few thousand numbers.
const FFT_MISTAKE: f64 = 1e-14;

/// Checks the report. Returns the names of the summary's entries.
fn summary(run: &PackagedRun) -> Result<ProgramResult, String> {
    let report = run.file("hpccoutf.txt")?;
    let report = String::from_utf8_lossy(&report);
    let entries: Vec<(&str, &str)> = report
        .lines()
        .skip_while(|line| !line.starts_with("Begin of Summary"))
        .filter_map(|line| line.split_once('='))
        .collect();
    let value = |name: &str| entries.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    let number = |name: &str| value(name).and_then(|value| value.parse::<f64>().ok());
    let clean = MISTAKES.iter().all(|name| number(name) == Some(0.0));
    let exact = number("MPIFFT_maxErr").is_some_and(|mistake| mistake < FFT_MISTAKE);
    let passed = REPORTS.iter().all(|text| report.contains(text));
    let complete = number("CommWorldProcs") == Some(run.ranks as f64);
    let wrong = report.contains("FAILED") || value("Success") != Some("1");
    if wrong || !clean || !exact || !complete || !passed {
        return Err(format!("hpcc has wrong results: {}/hpccoutf.txt", run.folder.display()));
    }
    let names: Vec<_> = entries.iter().map(|(key, _)| *key).collect();
    Ok(ProgramResult { text: names.join("\n"), ..ProgramResult::default() })
}
