//! Description of the machine, which results are reported with.

use serde_json::{Value, json};
use std::fs;
use weft_topology::{CacheKind, ProcessorCache, Sysfs, allowed, format_list};

/// Returns the processors that this process may use.
pub fn processors() -> Vec<usize> {
    allowed().unwrap_or_else(|| [0].into()).into_iter().collect()
}

/// Returns the average number of processes that wanted to run during the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

/// Returns the processor's name, with family and model. They distinguish virtual processors that hide their names.
fn processor() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpuinfo.lines().find(|l| l.split(':').next().map(str::trim) == Some(name))?;
        Some(line.split_once(": ")?.1.trim())
    };
    let name = field("model name").unwrap_or("unknown");
    match field("cpu family").zip(field("model")) {
        Some((family, model)) => format!("{name} (family {family}, model {model})"),
        None => name.to_owned(),
    }
}

/// Returns the caches of the first processor that this process may use, as in "L2 2048K of 0".
fn caches() -> Vec<String> {
    let first = processors().first().copied().unwrap_or(0);
    let of = |cache: ProcessorCache| {
        let kind = match cache.kind {
            CacheKind::Data => "d",
            CacheKind::Instruction => "i",
            CacheKind::Unified => "",
        };
        let size = cache.size.map_or("?".to_owned(), |size| format!("{}K", size >> 10));
        format!("L{}{kind} {size} of {}", cache.level, format_list(cache.processors))
    };
    Sysfs::real().caches(first).into_iter().map(of).collect()
}

fn kernel() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

pub fn describe() -> Value {
    json!({ "processor": processor(), "processors": processors().len(), "caches": caches(),
            "kernel": kernel(), "load_before": load() })
}

/// Returns the heading of a table. Figures mean nothing without the machine.
pub fn heading() -> String {
    let caches = caches();
    let caches = if caches.is_empty() { "unknown".to_owned() } else { caches.join(", ") };
    let count = processors().len();
    format!(
        "{}, {count} processors, Linux {}\ncaches (of processors): {caches}\n",
        processor(),
        kernel()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_processors() {
        assert!(!processors().is_empty());
    }

    #[test]
    fn the_heading_names_the_processor_and_its_caches() {
        let heading = heading();
        assert_eq!(heading.lines().count(), 2, "{heading}");
        assert!(heading.contains("processors, Linux") && heading.contains("caches"), "{heading}");
    }
}
