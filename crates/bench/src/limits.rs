//! Sizes at which Weft changes its method, from three sources: its counters of messages, `weft explain`, and constants in the
//! source that neither of the two shows.

use super::job::BenchJob;
use super::library::BenchLibrary;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Maximum size that is measured, in bytes.
pub const MOST: u64 = 4 << 20;

/// Limits that no counter and no explanation shows: a source file, and the constant in it.
const OF_SOURCE: &[(&str, &str)] = &[("crates/fabric-shm/src/ring.rs", "INLINE")];

/// Operations as `weft explain` names them, with the benchmarks that use them.
const EXPLAINED: [(&str, &[&str]); 7] = [
    ("send", &["latency", "message_rate"]),
    ("put", &["put_window"]),
    ("get", &["get_window"]),
    ("accumulate", &["accumulate_char", "accumulate_double"]),
    ("bcast", &["bcast"]),
    ("allreduce", &["allreduce"]),
    ("alltoall", &["alltoall"]),
];

/// Maximum sizes for which an operation uses one method, in bytes.
#[derive(Default, Debug)]
pub struct OneWayLimits {
    /// Limits of messages, which collective operations and windows may send, too.
    messages: BTreeSet<u64>,
    /// Limits of operations, by benchmark.
    own: BTreeMap<&'static str, BTreeSet<u64>>,
    /// Sources of the limits, and limits that were not found, as lines for the report.
    pub told: Vec<String>,
}

impl OneWayLimits {
    /// Returns all sizes for a benchmark whose elements have `unit` bytes: powers of two up to [`MOST`], and each limit with one
    /// element less and one element more.
    pub fn sizes(&self, program: &str, unit: u64) -> Vec<u64> {
        let powers = (0..=MOST.ilog2()).map(|power| 1 << power).filter(|size| size % unit == 0);
        let own = self.own.get(program).into_iter().flatten();
        let around = self.messages.iter().chain(own).flat_map(|limit| {
            let whole = limit / unit * unit;
            [whole.saturating_sub(unit), whole, whole + unit]
        });
        let all: BTreeSet<u64> =
            powers.chain(around.filter(|size| *size >= unit && *size <= MOST)).collect();
        all.into_iter().collect()
    }
}

#[derive(Deserialize)]
struct Line {
    limit: u64,
}

/// Asks the library for its limits on `ranks` ranks. `program` is bench/protocols, built for the library.
pub fn ask(weft: &BenchLibrary, program: &Path, ranks: usize) -> Result<OneWayLimits, String> {
    let mut limits = OneWayLimits::default();
    let told = weft.launch(2, program, &[], None).run(Duration::from_secs(60))?;
    for text in told.lines().filter(|l| l.contains("\"limit\"")) {
        let line: Line = serde_json::from_str(text).map_err(|e| format!("'{text}': {e}"))?;
        limits.messages.insert(line.limit);
    }
    limits.told.push(format!("messages, by its counters: {}", list(&limits.messages)));
    for (file, name) in OF_SOURCE {
        match constant(file, name)? {
            Some(bytes) => {
                limits.messages.insert(bytes);
                limits.told.push(format!("{name} of {file}: {bytes}"));
            }
            None => limits.told.push(format!("{name} of {file}: there is no such constant")),
        }
    }
    for (operation, programs) in EXPLAINED {
        let mut way = |bytes: u64| explain(weft, operation, ranks, bytes);
        let Ok(first) = way(1) else {
            limits.told.push(format!("{operation}: weft explain does not know it"));
            continue;
        };
        let found = changes(&mut way, first)?;
        limits.told.push(format!("{operation}, by weft explain: {}", list(&found)));
        for program in programs {
            limits.own.entry(program).or_default().extend(&found);
        }
    }
    Ok(limits)
}

fn list(sizes: &BTreeSet<u64>) -> String {
    if sizes.is_empty() {
        return "none".to_owned();
    }
    sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the method that `weft explain` names for `bytes` bytes: the text after `algorithm` or `protocol`, up to a colon.
fn explain(
    weft: &BenchLibrary,
    operation: &str,
    ranks: usize,
    bytes: u64,
) -> Result<String, String> {
    let mut job = BenchJob::new(&weft.prefix.join("bin/weft"));
    weft.environment(&mut job);
    job.args(["explain", operation, "--bytes", &bytes.to_string()]);
    let collective = ["bcast", "allreduce", "alltoall"].contains(&operation);
    match collective {
        true => job.args(["-n", &ranks.to_string()]),
        false => job.args(["--peer", "1"]),
    };
    let told = job.run(Duration::from_secs(20))?;
    named(&told).ok_or_else(|| format!("weft explain {operation}: it names no way"))
}

fn named(told: &str) -> Option<String> {
    let of = |line: &str| {
        let (key, rest) = line.trim().split_once(char::is_whitespace)?;
        let way = rest.split(':').next()?.trim();
        ["algorithm", "protocol"].contains(&key).then(|| way.to_owned())
    };
    told.lines().find_map(of)
}

/// Returns the largest sizes of each method, found between powers of two with different methods. `first` is the method for one
/// byte.
fn changes(
    way: &mut impl FnMut(u64) -> Result<String, String>,
    first: String,
) -> Result<BTreeSet<u64>, String> {
    let (mut found, mut last) = (BTreeSet::new(), first);
    for power in 1..=MOST.ilog2() {
        let (mut low, mut high) = (1_u64 << (power - 1), 1_u64 << power);
        let next = way(high)?;
        if next != last {
            while high - low > 1 {
                let middle = low.midpoint(high);
                if way(middle)? == last { low = middle } else { high = middle }
            }
            found.insert(low);
            last = next;
        }
    }
    Ok(found)
}

/// Reads the value of `const NAME: usize = ...;` in a source file: a number, or a shifted number. Returns `None` if it is not
/// there.
fn constant(file: &str, name: &str) -> Result<Option<u64>, String> {
    let path = crate::root().join(file);
    let Ok(text) = std::fs::read_to_string(&path) else { return Ok(None) };
    let start = format!("const {name}: usize = ");
    let value = text.lines().find_map(|line| line.split_once(&start)?.1.split(';').next());
    let number = |text: &str| text.trim().replace('_', "").parse::<u64>();
    let Some(value) = value else { return Ok(None) };
    let parts: Result<Vec<u64>, _> = value.split("<<").map(number).collect();
    match parts.as_deref() {
        Ok([bytes]) => Ok(Some(*bytes)),
        Ok([bytes, shift]) => Ok(Some(bytes << shift)),
        _ => Err(format!("{file}: cannot read {name} = {value}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_found_by_halving() {
        let mut way = |bytes: u64| {
            Ok(["a", "b", "c"][usize::from(bytes > 96) + usize::from(bytes > 8192)].to_owned())
        };
        let found = changes(&mut way, "a".to_owned()).unwrap();
        assert_eq!(found, BTreeSet::from([96, 8192]));
        assert!(changes(&mut |_| Ok("a".to_owned()), "a".to_owned()).unwrap().is_empty());
    }

    #[test]
    fn sizes_are_powers_of_two_and_those_around_limits() {
        let mut limits = OneWayLimits { messages: BTreeSet::from([96]), ..OneWayLimits::default() };
        limits.own.entry("bcast").or_default().insert(MOST);
        let sizes = limits.sizes("bcast", 1);
        assert_eq!(sizes[..9], [1, 2, 4, 8, 16, 32, 64, 95, 96]);
        assert_eq!(sizes[sizes.len() - 2..], [MOST - 1, MOST]);
        let sizes = limits.sizes("allreduce", 8);
        assert_eq!(sizes[..7], [8, 16, 32, 64, 88, 96, 104]);
        assert!(sizes.iter().all(|size| size % 8 == 0));
    }

    #[test]
    fn the_way_is_read_from_an_explanation() {
        let told = "bcast on 2 ranks, 8 bytes\n  map        shm\n  algorithm  SHM-RING: straight\n  steps 2\nothers\n";
        assert_eq!(named(told).as_deref(), Some("SHM-RING"));
        assert_eq!(named("send\n  protocol   copied by both\n").as_deref(), Some("copied by both"));
        assert_eq!(named("nothing\n"), None);
    }

    #[test]
    fn constants_of_the_source_are_there() {
        for (file, name) in OF_SOURCE {
            assert!(constant(file, name).unwrap().is_some(), "{file} has no constant {name}");
        }
    }
}
