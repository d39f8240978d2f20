//! A job under our mpiexec whose ranks are on several nodes, and the conditions that it must meet.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use weft_vm::rails::{self, CableAdapters};

/// Seconds after which mpiexec usually reports where the ranks wait, and ends the job.
pub const LIMIT: u64 = 200;

/// Node of each rank, in the order of `WEFT_NODES`. Odd nodes are at the other end of the cables.
#[derive(Clone, Copy)]
pub struct RankNodes(pub &'static [usize]);

impl RankNodes {
    /// Returns the number of pairs of neighbours on a ring of the ranks for which the two neighbours are on different nodes. An
    /// exchange with all neighbours sends this number of messages in each direction through the adapters.
    pub fn borders(self) -> u64 {
        let RankNodes(nodes) = self;
        let next = nodes.iter().cycle().skip(1);
        nodes.iter().zip(next).filter(|(a, b)| a != b).count() as u64
    }

    fn text(self) -> String {
        // A single number in `WEFT_NODES` would be a number of ranks per node.
        if self.0.len() == 1 {
            return "1".to_owned();
        }
        self.0.iter().map(usize::to_string).collect::<Vec<_>>().join(",")
    }
}

/// A job of a program, and the nodes of its ranks.
pub struct ClusterJob<'a> {
    pub nodes: RankNodes,
    /// Program and arguments.
    pub words: Vec<String>,
    /// Text that the program must print.
    pub says: &'a str,
    /// Minimum number of packets that the adapters must send for the program's own data. The number of sent packets is smaller if
    /// data took another path.
    pub packets: u64,
    /// Minimum number of packets that each cable must carry, because data that is spread over rails must use all rails.
    pub each: u64,
    /// Variables for all ranks.
    pub environment: &'a [(&'a str, &'a str)],
    /// Maximum number of seconds of the job.
    pub limit: u64,
}

impl ClusterJob<'_> {
    /// Runs the job with the installation at `prefix`. Returns its output, and the number of packets sent.
    pub fn run(&self, prefix: &Path, rails: &CableAdapters) -> Result<(String, u64), String> {
        let (before, cables) = (rails::sent()?, rails.carried()?);
        let mut command = Command::new(prefix.join("bin/mpiexec"));
        command.args(["--timeout", &self.limit.to_string(), "-n", &self.nodes.0.len().to_string()]);
        command.args(&self.words).env("WEFT_NODES", self.nodes.text());
        // Nodes alternate between the two ends of the cables.
        command.env("WEFT_DEVICES", rails.ends.each_ref().map(|end| end.join(",")).join(";"));
        command.envs(self.environment.iter().copied());
        command.env("LD_LIBRARY_PATH", prefix.join("lib"));
        let output = command.stdin(Stdio::null()).output().map_err(|e| format!("mpiexec: {e}"))?;
        let text = both(&output);
        if !output.status.success() {
            return Err(format!("{}\n{text}", output.status));
        }
        if !text.contains(self.says) {
            return Err(format!("does not say '{}':\n{text}", self.says));
        }
        let packets = rails::sent()? - before;
        if packets < self.packets {
            let least = self.packets;
            return Err(format!(
                "the adapters sent {packets} packets, but its messages need {least}: another way \
                 than verbs carried them\n{text}"
            ));
        }
        let carried = rails.carried()?.into_iter().zip(cables).map(|(now, then)| now - then);
        let carried: Vec<u64> = carried.collect();
        if self.each > 0 {
            println!("packets of each cable: {carried:?}");
        }
        if let Some(cable) = carried.iter().position(|&packets| packets < self.each) {
            let least = self.each;
            return Err(format!(
                "cable {cable} of {carried:?} packets: each must carry {least}\n{text}"
            ));
        }
        Ok((text, packets))
    }
}

/// Returns the output of a command on both streams.
pub fn both(output: &Output) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// Returns the path of a program as a word for the command line.
pub fn word(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// Arguments of bench/latency for a short test, which is not a measurement.
pub const LATENCY: [&str; 4] = ["--sizes", "0,8,1K,4K,64K", "--seconds", "0.3"];

/// Returns the results of bench/latency, in words.
pub fn latencies(output: &str) -> Result<String, String> {
    let value = |line: &str| {
        let value: Value = serde_json::from_str(line).ok()?;
        Some(format!("{} B {:.0} us", value["size"].as_u64()?, value["value"].as_f64()?))
    };
    let all: Vec<String> = output.lines().filter_map(value).collect();
    if all.is_empty() { Err(format!("no figure in:\n{output}")) } else { Ok(all.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_between_nodes_only() {
        for (nodes, borders) in [(&[0, 1][..], 2), (&[0, 0, 1, 1], 2), (&[0, 1, 2], 3), (&[0], 0)] {
            assert_eq!(RankNodes(nodes).borders(), borders, "{nodes:?}");
        }
        assert_eq!(RankNodes(&[0, 0, 12]).text(), "0,0,12");
    }

    #[test]
    fn latencies_are_read() {
        let text = "# x\n{\"size\": 8, \"value\": 12.7}\n{\"size\": 0, \"value\": 9.1}\n";
        assert_eq!(latencies(text), Ok("8 B 13 us, 0 B 9 us".to_owned()));
        assert!(latencies("").is_err());
    }
}
