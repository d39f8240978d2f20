//! `weft explain file_write_all` and `file_read_all` as a user runs them.

use std::process::{Command, Output};

fn explain(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    // The generic model gives the same result on each machine.
    command.arg("explain").args(args).env("WEFT_COPY_MODEL", "generic").output().unwrap()
}

fn way(args: &[&str]) -> String {
    let output = explain(args);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let line = text.lines().find(|line| line.trim_start().starts_with("way"));
    line.unwrap_or_else(|| panic!("no way in {text}")).to_owned()
}

#[test]
fn the_way_of_a_collective_access_is_told() {
    for call in ["file_write_all", "file_read_all"] {
        let large = way(&[call, "-n", "4", "--bytes", "16777216"]);
        assert!(large.contains("alone"), "{large}");
    }
    let small = way(&["file_write_all", "-n", "8", "--bytes", "1048576", "--piece", "8"]);
    assert!(small.contains("in two phases"), "{small}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let wrong: [&[&str]; 3] = [
        &["file_write_all", "--bytes", "8"],
        &["file_write_all", "-n", "2"],
        &["file_read_all", "-n", "2", "--bytes", "80", "--piece", "8", "--stride", "4"],
    ];
    for args in wrong {
        assert!(!explain(args).status.success(), "{args:?}");
    }
}
