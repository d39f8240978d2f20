//! Lists of processors as Linux writes them, and the processors that a process may use.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;

/// Processors, by the system's numbers.
pub type ProcessorSet = BTreeSet<usize>;

/// Maximum number of a processor. A list with a larger number is damaged.
const MOST: usize = 1 << 16;

/// Parses a list such as `0-3,8`. Returns `None` if the text is not such a list, or is empty.
pub fn parse_list(text: &str) -> Option<ProcessorSet> {
    let mut all = ProcessorSet::new();
    for range in text.trim().split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last >= MOST {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

/// Formats processors, which are in ascending order, as a list such as `0-3,8`.
pub fn format_list(processors: impl IntoIterator<Item = usize>) -> String {
    let mut text = String::new();
    let mut all = processors.into_iter().peekable();
    while let Some(first) = all.next() {
        let mut last = first;
        while let Some(next) = all.next_if_eq(&(last + 1)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        let _ = match last - first {
            0 => write!(text, "{comma}{first}"),
            _ => write!(text, "{comma}{first}-{last}"),
        };
    }
    text
}

/// Returns the processors that this process may use, or `None` if they are unknown.
pub fn allowed() -> Option<ProcessorSet> {
    of_status("self")
}

/// Returns the processors that process `pid` may use, or `None` if they are unknown.
pub fn allowed_to(pid: i32) -> Option<ProcessorSet> {
    of_status(&pid.to_string())
}

fn of_status(process: &str) -> Option<ProcessorSet> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    parse_list(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, processors) in
            [("0-2,8", &[0, 1, 2, 8][..]), ("7", &[7]), ("0,2,4-5", &[0, 2, 4, 5])]
        {
            assert_eq!(parse_list(text), Some(processors.iter().copied().collect()), "{text}");
            assert_eq!(format_list(processors.iter().copied()), text);
        }
        assert_eq!(parse_list(" 1-2\n"), Some(ProcessorSet::from([1, 2])));
        for wrong in ["", "a", "1-", "1,,2", "0-99999999999", "0-70000"] {
            assert_eq!(parse_list(wrong), None, "{wrong}");
        }
        assert_eq!(format_list([]), "");
    }

    #[cfg(not(miri))]
    #[test]
    fn this_process_has_processors() {
        assert!(allowed().is_some_and(|set| !set.is_empty()));
        assert_eq!(allowed_to(std::process::id() as i32), allowed());
        assert_eq!(allowed_to(-1), None);
    }
}
