//! Payload: real bytes that differ between messages, or only sizes.

use weft_collective::ElementReduction;
use weft_datatype::{Basic, ElementSpacing, PredefinedOp};
use weft_fabric::{Sge, Staging};

/// A rank's payload buffer.
pub struct PayloadBuffer {
    /// Memory of the payload; `None` if the payload has only a size.
    _memory: Option<Staging>,
    sge: Sge,
}

impl PayloadBuffer {
    pub fn real(memory: Staging) -> PayloadBuffer {
        PayloadBuffer { sge: memory.sge(), _memory: Some(memory) }
    }

    pub fn phantom(len: usize) -> PayloadBuffer {
        PayloadBuffer { _memory: None, sge: Sge::phantom(len) }
    }

    pub fn all(&self) -> Sge {
        self.sge
    }

    /// Returns block `i`, of `bytes` bytes.
    pub fn block(&self, i: usize, bytes: usize) -> Sge {
        self.sge.part(i * bytes, bytes)
    }
}

/// Returns the bytes of a key. Two keys almost never have the same bytes.
fn expected(key: u64, len: usize) -> Vec<u8> {
    let mut state = key;
    let mut bytes = Vec::with_capacity(len.next_multiple_of(8));
    while bytes.len() < len {
        // SplitMix64 (Steele, Lea and Flood 2014).
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(word ^ word >> 31).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Returns the key of the data that `rank` sends as its `part` of repetition `lap`.
pub fn key(rank: usize, part: usize, lap: usize) -> u64 {
    (rank as u64) << 40 ^ (part as u64) << 20 ^ lap as u64
}

/// Writes the bytes of `key`.
pub fn fill(to: Sge, key: u64) {
    if !to.is_phantom() {
        to.fill(&expected(key, to.len()));
    }
}

/// Returns true if `from` holds the bytes of `key`, or has only a size.
pub fn holds(from: Sge, key: u64) -> bool {
    from.is_phantom() || bytes(from) == expected(key, from.len())
}

fn bytes(from: Sge) -> Vec<u8> {
    let mut bytes = vec![0; from.len()];
    from.read(&mut bytes);
    bytes
}

/// Sets 32-bit integers to `first`, `first + 1`, ...
pub fn fill_numbers(to: Sge, first: i32) {
    if to.is_phantom() {
        return;
    }
    let number = |i| first.wrapping_add(i as i32).to_ne_bytes();
    to.fill(&(0..to.len() / 4).flat_map(number).collect::<Vec<u8>>());
}

/// Returns true if the integers are sums over `ranks` ranks `r` of `fill_numbers(.., r + lap)`, or if `from` has only a size.
pub fn holds_sums(from: Sge, ranks: usize, lap: usize) -> bool {
    let all = (ranks * (ranks - 1) / 2) as i32;
    let sum = |i: usize| all.wrapping_add((ranks as i32).wrapping_mul((lap + i) as i32));
    let numbers = bytes(from);
    let numbers = numbers.chunks_exact(4);
    from.is_phantom() || numbers.enumerate().all(|(i, n)| n == sum(i).to_ne_bytes())
}

/// MPI_SUM of MPI_INT.
pub struct IntSum;

impl ElementReduction for IntSum {
    fn combine(&self, left: Sge, right: Sge) {
        if !left.is_phantom() && !right.is_phantom() {
            let (op, int, count) = (PredefinedOp::Sum, Basic::INT, right.len() / 4);
            op.apply(int, ElementSpacing::Packed, count, left, right)
                .expect("MPI defines sums of integers");
        }
    }

    fn commutes(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric::StagingPool;

    #[test]
    fn other_data_are_told_apart() {
        let pool = StagingPool::default();
        let memory = pool.take(21);
        fill(memory.sge(), key(1, 2, 3));
        assert!(holds(memory.sge(), key(1, 2, 3)));
        for other in [key(2, 2, 3), key(1, 1, 3), key(1, 2, 4)] {
            assert!(!holds(memory.sge(), other));
        }
        memory.sge().part(20, 1).fill(&[!bytes(memory.sge())[20]]);
        assert!(!holds(memory.sge(), key(1, 2, 3)));
        assert!(holds(Sge::phantom(8), 5));
    }

    #[test]
    fn sums_are_sums() {
        let pool = StagingPool::default();
        let all: Vec<_> = (0..5).map(|_| pool.take(12)).collect();
        for (rank, memory) in all.iter().enumerate() {
            fill_numbers(memory.sge(), (rank + 7) as i32);
        }
        for memory in &all[1..] {
            assert!(!holds_sums(all[0].sge(), 5, 7));
            IntSum.combine(memory.sge(), all[0].sge());
        }
        assert!(holds_sums(all[0].sge(), 5, 7));
    }
}
