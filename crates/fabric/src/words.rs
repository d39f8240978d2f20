//! Words in bytes that processes exchange.

/// Returns the little-endian word at byte `at`.
///
/// # Panics
/// If `bytes` ends before the word does.
#[inline]
pub fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]))
}

/// Writes `words` to the first bytes, each in little-endian order.
#[inline]
pub fn put_words(bytes: &mut [u8], words: impl IntoIterator<Item = u64>) {
    for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
        to.copy_from_slice(&word.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back() {
        let mut bytes = [9; 20];
        put_words(&mut bytes, [1, u64::MAX - 1]);
        assert_eq!((word_at(&bytes, 0), word_at(&bytes, 8)), (1, u64::MAX - 1));
        assert_eq!((bytes[0], &bytes[16..]), (1, &[9; 4][..]));
    }
}
