//! Running commands for the tests.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
pub use weft_vm::commands::{quiet, text};

/// Shows a command and runs it.
pub fn step(command: &mut Command) -> Result<(), String> {
    let text = text(command);
    println!("-- {text}");
    let status = command.status().map_err(|e| format!("cannot start '{text}': {e}"))?;
    if status.success() { Ok(()) } else { Err(format!("'{text}' failed: {status}")) }
}

/// The same; the standard output is shown and returned.
pub fn captured(command: &mut Command) -> Result<String, String> {
    match captured_code(command)? {
        (0, output) => Ok(output),
        (code, _) => Err(format!("'{}' ended with {code}", text(command))),
    }
}

/// The same, whatever the exit code; -1 for a signal.
pub fn captured_code(command: &mut Command) -> Result<(i32, String), String> {
    let text = text(command);
    println!("-- {text}");
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot start '{text}': {e}"))?;
    let mut all = String::new();
    if let Some(out) = child.stdout.take() {
        for line in BufReader::new(out).lines() {
            let line = line.map_err(|e| format!("output of '{text}': {e}"))?;
            println!("{line}");
            all.push_str(&line);
            all.push('\n');
        }
    }
    let status = child.wait().map_err(|e| format!("'{text}': {e}"))?;
    Ok((status.code().unwrap_or(-1), all))
}

/// Tests that passed by cargo's own count; none at all is an error.
pub fn count_cargo_tests(output: &str) -> Result<usize, String> {
    let passed = |line: &str| {
        let rest = line.strip_prefix("test result: ok. ")?;
        rest.split_whitespace().next()?.parse::<usize>().ok()
    };
    match output.lines().filter_map(passed).sum() {
        0 => Err("no test ran".to_owned()),
        n => Ok(n),
    }
}

/// Whether a nightly toolchain with Miri is there, installing it where rustup can.
pub fn have_miri() -> bool {
    let works = || {
        let mut command = Command::new("cargo");
        command.args(["+nightly", "miri", "--version"]).env_remove("RUSTUP_TOOLCHAIN");
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|s| s.success())
    };
    if works() {
        return true;
    }
    let mut install = Command::new("rustup");
    install.args(["toolchain", "install", "nightly", "--profile", "minimal"]);
    install.args(["--component", "miri,rust-src"]);
    let _ = install.status();
    works()
}

/// Why tests of libfabric are not run where [`have_libfabric`] says no.
pub(super) const NO_LIBFABRIC: &str = "libfabric.so.1 is not there (Debian's package libfabric1)";

/// Whether the system's loader finds libfabric.
pub(super) fn have_libfabric() -> bool {
    let output = Command::new("/sbin/ldconfig").arg("-p").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("libfabric.so.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_counted_and_none_is_an_error() {
        let output =
            "test result: ok. 3 passed; 0 failed\nx\ntest result: ok. 4 passed; 0 failed\n";
        assert_eq!(count_cargo_tests(output), Ok(7));
        assert!(count_cargo_tests("test result: ok. 0 passed; 0 failed").is_err());
        assert!(count_cargo_tests("").is_err());
    }
}
