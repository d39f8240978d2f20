//! Conflicts between accesses to a window.

use super::{AccessKind, CheckedAccess, CheckedEpoch};
use crate::datatype::MemoryRange;

/// Maximum number of earlier accesses of an origin with which a new access is compared.
const EARLIER: usize = 1024;

/// Returns the first byte that two sorted lists of blocks have in common.
pub fn overlap(a: &[MemoryRange], b: &[MemoryRange]) -> Option<i64> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(mine), Some(theirs)) = (a.peek(), b.peek()) {
        if mine.offset + mine.length <= theirs.offset {
            a.next();
        } else if theirs.offset + theirs.length <= mine.offset {
            b.next();
        } else {
            return Some(mine.offset.max(theirs.offset));
        }
    }
    None
}

/// Returns the first earlier access of the same origin that conflicts with a new access, with the first byte. Atomic accesses of one origin
/// are ordered.
pub fn own_conflict<'a>(
    earlier: &'a [CheckedAccess],
    new: &CheckedAccess,
) -> Option<(&'a CheckedAccess, i64)> {
    let is_ordered = |other: &CheckedAccess| {
        matches!((other.kind, new.kind), (AccessKind::Atomic(_), AccessKind::Atomic(_)))
    };
    earlier
        .iter()
        .rev()
        .take(EARLIER)
        .filter(|other| other.target == new.target && !other.is_complete)
        .filter(|other| !is_ordered(other) && !other.kind.is_compatible(new.kind))
        .find_map(|other| overlap(&other.blocks, &new.blocks).map(|byte| (other, byte)))
}

/// Rule for accesses of different origins in passive epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassiveRule {
    Compare,
    /// Processes may have ordered the accesses by loads and stores of shared memory.
    Skip,
}

/// Returns true if nothing can have ordered two accesses of different origins.
fn is_concurrent(a: &CheckedAccess, b: &CheckedAccess, passive: PassiveRule) -> bool {
    match (a.epoch, b.epoch) {
        (CheckedEpoch::Fence, CheckedEpoch::Fence) | (CheckedEpoch::Group, CheckedEpoch::Group) => {
            true
        }
        (
            CheckedEpoch::Passive { is_exclusive: one },
            CheckedEpoch::Passive { is_exclusive: other },
        ) => {
            passive == PassiveRule::Compare
                && !one
                && !other
                && !a.has_followers
                && !b.has_followers
        }
        _ => false,
    }
}

/// Returns the pairs of accesses of different origins that conflict, as places in the list, each with the first byte.
pub fn concurrent_conflicts(
    accesses: &[CheckedAccess],
    passive: PassiveRule,
) -> Vec<(usize, usize, i64)> {
    let mut starts: Vec<(MemoryRange, usize)> = Vec::new();
    for (place, access) in accesses.iter().enumerate() {
        starts.extend(access.blocks.iter().map(|block| (*block, place)));
    }
    starts.sort();
    let mut found: Vec<(usize, usize, i64)> = Vec::new();
    let mut open: Vec<(i64, usize)> = Vec::new();
    for (block, place) in starts {
        open.retain(|&(end, _)| end > block.offset);
        for &(_, other) in &open {
            let (a, b) = (&accesses[place], &accesses[other]);
            let conflicts =
                a.rank != b.rank && !a.kind.is_compatible(b.kind) && is_concurrent(a, b, passive);
            let pair = (place.min(other), place.max(other));
            if conflicts && !found.iter().any(|f| (f.0, f.1) == pair) {
                found.push((pair.0, pair.1, block.offset));
            }
        }
        open.push((block.offset + block.length, place));
    }
    found
}

/// Returns the first byte in blocks that only reads have, and that differs between two states of the window's memory.
pub fn uncovered_change(
    accesses: &[CheckedAccess],
    before: &[u8],
    after: &[u8],
) -> Option<(usize, i64)> {
    if accesses.iter().any(|access| access.kind.writes() && !access.has_blocks) {
        return None;
    }
    let is_written = |byte: i64| {
        let one = [MemoryRange { offset: byte, length: 1 }];
        accesses
            .iter()
            .any(|access| access.kind.writes() && overlap(&access.blocks, &one).is_some())
    };
    let reads = accesses.iter().enumerate().filter(|(_, access)| access.kind == AccessKind::Get);
    for (place, access) in reads {
        for byte in access.blocks.iter().flat_map(|b| b.offset..b.offset + b.length) {
            let at = usize::try_from(byte).ok();
            let (Some(old), Some(new)) =
                (at.and_then(|at| before.get(at)), at.and_then(|at| after.get(at)))
            else {
                break;
            };
            if old != new && !is_written(byte) {
                return Some((place, byte));
            }
        }
    }
    None
}

/// Returns true if an access is a put to a single block with known data, which no other access of the list writes.
pub fn single_put(accesses: &[CheckedAccess], place: usize) -> bool {
    let put = &accesses[place];
    put.kind == AccessKind::Put
        && put.data != 0
        && put.blocks.len() == 1
        && !accesses.iter().enumerate().any(|(other, access)| {
            let may_overlap =
                || !access.has_blocks || overlap(&access.blocks, &put.blocks).is_some();
            other != place && access.kind.writes() && may_overlap()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_site::CallSite;

    const SHARED: CheckedEpoch = CheckedEpoch::Passive { is_exclusive: false };

    fn access(rank: i32, kind: AccessKind, epoch: CheckedEpoch, at: (i64, i64)) -> CheckedAccess {
        CheckedAccess {
            has_blocks: true,
            target: 0,
            kind,
            epoch,
            blocks: vec![MemoryRange { offset: at.0, length: at.1 }],
            site: CallSite::default(),
            function: 0,
            rank,
            data: 1,
            is_complete: false,
            messages: 0,
            has_followers: false,
            local: None,
        }
    }

    #[test]
    fn puts_of_two_origins_to_the_same_bytes_conflict() {
        let put = |rank, at| access(rank, AccessKind::Put, CheckedEpoch::Fence, at);
        let all = [put(0, (0, 8)), put(1, (4, 8)), put(1, (12, 4)), put(2, (16, 4))];
        assert_eq!(concurrent_conflicts(&all, PassiveRule::Compare), [(0, 1, 4)]);
        let own = [put(0, (0, 8)), put(0, (4, 8))];
        assert!(concurrent_conflicts(&own, PassiveRule::Compare).is_empty());
        assert_eq!(own_conflict(&own[..1], &own[1]).map(|(_, byte)| byte), Some(4));
    }

    #[test]
    fn passive_accesses_that_a_message_may_have_ordered_do_not_conflict() {
        let put = |rank| access(rank, AccessKind::Put, SHARED, (0, 8));
        assert_eq!(concurrent_conflicts(&[put(0), put(1)], PassiveRule::Compare).len(), 1);
        assert!(concurrent_conflicts(&[put(0), put(1)], PassiveRule::Skip).is_empty());
        let followed = CheckedAccess { has_followers: true, ..put(1) };
        assert!(concurrent_conflicts(&[put(0), followed], PassiveRule::Compare).is_empty());
        let epoch = CheckedEpoch::Passive { is_exclusive: true };
        assert!(
            concurrent_conflicts(
                &[put(0), CheckedAccess { epoch, ..put(1) }],
                PassiveRule::Compare
            )
            .is_empty()
        );
    }

    #[test]
    fn atomic_accesses_of_one_origin_are_ordered() {
        let of = |kind| access(0, kind, SHARED, (0, 8));
        let (sum, max) = (of(AccessKind::Atomic(0x24)), of(AccessKind::Atomic(0x23)));
        assert!(own_conflict(std::slice::from_ref(&sum), &max).is_none());
        assert!(own_conflict(std::slice::from_ref(&sum), &of(AccessKind::Get)).is_some());
        let complete = CheckedAccess { is_complete: true, ..sum };
        assert!(own_conflict(&[complete], &of(AccessKind::Get)).is_none());
    }

    #[test]
    fn bytes_that_are_only_read_must_not_change() {
        let (before, mut after) = (vec![0u8; 32], vec![0u8; 32]);
        after[9] = 1;
        let get = access(0, AccessKind::Get, CheckedEpoch::Fence, (8, 4));
        let put = access(1, AccessKind::Put, CheckedEpoch::Fence, (9, 1));
        assert_eq!(uncovered_change(std::slice::from_ref(&get), &before, &after), Some((0, 9)));
        assert_eq!(uncovered_change(&[get, put], &before, &after), None);
    }

    #[test]
    fn a_put_is_compared_if_it_is_the_only_writer() {
        let put = |rank, at| access(rank, AccessKind::Put, CheckedEpoch::Fence, at);
        let all = [put(0, (0, 8)), put(1, (4, 8)), put(1, (16, 4))];
        assert_eq!([0, 1, 2].map(|place| single_put(&all, place)), [false, false, true]);
    }
}
