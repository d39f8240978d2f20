//! Execution of commands for the tests.

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

/// Shows a command and runs it. Shows and returns its standard output.
pub fn captured(command: &mut Command) -> Result<String, String> {
    match captured_code(command)? {
        (0, output) => Ok(output),
        (code, _) => Err(format!("'{}' ended with {code}", text(command))),
    }
}

/// Returns true if strace may trace a process here.
pub fn strace_runs() -> bool {
    let works = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    works.is_ok_and(|output| output.status.success())
}

/// Runs a command as [`captured`] does, and also returns its exit code, or -1 for a signal.
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

/// Maximum number of lines about failures that are repeated at the end. Some readers see only the last lines.
const TOLD: usize = 40;

/// Returns the lines about failed tests. The output is from cargo or from [`super::cluster::parts`] in any virtual machine.
pub fn failures(output: &str) -> String {
    let own = |line: &str| {
        let label = line.find("| ").filter(|_| line.starts_with("vm"));
        line[label.map_or(0, |at| at + 2)..].to_owned()
    };
    let (mut told, mut inside) = (Vec::new(), false);
    for line in output.lines().map(own) {
        let begins = line.starts_with("FAILED ") || line.contains(" panicked at ");
        let ends = ["ok   ", "-- ", "test ", "----", "note: run with"];
        inside = begins || inside && !line.is_empty() && !ends.iter().any(|e| line.starts_with(e));
        if inside {
            told.push(line);
        }
    }
    if let Some(more) = told.len().checked_sub(TOLD + 1) {
        told.truncate(TOLD);
        told.push(format!("(and {} lines more, above)", more + 1));
    }
    told.iter().map(|line| format!("\n    {line}")).collect()
}

/// Returns the number of passed tests that cargo reports. Returns an error if no test ran.
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

/// Returns true if there is a nightly toolchain with Miri. Installs this toolchain if rustup can.
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

/// Reason why tests of libfabric are not run if [`have_libfabric`] returns false.
pub(super) const NO_LIBFABRIC: &str = "libfabric.so.1 is not there (Debian's package libfabric1)";

/// Returns true if the system's loader finds libfabric.
pub(super) fn have_libfabric() -> bool {
    let output = Command::new("/sbin/ldconfig").arg("-p").output();
    output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("libfabric.so.1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_told_again() {
        let parts = "vm0| ok   a (1 s)\nvm0| FAILED b (2 s): exit status: 53\nvm0| mpiexec: why\nvm0| \nvm: killed\nvm0| ok   c (1 s)\n-- all";
        assert_eq!(failures(parts), "\n    FAILED b (2 s): exit status: 53\n    mpiexec: why");
        let cargo = "test a ... ok\nfailures:\n\n---- b stdout ----\nthread 'b' (1) panicked at x.rs:1:2:\nleft: 1\nnote: run with\n\ntest result: FAILED. 1";
        assert_eq!(failures(cargo), "\n    thread 'b' (1) panicked at x.rs:1:2:\n    left: 1");
        assert_eq!(failures("ok   FAILED \nlook | FAILED \n"), "");
        let long = failures(&"FAILED x\n".repeat(TOLD + 3));
        assert!(long.ends_with("FAILED x\n    (and 3 lines more, above)"), "{long}");
        assert_eq!(failures(&"FAILED x\n".repeat(TOLD)).lines().count(), TOLD + 1);
    }

    #[test]
    fn passed_tests_are_counted_and_none_is_an_error() {
        let output =
            "test result: ok. 3 passed; 0 failed\nx\ntest result: ok. 4 passed; 0 failed\n";
        assert_eq!(count_cargo_tests(output), Ok(7));
        assert!(count_cargo_tests("test result: ok. 0 passed; 0 failed").is_err());
        assert!(count_cargo_tests("").is_err());
    }
}
