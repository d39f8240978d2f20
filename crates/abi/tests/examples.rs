//! The examples of manual pages compile, with every warning an error.
#![cfg(not(miri))]

mod common;

use common::{library_dir, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FRAME: &str = "frame.c";

/// Returns the examples, except the program that stands around examples that are only parts.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/examples");
    let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths.filter(|path| !path.ends_with(FRAME)).collect()
}

#[test]
fn examples_of_manual_pages_compile_without_a_warning() {
    let examples = examples();
    assert!(examples.len() > 50, "{} examples", examples.len());
    for example in examples {
        let text = fs::read_to_string(&example).expect("an example");
        let mut cc = Command::new("cc");
        cc.args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror"]);
        cc.arg("-I").arg(library_dir().join("include"));
        if text.contains("int main(") {
            cc.arg(&example);
        } else {
            cc.arg(format!("-DEXAMPLE=\"{}\"", example.display()));
            cc.arg(example.with_file_name(FRAME));
        }
        run(&mut cc);
    }
}
