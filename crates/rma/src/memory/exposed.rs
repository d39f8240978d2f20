//! Information about each rank's part, exchanged when the window is made.

use crate::control::layout::RAILS;
use weft_fabric::RemoteAddr;

/// Addresses of a rank's memory and control words. The ranks exchange them once. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExposedWindow {
    /// Address of the memory in the fabric of `holder`.
    pub memory: RemoteAddr,
    /// Length of the memory.
    pub len: u64,
    /// Displacement unit.
    pub unit: u64,
    /// Address of the control words ([`crate::control`]).
    pub control: RemoteAddr,
    /// The rank in whose fabric memory the part lies: the rank itself, except in shared windows.
    pub holder: u64,
    /// First of the rank's two immediates ([`crate::epochs::fence`]).
    pub immediate: u32,
    /// True if the fabric allocated the rank's memory.
    pub within: bool,
    /// True if adapters update the words of the memory ([`crate::access::adapter_atomics`]).
    pub adapters: bool,
    /// Number of rails with separate control words, at least 1.
    pub rails: usize,
}

/// Number of words exchanged per rank.
pub const WORDS: usize = 2 * RemoteAddr::WORDS + 4;

/// Returns the words of a rank that could not allocate its part of `len` bytes, with the class of the error. No [`ExposedWindow`]
/// has these words.
pub fn nothing(len: usize, class: i32) -> [u64; WORDS] {
    let mut words = [u64::MAX; WORDS];
    words[0] = len as u64;
    words[1] = class as u64;
    words
}

impl ExposedWindow {
    pub fn encode(&self) -> [u64; WORDS] {
        let [a, b, c, d] = self.memory.words();
        let [e, f, g, h] = self.control.words();
        let flags = u64::from(self.within)
            | u64::from(self.immediate) << 1
            | u64::from(self.adapters) << 33
            | (self.rails as u64) << 34;
        [a, b, c, d, e, f, g, h, self.len, self.unit, self.holder, flags]
    }

    /// Decodes and checks a peer's words. Returns `None` if the words are impossible in a window of `size` ranks.
    pub fn decode(words: [u64; WORDS], size: usize) -> Option<ExposedWindow> {
        let [a, b, c, d, e, f, g, h, len, unit, holder, flags] = words;
        let fits = isize::try_from(len).is_ok() && i64::try_from(unit).is_ok_and(|unit| unit > 0);
        let rails = (flags >> 34) as usize;
        (fits && holder < size as u64 && (1..=RAILS).contains(&rails)).then_some(ExposedWindow {
            memory: RemoteAddr::from_words([a, b, c, d]),
            control: RemoteAddr::from_words([e, f, g, h]),
            len,
            unit,
            holder,
            immediate: (flags >> 1) as u32,
            within: flags & 1 == 1,
            adapters: flags >> 33 & 1 == 1,
            rails,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::Key;

    #[test]
    fn what_is_shown_is_read_back_and_checked() {
        let shown = ExposedWindow {
            memory: RemoteAddr { addr: 1, key: Key([2, 3, 4]) },
            control: RemoteAddr { addr: 5, key: Key([6, 7, 8]) },
            len: 100,
            unit: 8,
            holder: 1,
            immediate: u32::MAX,
            within: true,
            adapters: true,
            rails: 2,
        };
        let words = shown.encode();
        assert_eq!(ExposedWindow::decode(words, 2), Some(shown));
        assert_eq!(ExposedWindow::decode(words, 1), None, "a holder beyond the window");
        for (at, wrong) in
            [(8, u64::MAX), (9, 0), (9, u64::MAX), (11, 0), (11, (RAILS as u64 + 1) << 34)]
        {
            let mut words = words;
            words[at] = wrong;
            assert_eq!(ExposedWindow::decode(words, 2), None, "word {at}");
        }
    }
}
