//! Description of the machine, which results are reported with.

use serde_json::{Value, json};
use std::fs;

/// Returns the processors that this process may use.
pub fn processors() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    parse_list(list.unwrap_or("0").trim())
}

/// Parses a list like "0-3,8".
fn parse_list(list: &str) -> Vec<usize> {
    let number = |s: &str| s.trim().parse::<usize>().ok();
    list.split(',')
        .filter_map(|part| match part.split_once('-') {
            Some((a, b)) => Some((number(a)?, number(b)?)),
            None => Some((number(part)?, number(part)?)),
        })
        .flat_map(|(first, last)| first..=last)
        .collect()
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
    let of = |index: usize| {
        let folder = format!("/sys/devices/system/cpu/cpu{first}/cache/index{index}");
        let read = |name: &str| {
            fs::read_to_string(format!("{folder}/{name}")).ok().map(|text| text.trim().to_owned())
        };
        let kind = match read("type")?.as_str() {
            "Data" => "d",
            "Instruction" => "i",
            _ => "",
        };
        Some(format!("L{}{kind} {} of {}", read("level")?, read("size")?, read("shared_cpu_list")?))
    };
    (0..).map_while(of).collect()
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
    fn lists_of_processors() {
        assert_eq!(parse_list("0-2,5"), [0, 1, 2, 5]);
        assert_eq!(parse_list("7"), [7]);
        assert!(!processors().is_empty());
    }

    #[test]
    fn the_heading_names_the_processor_and_its_caches() {
        let heading = heading();
        assert_eq!(heading.lines().count(), 2, "{heading}");
        assert!(heading.contains("processors, Linux") && heading.contains("caches"), "{heading}");
    }
}
