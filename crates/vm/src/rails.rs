//! The adapters inside the virtual machine: their counters of sent packets, and loss by netem.

use super::commands::quiet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Directory in which the kernel lists the adapters.
const ADAPTERS: &str = "/sys/class/infiniband";
/// Maximum number of packets in netem's queue. There are never so many packets in flight, so packets are dropped only by `loss`.
const QUEUE: &str = "10000";

/// Adapters at the ends of cables, by the network devices to which they belong.
pub struct CableAdapters {
    /// Names of the adapters at one end of the cables and at the other, such as `rxe_va0`.
    pub ends: [Vec<String>; 2],
}

impl CableAdapters {
    /// Finds the adapters of this machine, whose cables go from `vaN` to `vbN` (see `crates/vm/guest/rails.sh`).
    pub fn find() -> Result<CableAdapters, String> {
        let names = adapters()?;
        let end = |prefix: &str| {
            names.iter().filter(|n| n.starts_with(prefix)).cloned().collect::<Vec<_>>()
        };
        let ends = [end("rxe_va"), end("rxe_vb")];
        if ends[0].is_empty() || ends[0].len() != ends[1].len() {
            return Err(format!("{ADAPTERS} has {names:?}, expected pairs rxe_vaN and rxe_vbN"));
        }
        Ok(CableAdapters { ends })
    }

    /// Makes each network device drop this part of the outgoing packets, such as `2%`. `None` ends the loss.
    pub fn lose(&self, part: Option<&str>) -> Result<(), String> {
        if let Some(part) = part {
            return self.impair(&["loss", part]);
        }
        for name in self.ends.iter().flatten() {
            let device = name.trim_start_matches("rxe_");
            quiet(Command::new("tc").args(["qdisc", "del", "dev", device, "root"]))?;
        }
        Ok(())
    }

    /// Impairs the outgoing traffic of each network device, in the words of tc-netem(8).
    pub fn impair(&self, what: &[&str]) -> Result<(), String> {
        for name in self.ends.iter().flatten() {
            let device = name.trim_start_matches("rxe_");
            let mut tc = Command::new("tc");
            tc.args(["qdisc", "replace", "dev", device, "root", "netem", "limit", QUEUE]);
            quiet(tc.args(what))?;
        }
        Ok(())
    }

    /// Returns the number of packets that each cable has carried, in both directions.
    pub fn carried(&self) -> Result<Vec<u64>, String> {
        let [one, other] = &self.ends;
        one.iter().zip(other).map(|(a, b)| Ok(sent_by(a)? + sent_by(b)?)).collect()
    }

    /// Returns the number of packets that netem has dropped since it was set up.
    pub fn dropped(&self) -> Result<u64, String> {
        let text = quiet(Command::new("tc").args(["-s", "-j", "qdisc", "show"]))?;
        drops(&text)
    }
}

fn drops(text: &str) -> Result<u64, String> {
    let all: Vec<serde_json::Value> =
        serde_json::from_str(text).map_err(|e| format!("tc -s -j qdisc show: {e}\n{text}"))?;
    let netem = all.iter().filter(|q| q["kind"] == "netem");
    Ok(netem.filter_map(|q| q["drops"].as_u64()).sum())
}

fn adapters() -> Result<Vec<String>, String> {
    let entries = fs::read_dir(ADAPTERS).map_err(|e| format!("{ADAPTERS}: {e}"))?;
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    Ok(names)
}

/// Returns the number of packets that all adapters of this machine have sent.
pub fn sent() -> Result<u64, String> {
    adapters()?.iter().map(|name| sent_by(name)).sum()
}

/// Returns the number of packets that an adapter has sent.
fn sent_by(name: &str) -> Result<u64, String> {
    let path = Path::new(ADAPTERS).join(name).join("ports/1/hw_counters/sent_pkts");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    text.trim().parse::<u64>().map_err(|e| format!("{}: '{text}': {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_netems_drops_are_counted() {
        let text = r#"[{"kind":"noqueue","dev":"lo","drops":5},{"kind":"netem","dev":"va0","drops":3},
                       {"kind":"netem","dev":"vb0","drops":4}]"#;
        assert_eq!(drops(text), Ok(7));
        assert!(drops("no").is_err());
    }
}
