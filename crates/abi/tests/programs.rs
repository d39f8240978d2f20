//! C programs that check themselves, run as worlds of one: `tests/c/<name>.c`.
#![cfg(not(miri))]

mod common;

use common::{library_dir, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program of `tests/c`, every warning an error.
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

/// A program whose exit code says that all its checks held.
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
