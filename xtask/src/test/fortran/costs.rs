//! Costs of calls from Fortran in addition to the costs of the C functions: the instructions of each Fortran entry itself, counted
//! by callgrind (tests/fortran/costs.f90).

use super::{SAID, Tools};
use crate::root;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::fs;
use std::process::{Command, Stdio};

/// Entries, each with its number of calls on both ranks together, and its maximum number of instructions for a call. At three
/// instructions per cycle, such a call takes less than 10 ns.
const BOUNDS: [(&str, u64, u64); 4] = [
    ("mpi_send_f08ts_", 2000, 52),
    ("mpi_recv_f08ts_", 2000, 62),
    ("mpi_send_", 1000, 45),
    ("mpi_recv_", 1000, 56),
];

pub fn run(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let works = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !works("valgrind") || !works("callgrind_annotate") {
        tally.not_run.push("what Fortran's entries cost: there is no valgrind".to_owned());
        return Ok(());
    }
    let source = root().join("tests/fortran/costs.f90");
    let program = tools.build(&source, &["-O2", "-fno-inline"])?;
    let folder = tools.work.join("costs-counts");
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    if folder.is_dir() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    let mut command = Command::new(tools.prefix.join("bin/mpiexec"));
    command.args(["--timeout", "120", "-n", "2", "valgrind", "-q", "--tool=callgrind"]);
    command.arg(format!("--callgrind-out-file={}/%p", folder.display())).arg(program);
    if !quiet(&mut command)?.contains(SAID) {
        return Err("costs does not say that its checks passed".to_owned());
    }
    let mut text = String::new();
    for file in fs::read_dir(&folder).map_err(failed)?.flatten() {
        let mut annotate = Command::new("callgrind_annotate");
        annotate.args(["--threshold=100", "--auto=no"]).arg(file.path());
        let output = annotate.stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("callgrind_annotate: {e}"))?;
        text += &String::from_utf8_lossy(&output.stdout);
    }
    for (entry, calls, most) in BOUNDS {
        let found = own(&text, entry).div_ceil(calls);
        if found == 0 || found > most {
            return Err(format!("{entry}: {found} instructions of its own, at most {most}"));
        }
        println!("ok   {entry}: {found} instructions of its own of at most {most}");
        tally.passed += 1;
    }
    // The entries recognize complete arrays without `weft_has_gaps`, so they must not call this function.
    match own(&text, "weft_has_gaps") {
        0 => Ok(()),
        n => Err(format!("weft_has_gaps: {n} instructions for arrays without gaps")),
    }
}

/// Returns the sum of the instructions that annotations give for the function itself.
fn own(text: &str, function: &str) -> u64 {
    let counts = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let count: u64 = words.next()?.replace(',', "").parse().ok()?;
        words.any(|word| word.rsplit(':').next() == Some(function)).then_some(count)
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_are_those_of_the_function() {
        let text = "63,000 ( 1.2%)  ???:mpi_send_f08ts_ [lib.so]\n1,000 (0.1%)  ???:mpi_send_ [lib.so]\n\
                    2,000 (0.1%)  ???:mpi_send_ [lib.so]";
        assert_eq!(super::own(text, "mpi_send_"), 3000);
        assert_eq!(super::own(text, "mpi_recv_"), 0);
    }
}
