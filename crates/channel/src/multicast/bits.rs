//! Set of the segments that have arrived. Most payloads have one segment, so the first 64 need no memory of their own.

#[derive(Debug, Default)]
pub struct Bits {
    first: u64,
    more: Vec<u64>,
}

impl Bits {
    /// Sets bit `i`. Returns false if it was set already.
    pub fn set(&mut self, i: u32) -> bool {
        let word = match i / 64 {
            0 => &mut self.first,
            word => {
                let word = word as usize - 1;
                if self.more.len() <= word {
                    self.more.resize(word + 1, 0);
                }
                &mut self.more[word]
            }
        };
        let bit = 1 << (i % 64);
        let fresh = *word & bit == 0;
        *word |= bit;
        fresh
    }

    fn word(&self, word: usize) -> u64 {
        if word == 0 { self.first } else { self.more.get(word - 1).copied().unwrap_or(0) }
    }

    /// Finds the first word that lacks one of the first `count` bits. Returns the number of the word's first bit, and the missing
    /// bits.
    pub fn missing(&self, count: u32) -> Option<(u32, u64)> {
        (0..count.div_ceil(64)).find_map(|word| {
            let there = (count - 64 * word).min(64);
            let lacks = !self.word(word as usize) & (u64::MAX >> (64 - there));
            (lacks != 0).then_some((64 * word, lacks))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let mut bits = Bits::default();
        assert_eq!(bits.missing(3), Some((0, 0b111)));
        assert!(bits.set(1) && !bits.set(1));
        assert_eq!(bits.missing(3), Some((0, 0b101)));
        for i in (0..200).filter(|&i| i != 130 && i != 131) {
            bits.set(i);
        }
        assert_eq!(bits.missing(130), None);
        assert_eq!(bits.missing(131), Some((128, 0b100)));
        assert_eq!(bits.missing(200), Some((128, 0b1100)));
        assert_eq!(bits.missing(201), Some((128, 0b1100)));
        assert_eq!(bits.missing(64), None);
    }
}
