//! Ranks with different settings: MPI_Init ends the job immediately, with a line that names the setting, the ranks and their
//! values.

use super::tally::Tally;
use std::path::Path;
use std::process::{Command, Stdio};

/// A setting, its value for ranks 0 and 1, and its value for rank 2. Without the comparison of settings, the first two jobs hang,
/// the next jobs hang or give wrong sums, and the last jobs run without an error.
const DIFFERENT: [(&str, &str, &str); 5] = [
    ("WEFT_FABRIC", "shm", "ofi"),
    ("WEFT_FABRIC", "ofi", "shm+ofi"),
    ("WEFT_ALLREDUCE", "MPI-GB", "MPI-PE"),
    ("WEFT_CREDIT", "65536", "4096"),
    ("WEFT_MAP", "none", "ndr"),
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = super::c_programs::folder()?.join("hello");
    for (name, some, other) in DIFFERENT {
        let mut command = Command::new(prefix.join("bin/mpiexec"));
        command.args(["--timeout", "60", "-n", "2", "-env", name, some]).arg(&program);
        command.args([":", "-n", "1", "-env", name, other]).arg(&program);
        let output = command.stdin(Stdio::null()).output().map_err(|e| format!("mpiexec: {e}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        let words = [
            format!("{name} is {some} on ranks 0 to 1 (host "),
            format!("{other} on rank 2 (host "),
        ];
        if output.status.success()
            || said.lines().count() != 1
            || !words.iter().all(|word| said.contains(word))
        {
            return Err(format!("{name}, {some} and {other}: {}\n{said}", output.status));
        }
        println!("ok   {name}={some} beside {name}={other}: one line says so");
        tally.passed += 1;
    }
    Ok(())
}
