//! C programs that check themselves, run as worlds of one: `tests/c/<name>.c`.

use crate::common::{library_dir, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of `tests/c`, with every warning an error.
fn compile(name: &str) -> PathBuf {
    let dir = library_dir();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(name);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("program-{name}"));
    let mut cc = Command::new("cc");
    cc.args(["-g", "-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations"]);
    cc.arg("-I").arg(dir.join("include")).arg(source.with_extension("c")).arg("-o").arg(&program);
    cc.arg("-L").arg(dir).args(["-lmpi_abi", &format!("-Wl,-rpath,{}", dir.display())]);
    run(&mut cc);
    program
}

/// Runs a program whose exit code reports that all its checks held.
fn holds(name: &str) {
    run(&mut Command::new(compile(name)));
}

#[test]
fn attributes() {
    holds("caching");
}

#[test]
fn groups() {
    holds("groups");
}

#[test]
fn info() {
    holds("info");
}

#[test]
fn topology() {
    holds("topology");
}

#[test]
fn datatypes() {
    holds("datatypes");
}

#[test]
fn errors() {
    holds("errors");
}

#[test]
fn memory() {
    holds("memory");
}

#[test]
fn fatal_errors_end_the_program_with_one_line() {
    let program = compile("fatal");
    let rank = "argument dest = 7: ranks are 0 to 0";
    let cases = [
        ("before", "MPI_Comm_rank: called before MPI_Init".to_owned()),
        ("send", format!("rank 0: MPI_Send on MPI_COMM_WORLD: {rank}")),
        ("named", format!("rank 0: MPI_Send on rows: {rank}")),
        ("group", "rank 0: MPI_Group_union: argument group1 is the null group".to_owned()),
        ("called", "rank 0: MPI_Comm_call_errhandler on MPI_COMM_SELF: MPI_ERR_IO".to_owned()),
        ("after", "MPI_Comm_rank".to_owned()),
    ];
    for (place, line) in cases {
        let output = Command::new(&program).arg(place).output().expect("the program runs");
        let (out, err) = (&output.stdout, &output.stderr);
        let (out, err) = (String::from_utf8_lossy(out), String::from_utf8_lossy(err));
        assert!(err.contains(&line), "{place}: {err}");
        assert_eq!(err.lines().count(), 1, "{place}: {err}");
        assert!(output.status.code().is_some_and(|code| code != 0), "{place}: {}", output.status);
        assert!(!out.contains("still here"), "{place}: {out}");
        assert_eq!(
            out.contains("initialised"),
            place != "before",
            "{place}: what was printed is kept"
        );
    }
}

#[test]
fn generalized_requests() {
    holds("generalized");
}
