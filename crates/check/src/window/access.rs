//! Accesses to windows, and their records for the target.

use crate::call_site::CallSite;
use crate::datatype::MemoryRange;
use crate::memory_use::BufferRange;

/// Kind of an access, as far as conflicts depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessKind {
    Put,
    Get,
    /// An atomic access with its operator. MPI_Compare_and_swap has none.
    Atomic(u64),
}

/// Operator of atomic accesses that only read.
const MPI_NO_OP: u64 = 0x3d;
/// Stands for the operator of MPI_Compare_and_swap.
pub const COMPARE_AND_SWAP: u64 = 0;

impl AccessKind {
    /// Returns true if two accesses of different origins may have the same bytes at the same time (MPI 5.0, section 12.7).
    pub fn is_compatible(self, other: AccessKind) -> bool {
        match (self, other) {
            (AccessKind::Get, AccessKind::Get) => true,
            (AccessKind::Get, AccessKind::Atomic(op))
            | (AccessKind::Atomic(op), AccessKind::Get) => op == MPI_NO_OP,
            // Locks in windows use MPI_Compare_and_swap together with MPI_REPLACE.
            (AccessKind::Atomic(a), AccessKind::Atomic(b)) => {
                a == b || [a, b].iter().any(|&op| op == MPI_NO_OP || op == COMPARE_AND_SWAP)
            }
            _ => false,
        }
    }

    /// Returns true if the access changes the target.
    pub fn writes(self) -> bool {
        !matches!(self, AccessKind::Get | AccessKind::Atomic(MPI_NO_OP))
    }

    fn words(self) -> [u64; 2] {
        match self {
            AccessKind::Put => [0, 0],
            AccessKind::Get => [1, 0],
            AccessKind::Atomic(op) => [2, op],
        }
    }

    fn new(words: [u64; 2]) -> AccessKind {
        match words[0] {
            0 => AccessKind::Put,
            1 => AccessKind::Get,
            _ => AccessKind::Atomic(words[1]),
        }
    }
}

/// Kind of the epoch of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckedEpoch {
    Fence,
    /// Between MPI_Win_start and MPI_Win_complete.
    Group,
    Passive {
        is_exclusive: bool,
    },
}

/// Memory of the origin that an access uses.
#[derive(Clone, Debug)]
pub struct LocalUse {
    /// Number of the operation.
    pub operation: u64,
    pub function: &'static str,
    pub ranges: Vec<BufferRange>,
    /// True if no other operation used the memory when the access began.
    pub is_free: bool,
    pub samples: Vec<u64>,
    /// Handle and variable of the request, whose completion ends the use, too.
    pub request: Option<(usize, usize)>,
}

/// An access to a window.
#[derive(Clone, Debug)]
pub struct CheckedAccess {
    /// Rank of the target in the window's group; for an access that arrived, not set.
    pub target: i32,
    pub kind: AccessKind,
    pub epoch: CheckedEpoch,
    /// Bytes relative to the window's base, sorted.
    pub blocks: Vec<MemoryRange>,
    /// False if the bytes are not known. Then there are no blocks, and the access may have any byte.
    pub has_blocks: bool,
    pub site: CallSite,
    /// Index of the function.
    pub function: u32,
    /// Origin's rank in MPI_COMM_WORLD.
    pub rank: i32,
    /// Hash of the data that MPI_Put writes to a single block, or 0.
    pub data: u64,
    /// True if the access is complete at the target.
    pub is_complete: bool,
    /// Number of messages that the origin may have sent before the access was complete.
    pub messages: u64,
    /// True if the origin could have sent a message after the access was complete.
    pub has_followers: bool,
    pub local: Option<LocalUse>,
}

impl CheckedAccess {
    /// Returns a read of the first bytes of a window.
    pub fn read(length: i64) -> CheckedAccess {
        CheckedAccess {
            target: 0,
            kind: AccessKind::Get,
            epoch: CheckedEpoch::Fence,
            blocks: vec![MemoryRange { offset: 0, length }],
            has_blocks: true,
            site: CallSite::default(),
            function: 0,
            rank: 0,
            data: 0,
            is_complete: false,
            messages: 0,
            has_followers: false,
            local: None,
        }
    }

    /// Notes that the access is complete at the target.
    pub fn complete(&mut self) {
        if !self.is_complete {
            self.is_complete = true;
            self.messages = super::messages();
        }
    }
}

/// Returns a hash of data, which is not 0.
pub fn hash_data(data: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ data.len() as u64;
    for chunk in data.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    hash.max(1)
}

/// Number of words of an access before its blocks.
const HEAD: usize = 9;

/// Returns accesses as words for their target. `messages` is the number of messages that this process may have sent so far.
pub fn encode<'a>(accesses: impl Iterator<Item = &'a CheckedAccess>, messages: u64) -> Vec<u64> {
    let mut words = Vec::new();
    for access in accesses {
        let epoch = match access.epoch {
            CheckedEpoch::Fence => 0,
            CheckedEpoch::Group => 1,
            CheckedEpoch::Passive { is_exclusive } => 2 + u64::from(is_exclusive),
        };
        let has_followers = access.is_complete && access.messages != messages;
        words.extend(access.kind.words());
        words.extend([
            epoch
                | u64::from(access.is_complete) << 8
                | u64::from(has_followers) << 9
                | u64::from(access.has_blocks) << 10,
            u64::from(access.function),
            access.rank as u64,
            access.site.module,
            access.site.offset,
            access.data,
            access.blocks.len() as u64,
        ]);
        words.extend(access.blocks.iter().flat_map(|b| [b.offset as u64, b.length as u64]));
    }
    words
}

/// Returns the accesses of words. Words that make no sense end the list.
pub fn decode(words: &[u64]) -> Vec<CheckedAccess> {
    let (mut all, mut rest) = (Vec::new(), words);
    while let Some((head, behind)) = rest.split_at_checked(HEAD) {
        let Some((blocks, next)) = behind.split_at_checked(2 * head[8] as usize) else { break };
        rest = next;
        all.push(CheckedAccess {
            target: 0,
            kind: AccessKind::new([head[0], head[1]]),
            epoch: match head[2] & 0xff {
                0 => CheckedEpoch::Fence,
                1 => CheckedEpoch::Group,
                n => CheckedEpoch::Passive { is_exclusive: n == 3 },
            },
            blocks: blocks
                .chunks_exact(2)
                .map(|block| MemoryRange { offset: block[0] as i64, length: block[1] as i64 })
                .collect(),
            has_blocks: head[2] >> 10 & 1 == 1,
            site: CallSite { module: head[5], offset: head[6] },
            function: head[3] as u32,
            rank: head[4] as i32,
            data: head[7],
            is_complete: head[2] >> 8 & 1 == 1,
            messages: 0,
            has_followers: head[2] >> 9 & 1 == 1,
            local: None,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_operators_and_reads_are_compatible() {
        let (sum, max) = (AccessKind::Atomic(0x24), AccessKind::Atomic(0x23));
        let (none, swap) = (AccessKind::Atomic(MPI_NO_OP), AccessKind::Atomic(COMPARE_AND_SWAP));
        assert!(AccessKind::Get.is_compatible(AccessKind::Get));
        assert!(!AccessKind::Get.is_compatible(AccessKind::Put));
        assert!(!AccessKind::Put.is_compatible(AccessKind::Put));
        assert!(sum.is_compatible(sum) && sum.is_compatible(none) && sum.is_compatible(swap));
        assert!(!sum.is_compatible(max) && !sum.is_compatible(AccessKind::Put));
        assert!(none.is_compatible(AccessKind::Get) && !none.is_compatible(AccessKind::Put));
        assert!(!sum.is_compatible(AccessKind::Get));
    }

    #[test]
    fn records_travel_unchanged() {
        let access = CheckedAccess {
            has_blocks: true,
            target: 0,
            kind: AccessKind::Atomic(0x24),
            epoch: CheckedEpoch::Passive { is_exclusive: true },
            blocks: vec![
                MemoryRange { offset: 8, length: 4 },
                MemoryRange { offset: 16, length: 4 },
            ],
            site: CallSite { module: 7, offset: 9 },
            function: 3,
            rank: 5,
            data: 11,
            is_complete: true,
            messages: 0,
            has_followers: false,
            local: None,
        };
        let words = encode([&access, &access].into_iter(), 0);
        let back = decode(&words);
        assert_eq!(back.len(), 2);
        assert_eq!(format!("{:?}", back[1]), format!("{access:?}"));
        assert_eq!(decode(&words[..words.len() - 1]).len(), 1);
        assert!(decode(&encode([&access].into_iter(), 1))[0].has_followers);
    }
}
