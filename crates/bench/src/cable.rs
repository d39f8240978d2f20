//! `cargo xtask bench --cable RATE`: two ranks at the ends of one cable, which netem makes as slow as RATE in both
//! directions, so that the network is the limit and not a processor: what overlap of real transfers is measured on. The
//! cable is in the virtual machine: Weft uses it by soft-RoCE, the peers by TCP, with shared memory off.
//!
//! This program runs in both: on the host it builds, and starts the machine and itself therein.

use super::job::BenchJob;
use super::library::{BenchLibrary, LibraryKind};
use super::{BenchArgs, save};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;
use weft_vm::rails::CableAdapters;

/// What says that this program runs in the machine.
pub const INSIDE: &str = "--in-the-machine";
/// Processors of the machine: one for each rank.
const PROCESSORS: &str = "2";
/// Bytes that a run's largest messages bring onto a cable at least.
pub const LEAST: u64 = 1 << 20;
/// What is looked at when asking for a processor's share: after the start, and for so long.
const LOOK: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(8)];

/// The first cable of the machine, from inside.
pub struct Cable {
    rails: CableAdapters,
}

impl Cable {
    /// Makes both ends of every cable as slow as `rate`, in the words of tc-netem(8).
    pub fn shape(rate: &str) -> Result<Cable, String> {
        let rails = CableAdapters::find()?;
        rails.impair(&["rate", rate])?;
        Ok(Cable { rails })
    }

    /// The network device that rank 0 uses, and rank 1's.
    fn devices(&self) -> [&str; 2] {
        self.rails.ends.each_ref().map(|end| end[0].trim_start_matches("rxe_"))
    }

    /// Bytes that left by its two ends.
    pub fn carried(&self) -> Result<u64, String> {
        let sent = |device: &str| {
            let path = format!("/sys/class/net/{device}/statistics/tx_bytes");
            let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
            text.trim().parse::<u64>().map_err(|e| format!("{path}: '{text}': {e}"))
        };
        let [one, other] = self.devices();
        Ok(sent(one)? + sent(other)?)
    }

    /// What the library needs to hear for the cable to be all that its ranks have.
    pub fn environment(&self, library: &BenchLibrary, job: &mut BenchJob) {
        match library.kind {
            LibraryKind::Weft => {
                let [one, other] = self.rails.ends.each_ref().map(|end| end[0].as_str());
                job.env("WEFT_NODES", "0,1").env("WEFT_DEVICES", format!("{one};{other}"));
            }
            LibraryKind::OpenMpi => {
                job.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,tcp");
            }
            LibraryKind::Intel => {
                job.env("I_MPI_FABRICS", "ofi").env("I_MPI_OFI_PROVIDER", "tcp");
                // Where the wheel has its libfabric.
                job.env("LD_LIBRARY_PATH", library.prefix.join("lib"));
            }
            LibraryKind::Mpich | LibraryKind::Other => {
                job.env("UCX_TLS", "tcp,self").env("FI_PROVIDER", "tcp");
                job.env("MPIR_CVAR_NOLOCAL", "1");
            }
        }
    }

    /// What comes before the program's name on each of the two ranks.
    pub fn words(&self, kind: LibraryKind) -> [Vec<String>; 2] {
        let keys: &[&str] = match kind {
            LibraryKind::Weft => return [vec![], vec![]],
            LibraryKind::OpenMpi => &["OMPI_MCA_btl_tcp_if_include"],
            LibraryKind::Intel | LibraryKind::Mpich | LibraryKind::Other => {
                &["UCX_NET_DEVICES", "FI_TCP_IFACE"]
            }
        };
        self.devices().map(|device| {
            let set = keys.iter().map(|key| format!("{key}={device}"));
            std::iter::once("env".to_owned()).chain(set).collect()
        })
    }
}

/// On the host: runs the command line once more, in the machine. `programs` is the folder of what was built.
pub fn outside(
    args: &BenchArgs,
    libraries: &[BenchLibrary],
    programs: &Path,
) -> Result<(), String> {
    let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let runs = args.rounds() * 4 * libraries.len();
    let limit = runs as u64 * args.timeout + 300;
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

/// Inside: where results can be written.
pub fn results() -> Result<PathBuf, String> {
    let out = std::env::var_os("WEFT_VM_OUT").ok_or("this is not the virtual machine")?;
    Ok(PathBuf::from(out))
}

/// Inside: says how much of one processor soft-RoCE, netem and the ranks together take while messages of 1 MiB move
/// and nobody computes or spins.
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

/// Seconds that the processors were busy since they began.
fn busy() -> Result<f64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|e| format!("/proc/stat: {e}"))?;
    ticks(&text).ok_or_else(|| format!("/proc/stat: {text}")).map(|ticks| ticks as f64 / 100.0)
}

/// Of all columns but idle and iowait.
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
