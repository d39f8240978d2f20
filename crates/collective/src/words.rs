//! Words in the memory of messages, in the machine's byte order.

use std::borrow::Borrow;
use weft_fabric::{RemoteAddr, Sge};

/// Writes `words` to the first bytes of `to`.
pub fn write<W: Borrow<u64>>(words: impl IntoIterator<Item = W>, to: Sge) {
    for (i, word) in words.into_iter().enumerate() {
        to.part(8 * i, 8).fill(&word.borrow().to_ne_bytes());
    }
}

/// Returns word `i` of `from`.
pub fn read(from: Sge, i: usize) -> u64 {
    let mut bytes = [0; 8];
    from.part(8 * i, 8).read(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// Returns the first `N` words of `from`.
pub fn read_array<const N: usize>(from: Sge) -> [u64; N] {
    std::array::from_fn(|i| read(from, i))
}

/// Returns the remote address in the first words of `from`.
pub fn read_addr(from: Sge) -> RemoteAddr {
    RemoteAddr::from_words(read_array(from))
}
