//! Benchmarks in the virtual machine. This program runs on the host and in the machine: on the host it builds, and starts the machine
//! and itself inside.

use super::cable::Cable;
use super::library::BenchLibrary;
use super::output::save;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// Option that marks the run in the machine.
pub const INSIDE: &str = "--in-the-machine";
/// Number of processors of the machine: one for each rank.
const PROCESSORS: &str = "2";
/// Time from the start to the measurement of the processors' share, and duration of the measurement.
const LOOK: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(8)];

/// Number of rounds, and the maximum number of seconds of a run.
pub struct Repetition {
    pub rounds: usize,
    pub timeout: u64,
}

/// Runs the command line again in the machine. The caller is on the host. `programs` is the folder of the built programs.
pub fn outside(
    repetition: Repetition,
    libraries: &[BenchLibrary],
    programs: &Path,
) -> Result<(), String> {
    let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let runs = repetition.rounds * 4 * libraries.len();
    let limit = runs as u64 * repetition.timeout + 300;
    let mut vm = Command::new(&xtask);
    vm.args(["vm", "--cpus", PROCESSORS, "--timeout", &limit.to_string()]);
    let prefixes = libraries.iter().map(|l| l.prefix.as_path());
    for folder in prefixes.chain([programs]) {
        vm.arg("--show").arg(folder);
    }
    vm.arg("--").arg(&xtask).args(std::env::args_os().skip(1));
    vm.args([OsString::from(INSIDE), programs.into()]);
    let status = vm.status().map_err(|e| format!("cannot start the virtual machine: {e}"))?;
    let out = crate::root().join("target/vm/out");
    for name in ["table.txt", "results.json", "bench.svg"] {
        let Ok(text) = fs::read_to_string(out.join(name)) else { continue };
        save(&programs.join(name), &text)?;
    }
    match status.code() {
        Some(0) => Ok(()),
        code => Err(format!("in the virtual machine: code {code:?} (target/vm/last.log)")),
    }
}

/// Returns the folder in which results can be written. The caller is in the machine.
pub fn results() -> Result<PathBuf, String> {
    let out = std::env::var_os("WEFT_VM_OUT").ok_or("this is not the virtual machine")?;
    Ok(PathBuf::from(out))
}

/// Measures the share of one processor that soft-RoCE, netem and the ranks together take while messages of 1 MiB move and no rank
/// computes or spins. Returns a line with it. The caller is in the machine.
pub fn share(weft: &BenchLibrary, latency: &Path, cable: &Cable) -> Result<String, String> {
    let words = ["--sizes", "1M", "--seconds", "16", "--batch", "1"].map(str::to_owned);
    let mut job = weft.launch(2, latency, &words, Some(cable));
    job.env("WEFT_SPIN_US", "0");
    let mut child = job.start()?;
    sleep(LOOK[0]);
    let (bytes, busy) = (cable.carried()?, busy()?);
    sleep(LOOK[1]);
    let (bytes, busy) = (cable.carried()? - bytes, self::busy()? - busy);
    let _ = child.kill();
    let _ = child.wait();
    let seconds = LOOK[1].as_secs_f64();
    if bytes == 0 {
        return Err("messages of 1 MiB did not use the cable".to_owned());
    }
    Ok(format!(
        "without computing, messages of 1 MiB by soft-RoCE take {:.1} % of a processor, at both ends together \
         ({:.2} Mbit/s carried)\n",
        100.0 * busy / seconds,
        bytes as f64 * 8e-6 / seconds,
    ))
}

/// Returns the time that the processors were busy since they began, in seconds.
fn busy() -> Result<f64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|e| format!("/proc/stat: {e}"))?;
    ticks(&text).ok_or_else(|| format!("/proc/stat: {text}")).map(|ticks| ticks as f64 / 100.0)
}

/// Returns the sum of all columns except idle and iowait.
fn ticks(text: &str) -> Option<u64> {
    let line = text.lines().find(|l| l.starts_with("cpu "))?;
    let columns: Vec<u64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
    let idle = columns.get(3)? + columns.get(4)?;
    Some(columns.iter().take(8).sum::<u64>() - idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_processors_are_not_busy() {
        assert_eq!(ticks("cpu  10 1 20 1000 500 3 4 0 7 7\ncpu0 1 2\n"), Some(38));
        assert_eq!(ticks("nothing"), None);
    }
}
