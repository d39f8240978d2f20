//! Messages that the library prints on many ranks for one cause, such as "the connection to mpiexec is lost". The first rank's
//! message is printed. At the end, the number of other ranks with the same message is printed.

use std::collections::BTreeMap;
use std::fmt::Write;

/// Beginning of the library's own lines.
const MARK: &[u8] = b"weft: ";
/// Maximum number of causes that are distinguished. If there are more causes, all their lines are printed.
const CAUSES: usize = 256;

/// The library's lines on standard error.
#[derive(Default)]
pub struct MessageDedup {
    /// For each line, the ranks that have printed it: the rank whose line was printed, and the other ranks. The key is the line
    /// without numbers of ranks.
    seen: BTreeMap<Vec<u8>, (usize, Vec<usize>)>,
}

/// Returns the line without the parts that differ between ranks with the same cause. These parts are the numbers of ranks and
/// processes, and the hosts that follow these numbers.
fn cause(line: &[u8]) -> Vec<u8> {
    let mut rest = line;
    let mut cause = Vec::with_capacity(line.len());
    while let Some(&byte) = rest.first() {
        let name = [&b"rank "[..], b"process "].into_iter().find(|name| rest.starts_with(name));
        let length = name.map_or(0, <[u8]>::len);
        let digits = rest[length..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if name.is_none() || digits == 0 {
            cause.push(byte);
            rest = &rest[1..];
            continue;
        }
        cause.extend(&rest[..length]);
        cause.push(b'N');
        rest = &rest[length + digits..];
        let host = rest.strip_prefix(b" on ").and_then(|word| {
            word.iter().position(|byte| b": \n".contains(byte)).filter(|&end| word[end] == b':')
        });
        rest = &rest[host.map_or(0, |end| b" on ".len() + end)..];
    }
    cause
}

impl MessageDedup {
    /// Returns true if `line` of rank `rank` must be printed. A line is not printed if the same line of another rank was printed
    /// before.
    pub fn is_new(&mut self, rank: usize, line: &[u8]) -> bool {
        if !line.starts_with(MARK) {
            return true;
        }
        let cause = cause(line);
        if self.seen.len() == CAUSES && !self.seen.contains_key(&cause) {
            return true;
        }
        let (first, others) = self.seen.entry(cause).or_insert((rank, Vec::new()));
        if *first != rank && !others.contains(&rank) {
            others.push(rank);
        }
        *first == rank
    }

    /// Returns a line for each message that was left out since the last call. The line names the number of ranks.
    pub fn summary(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        for (cause, (_, others)) in &mut self.seen {
            if others.is_empty() {
                continue;
            }
            let text = String::from_utf8_lossy(cause);
            let mut line = match others.len() {
                1 => "mpiexec: 1 more rank printed".to_owned(),
                count => format!("mpiexec: {count} more ranks printed"),
            };
            write!(line, ": {}", text.trim_end()).expect("a string takes all");
            lines.push(line);
            others.clear();
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_is_one_line_and_a_count() {
        let mut dedup = MessageDedup::default();
        let line = |rank: usize| format!("weft: MPI_Init: rank {rank} on a1: no room\n");
        let written: Vec<bool> =
            (0..300).map(|rank| dedup.is_new(rank, line(rank).as_bytes())).collect();
        assert_eq!(written.iter().filter(|&&new| new).count(), 1);
        assert!(written[0]);
        assert!(!dedup.is_new(7, b"weft: MPI_Init: rank 7 on a2: no room\n"));
        assert!(dedup.is_new(8, b"weft: MPI_Init: rank 8 on a2: no memory\n"));
        let said = "mpiexec: 299 more ranks printed: weft: MPI_Init: rank N: no room";
        assert_eq!(dedup.summary(), [said]);
        assert_eq!(dedup.summary(), Vec::<String>::new());
    }

    #[test]
    fn what_a_rank_repeats_and_programs_say_is_theirs() {
        let mut dedup = MessageDedup::default();
        for _ in 0..3 {
            assert!(dedup.is_new(1, b"weft: rank 1: a line\n"));
            assert!(dedup.is_new(2, b"error\n") && dedup.is_new(3, b"error\n"));
        }
        assert_eq!(dedup.summary(), Vec::<String>::new());
    }
}
