//! `cargo xtask bench --cable RATE`: two ranks at the ends of one cable, which netem limits to RATE in both directions. The network
//! is then the limit, not a processor, so that overlap of real transfers can be measured. The cable is in the virtual machine. Weft
//! uses it by soft-RoCE, the peers by TCP, with shared memory off.

use super::job::BenchJob;
use super::library_kind::LibraryKind;
use std::fs;
use std::path::Path;
use weft_vm::rails::CableAdapters;

/// Minimum number of bytes that the largest messages of a run bring onto a cable.
pub const LEAST: u64 = 1 << 20;

/// The first cable of the machine, as seen inside the machine.
pub struct Cable {
    rails: CableAdapters,
}

impl Cable {
    /// Limits both ends of every cable to `rate`, as tc-netem(8) writes it.
    pub fn shape(rate: &str) -> Result<Cable, String> {
        let rails = CableAdapters::find()?;
        rails.impair(&["rate", rate])?;
        Ok(Cable { rails })
    }

    /// Returns the network devices of rank 0 and of rank 1.
    fn devices(&self) -> [&str; 2] {
        self.rails.ends.each_ref().map(|end| end[0].trim_start_matches("rxe_"))
    }

    /// Returns the number of bytes that left by the two ends of the cable.
    pub fn carried(&self) -> Result<u64, String> {
        let sent = |device: &str| {
            let path = format!("/sys/class/net/{device}/statistics/tx_bytes");
            let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
            text.trim().parse::<u64>().map_err(|e| format!("{path}: '{text}': {e}"))
        };
        let [one, other] = self.devices();
        Ok(sent(one)? + sent(other)?)
    }

    /// Sets the environment with which the library, installed in `prefix`, uses only the cable between its ranks.
    pub fn environment(&self, kind: LibraryKind, prefix: &Path, job: &mut BenchJob) {
        match kind {
            LibraryKind::Weft => {
                let [one, other] = self.rails.ends.each_ref().map(|end| end[0].as_str());
                job.env("WEFT_NODES", "0,1").env("WEFT_DEVICES", format!("{one};{other}"));
            }
            LibraryKind::OpenMpi => {
                job.env("OMPI_MCA_pml", "ob1").env("OMPI_MCA_btl", "self,tcp");
            }
            LibraryKind::Intel => {
                job.env("I_MPI_FABRICS", "ofi").env("I_MPI_OFI_PROVIDER", "tcp");
                // The wheel has its libfabric there.
                job.env("LD_LIBRARY_PATH", prefix.join("lib"));
            }
            LibraryKind::Mpich | LibraryKind::Other => {
                job.env("UCX_TLS", "tcp,self").env("FI_PROVIDER", "tcp");
                job.env("MPIR_CVAR_NOLOCAL", "1");
            }
        }
    }

    /// Returns the words before the program's name on each of the two ranks.
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
