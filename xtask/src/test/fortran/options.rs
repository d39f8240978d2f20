//! Options of the compiler that matter to MPI: standards, buffers of different types, and the length of integers.

use super::Tools;
use crate::test::tally::Tally;
use crate::test::tools::quiet;
use std::fs;
use std::process::{Command, Output};

/// Two broadcasts of buffers of different types, in a program that includes `mpif.h` through another header.
const UNLIKE: &str = "      program unlike\n      include 'nested.h'\n      integer ierror, a(2)\n      \
    double precision b(2)\n      call mpi_bcast(a,2,mpi_integer,0,mpi_comm_world,ierror)\n      \
    call mpi_bcast(b,2,mpi_double_precision,0,mpi_comm_world,ierror)\n      end\n";

/// Sources, each with the file that it includes: `mpif.h` itself, or a header that includes `mpif.h`.
const INCLUDES: [(&str, &str); 2] = [("long.f", "mpif.h"), ("nested.f", "nested.h")];

/// Option that makes integers 8 bytes long.
const LONG: &str = "-fdefault-integer-8";

struct Case<'a> {
    options: &'a [&'a str],
    source: &'a str,
    /// Error that the compiler or `mpifort` must report; `None` if there must be no error.
    says: Option<&'a str>,
}

pub fn run(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let put = |name: &str, text: &str| {
        fs::write(tools.work.join(name), text).map_err(|e| format!("{name}: {e}"))
    };
    put("nested.h", "      include 'mpif.h'\n")?;
    put("unlike.f", UNLIKE)?;
    for (name, header) in INCLUDES {
        put(name, &format!("      program x\n      include '{header}'\n      end\n"))?;
    }
    put("typed.f90", "use mpi\ninteger(4) :: ierror\ncall MPI_Init(ierror)\nend\n")?;
    put("untyped.f90", "use mpi\ninteger :: ierror\ncall MPI_Init(ierror)\nend\n")?;
    let error = Some("rror");
    let mut cases = vec![
        Case { options: &[], source: "unlike.f", says: None },
        Case { options: &[LONG], source: "long.f", says: Some("makes INTEGER 8 bytes long") },
        Case { options: &[LONG], source: "nested.f", says: Some("makes INTEGER 8 bytes long") },
        Case { options: &[LONG], source: "typed.f90", says: None },
        Case { options: &[LONG], source: "untyped.f90", says: error },
    ];
    // Only gfortran has these options.
    if tools.compiler == "gfortran" {
        let calls = "calls_mpif08.f90";
        cases.extend([
            Case { options: &["-std=f2008"], source: "unlike.f", says: error },
            Case { options: &["-fno-allow-argument-mismatch"], source: "unlike.f", says: error },
            Case { options: &["-std=f2008"], source: calls, says: None },
            Case { options: &["-std=f2018", "-pedantic-errors"], source: calls, says: None },
        ]);
    }
    for case in cases {
        let mut mpifort = tools.mpifort();
        mpifort.args(case.options).args(["-fsyntax-only", case.source]);
        let Output { status, stderr, .. } =
            mpifort.output().map_err(|e| format!("mpifort: {e}"))?;
        let said = String::from_utf8_lossy(&stderr);
        let right = match case.says {
            None => status.success(),
            Some(what) => !status.success() && said.to_lowercase().contains(&what.to_lowercase()),
        };
        if !right {
            let Case { options, source, says } = case;
            return Err(format!("{source} with {options:?} should say {says:?}: {status}: {said}"));
        }
        println!(
            "ok   {} with {:?}: {}",
            case.source,
            case.options,
            case.says.unwrap_or("compiled")
        );
        tally.passed += 1;
    }
    header_alone(tools, tally)
}

/// Tests that `mpif.h` itself reports the error to a program that is compiled without `mpifort`.
fn header_alone(tools: &Tools, tally: &mut Tally) -> Result<(), String> {
    let mut mpifort = tools.mpifort();
    let said = quiet(mpifort.arg("-showme:incdirs"))?;
    let folder = said.split_whitespace().next().unwrap_or_default();
    for (option, right) in [("-O0", true), (LONG, false)] {
        let mut compiler = Command::new(tools.compiler);
        compiler.args(["-fsyntax-only", option, "-I", folder, "nested.f"]).current_dir(&tools.work);
        let Output { status, stderr, .. } =
            compiler.output().map_err(|e| format!("{}: {e}", tools.compiler))?;
        let said = String::from_utf8_lossy(&stderr);
        if status.success() != right || said.contains("mpif.h") == right {
            return Err(format!("mpif.h with {option}: {status}: {said}"));
        }
    }
    println!("ok   mpif.h itself refuses {LONG}");
    tally.passed += 1;
    Ok(())
}
