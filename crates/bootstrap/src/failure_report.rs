//! The report of an `mpiexec` to the job that has started it: why the job failed, and the last output of the failed process.

use std::io::{self, Read};

/// The variable that asks `mpiexec` for a report. The report goes to standard input, which is then a socket.
pub const VARIABLE: &str = "WEFT_LAST_WORDS";

/// Maximum number of bytes of the reason, and of the last words.
const REASON: usize = 4096;
const WORDS: usize = 1024;

/// The report of a failed job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FailureReport {
    /// The first failure, in words. Empty if no process has failed.
    pub reason: String,
    /// The last bytes that the process printed on standard error.
    pub words: Vec<u8>,
}

impl FailureReport {
    /// Encodes the report: both lengths, the reason, the words. Parts that are too long are cut.
    pub fn encode(&self) -> Vec<u8> {
        let reason = &self.reason.as_bytes()[..self.reason.len().min(REASON)];
        let words = &self.words[self.words.len().saturating_sub(WORDS)..];
        let lengths = [reason.len() as u32, words.len() as u32].map(u32::to_le_bytes);
        [&lengths.concat()[..], reason, words].concat()
    }

    /// Decodes a report. Returns `None` if it is incomplete or malformed.
    pub fn decode(bytes: &[u8]) -> Option<FailureReport> {
        let (lengths, rest) = bytes.split_at_checked(8)?;
        let (reason, words) = lengths.split_at(4);
        let length = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("4 bytes")) as usize;
        let (reason, words) = (length(reason), length(words));
        if reason > REASON || words > WORDS {
            return None;
        }
        let (reason, rest) = rest.split_at_checked(reason)?;
        Some(FailureReport {
            reason: String::from_utf8_lossy(reason).into_owned(),
            words: rest.get(..words)?.to_vec(),
        })
    }

    /// Reads the report of an `mpiexec` that has ended. `socket` must not block, because other processes may still hold its other
    /// end.
    pub fn read(socket: &mut impl Read) -> Option<FailureReport> {
        let mut bytes = Vec::new();
        // If the socket is empty but open, the read fails after it has read all bytes, so the error is ignored.
        let _: io::Result<usize> = socket.take((8 + REASON + WORDS) as u64).read_to_end(&mut bytes);
        FailureReport::decode(&bytes)
    }

    /// Returns the end of the last words in at most `room` bytes, as one line: control characters are escaped.
    pub fn last_words(&self, room: usize) -> String {
        let text = String::from_utf8_lossy(&self.words);
        let mut line = String::new();
        // Characters are taken from the end, as long as there is room.
        for char in text.trim().chars().rev() {
            let escaped = if char.is_control() || char == '\\' {
                char.escape_default().to_string()
            } else {
                char.to_string()
            };
            if line.len() + escaped.len() > room {
                break;
            }
            line.insert_str(0, &escaped);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(reason: &str, words: &[u8]) -> FailureReport {
        FailureReport { reason: reason.to_owned(), words: words.to_vec() }
    }

    #[test]
    fn reports_come_back_and_damaged_ones_are_none() {
        for one in [report("rank 1 was killed", b"no licence\n\xff"), FailureReport::default()] {
            let bytes = one.encode();
            assert_eq!(FailureReport::decode(&bytes), Some(one.clone()));
            assert_eq!(FailureReport::read(&mut &bytes[..]), Some(one));
            for end in 0..bytes.len() {
                assert_eq!(FailureReport::decode(&bytes[..end]), None, "cut at {end}");
            }
        }
        assert_eq!(FailureReport::decode(&[255; 64]), None);
    }

    #[test]
    fn what_is_too_long_is_cut() {
        let long = report(&"r".repeat(2 * REASON), &[&[b'a'; WORDS][..], b"end"].concat());
        let cut = FailureReport::decode(&long.encode()).unwrap();
        assert_eq!((cut.reason.len(), cut.words.len()), (REASON, WORDS));
        assert!(cut.words.ends_with(b"aend"));
    }

    #[test]
    fn last_words_are_one_line_that_fits() {
        let said = report("", b"first\nno\tlicence: \x1b[31m\xc3\xa4\xff\n");
        assert_eq!(said.last_words(100), "first\\nno\\tlicence: \\u{1b}[31mä\u{fffd}");
        for room in 0..60 {
            let line = said.last_words(room);
            assert!(line.len() <= room && said.last_words(100).ends_with(&line), "{line:?}");
        }
    }
}
