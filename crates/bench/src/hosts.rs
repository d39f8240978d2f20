//! `cargo xtask bench --hosts N`: ranks on N hosts, made of network namespaces with one cable each (`cargo xtask net`), with all
//! libraries by TCP over the same cables. Each library is told its interface, its launch agent, and whether it shares processors
//! with few or many ranks. All other settings are its defaults.
//!
//! This program runs twice. Outside it builds, and starts the hosts and itself on the first host.

use super::job::BenchJob;
use super::library::{BenchLibrary, threads};
use super::library_kind::LibraryKind;
use super::plan::BenchCase;
use super::{BenchArgs, plan};
use std::path::Path;
use std::process::Command;

/// Option that marks the run on the first host.
pub const INSIDE: &str = "--on-the-first-host";

/// Interface that connects the hosts.
const INTERFACE: &str = "eth0";

/// Minimum number of bytes that a run brings onto the cable. Fewer come from the launcher alone.
pub const LEAST: u64 = 20_000;

/// Default number of ranks per host in collective operations.
const CROWD: usize = 16;

/// The hosts, as seen from the first host.
pub struct Hosts {
    names: Vec<String>,
    /// Command that starts a command on another host, like ssh.
    agent: String,
}

impl Hosts {
    /// Returns the hosts to which this process belongs.
    pub fn find() -> Result<Hosts, String> {
        let told =
            |key: &str| std::env::var(key).map_err(|_| format!("{key} is not set: no hosts"));
        let names = told("WEFT_NET_HOSTS")?.split_whitespace().map(str::to_owned).collect();
        Ok(Hosts { names, agent: told("WEFT_RSH")? })
    }

    /// Returns the number of hosts.
    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// Returns the names of the hosts, and the command that starts a command on another host.
    pub fn reach(&self) -> (String, &str) {
        (self.names.join(","), &self.agent)
    }

    /// Returns a job with the same number of ranks on each host.
    pub fn launch(&self, library: &BenchLibrary, program: &Path, case: &BenchCase) -> BenchJob {
        let each = case.ranks / self.names.len();
        let slots = |name: &String| format!("{name}:{each}");
        let slots = self.names.iter().map(slots).collect::<Vec<_>>().join(",");
        let mut job = library.launcher();
        job.env("WEFT_RSH", &self.agent);
        match library.kind {
            LibraryKind::Weft => job.args(["--hosts", &slots]),
            LibraryKind::OpenMpi => {
                job.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,sm,tcp");
                job.env("OMPI_MCA_btl_tcp_if_include", INTERFACE);
                job.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
                job.args(["--host", &slots, "--prtemca", "plm_ssh_agent", &self.agent])
            }
            LibraryKind::Intel => {
                job.env("I_MPI_FABRICS", "shm:ofi").env("I_MPI_OFI_PROVIDER", "tcp");
                job.env("FI_TCP_IFACE", INTERFACE).env("I_MPI_PIN", "off");
                // The wheel has its libfabric there.
                job.env("LD_LIBRARY_PATH", library.prefix.join("lib"));
                self.hydra(&mut job, each, ["-bootstrap", "-bootstrap-exec"])
            }
            LibraryKind::Mpich | LibraryKind::Other => {
                job.env("UCX_TLS", "tcp,sm,self").env("UCX_NET_DEVICES", INTERFACE);
                job.env("FI_PROVIDER", "tcp").env("FI_TCP_IFACE", INTERFACE);
                self.hydra(&mut job, each, ["-launcher", "-launcher-exec"])
            }
        };
        if threads(program) > 1 {
            job.env("OMP_NUM_THREADS", threads(program).to_string());
        }
        job.arg("-n").arg(case.ranks.to_string()).arg(program).args(case.arguments());
        job
    }

    fn hydra<'j>(
        &self,
        job: &'j mut BenchJob,
        each: usize,
        launcher: [&str; 2],
    ) -> &'j mut BenchJob {
        job.args(["-hosts", &self.names.join(","), "-ppn", &each.to_string()]);
        job.args([launcher[0], "ssh", launcher[1], &self.agent])
    }

    /// Returns the number of bytes that were received and sent over the first host's cable.
    pub fn carried(&self) -> Result<u64, String> {
        let path = "/proc/net/dev";
        let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        carried(&text).ok_or_else(|| format!("{path}: no {INTERFACE}"))
    }
}

/// Returns the number of received and sent bytes of the interface.
fn carried(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|l| l.trim().strip_prefix(INTERFACE)?.strip_prefix(':'))?;
    let numbers: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
    Some(numbers.first()? + numbers.get(8)?)
}

/// Returns the cases: two ranks if there are two hosts, otherwise 16 ranks per host or the requested numbers.
pub fn cases(args: &BenchArgs, hosts: usize) -> Result<Vec<BenchCase>, String> {
    let seconds = args.seconds;
    let usual: &[&str] = match hosts {
        2 => &["latency", "bandwidth", "bidirectional", "message_rate", "overlap_receiver", "idle"],
        _ => &["barrier", "allreduce", "alltoall"],
    };
    let usual: Vec<String> = usual.iter().map(|&name| name.to_owned()).collect();
    let asked = if args.benchmarks.is_empty() { &usual } else { &args.benchmarks };
    let mut cases: Vec<BenchCase> = Vec::new();
    for case in plan::cases(asked, seconds)? {
        let known = cases.iter().any(|c| c.program == case.program && c.about == case.about);
        if known || case.loaded {
            continue;
        }
        if !plan::COLLECTIVES.contains(&case.program) {
            cases.extend((hosts == case.ranks).then_some(case));
            continue;
        }
        let ranks = if args.ranks.is_empty() { &vec![CROWD * hosts] } else { &args.ranks };
        for &ranks in ranks {
            if !ranks.is_multiple_of(hosts) {
                return Err(format!("{ranks} ranks do not fit {hosts} hosts evenly"));
            }
            let sizes = if case.program == "barrier" { "0" } else { "8,1K" }.to_owned();
            // With many ranks per processor the time slices are measured, which takes longer.
            cases.push(BenchCase { ranks, sizes, seconds: 10.0 * seconds, ..case.clone() });
        }
    }
    Ok(cases)
}

/// Makes the hosts and runs the command line again on the first host. The caller is outside of the hosts.
pub fn outside(args: &BenchArgs, hosts: u8, runs: usize) -> Result<(), String> {
    let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let limit = runs as u64 * args.timeout + 300;
    let mut net = Command::new(&xtask);
    net.args(["net", "--cables", "1", "--timeout", &limit.to_string()]);
    net.args(["--hosts", &hosts.to_string()]);
    if let Some(rate) = &args.rate {
        net.args(["--rate", rate]);
    }
    net.arg("--").arg(&xtask).args(std::env::args_os().skip(1)).arg(INSIDE);
    let status = net.status().map_err(|e| format!("cannot start {}: {e}", xtask.display()))?;
    match status.code() {
        Some(0) => Ok(()),
        code => Err(format!("between the hosts: code {code:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_counted() {
        let text = "Inter-| x\n face | y\n    lo:  1 1 0 0 0 0 0 0 1 1\n  eth0: 300 3 0 0 0 0 0 0  77 2 0\n";
        assert_eq!(carried(text), Some(377));
        assert_eq!(carried("nothing"), None);
    }

    #[test]
    fn collectives_fill_the_hosts_and_pairs_need_two() {
        #[derive(clap::Parser)]
        struct Whole {
            #[command(flatten)]
            args: BenchArgs,
        }
        let args = |words: &[&str]| {
            use clap::Parser;
            Whole::parse_from([&["bench"], words].concat()).args
        };
        let four = cases(&args(&["--hosts", "4"]), 4).unwrap();
        assert!(four.iter().all(|c| c.ranks == 64) && four.len() == 3);
        let two = cases(&args(&["--hosts", "2"]), 2).unwrap();
        assert!(two.iter().all(|c| c.ranks == 2) && two.iter().any(|c| c.program == "latency"));
        assert!(cases(&args(&["--hosts", "4", "--ranks", "6"]), 4).is_err());
    }
}
