//! What is known of the machine, and its own limits.

use serde_json::{Value, json};
use std::fs;

/// The processors that we may use.
pub fn processors() -> Vec<usize> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"));
    parse_list(list.unwrap_or("0").trim())
}

/// Reads "0-3,8".
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

/// How many processes wanted to run, on average over the last minute.
pub fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

pub fn describe() -> Value {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find(|l| l.starts_with("model name"))
        .and_then(|l| l.split(": ").nth(1))
        .unwrap_or("unknown");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    json!({ "processor": model, "processors": processors().len(), "kernel": kernel.trim(),
            "load_before": load() })
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
}
