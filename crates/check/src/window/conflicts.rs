//! Conflicts between accesses to a window.

use super::{AccessEpoch, AccessKind, WindowAccess};
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
    earlier: &'a [WindowAccess],
    new: &WindowAccess,
) -> Option<(&'a WindowAccess, i64)> {
    let is_ordered = |other: &WindowAccess| {
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

/// Returns true if nothing can have ordered two accesses of different origins.
fn is_concurrent(a: &WindowAccess, b: &WindowAccess, compares_passive: bool) -> bool {
    match (a.epoch, b.epoch) {
        (AccessEpoch::Fence, AccessEpoch::Fence) | (AccessEpoch::Group, AccessEpoch::Group) => true,
        (
            AccessEpoch::Passive { is_exclusive: one },
            AccessEpoch::Passive { is_exclusive: other },
        ) => compares_passive && !one && !other && !a.has_followers && !b.has_followers,
        _ => false,
    }
}

/// Returns the pairs of accesses of different origins that conflict, as places in the list, each with the first byte.
pub fn concurrent_conflicts(
    accesses: &[WindowAccess],
    compares_passive: bool,
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
            let conflicts = a.rank != b.rank
                && !a.kind.is_compatible(b.kind)
                && is_concurrent(a, b, compares_passive);
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
    accesses: &[WindowAccess],
    before: &[u8],
    after: &[u8],
) -> Option<(usize, i64)> {
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
pub fn single_put(accesses: &[WindowAccess], place: usize) -> bool {
    let put = &accesses[place];
    put.kind == AccessKind::Put
        && put.data != 0
        && put.blocks.len() == 1
        && !accesses.iter().enumerate().any(|(other, access)| {
            other != place && access.kind.writes() && overlap(&access.blocks, &put.blocks).is_some()
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call_site::CallSite;

    const SHARED: AccessEpoch = AccessEpoch::Passive { is_exclusive: false };

    fn access(rank: i32, kind: AccessKind, epoch: AccessEpoch, at: (i64, i64)) -> WindowAccess {
        WindowAccess {
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
        let put = |rank, at| access(rank, AccessKind::Put, AccessEpoch::Fence, at);
        let all = [put(0, (0, 8)), put(1, (4, 8)), put(1, (12, 4)), put(2, (16, 4))];
        assert_eq!(concurrent_conflicts(&all, true), [(0, 1, 4)]);
        let own = [put(0, (0, 8)), put(0, (4, 8))];
        assert!(concurrent_conflicts(&own, true).is_empty());
        assert_eq!(own_conflict(&own[..1], &own[1]).map(|(_, byte)| byte), Some(4));
    }

    #[test]
    fn passive_accesses_that_a_message_may_have_ordered_do_not_conflict() {
        let put = |rank| access(rank, AccessKind::Put, SHARED, (0, 8));
        assert_eq!(concurrent_conflicts(&[put(0), put(1)], true).len(), 1);
        assert!(concurrent_conflicts(&[put(0), put(1)], false).is_empty());
        let followed = WindowAccess { has_followers: true, ..put(1) };
        assert!(concurrent_conflicts(&[put(0), followed], true).is_empty());
        let epoch = AccessEpoch::Passive { is_exclusive: true };
        assert!(concurrent_conflicts(&[put(0), WindowAccess { epoch, ..put(1) }], true).is_empty());
    }

    #[test]
    fn atomic_accesses_of_one_origin_are_ordered() {
        let of = |kind| access(0, kind, SHARED, (0, 8));
        let (sum, max) = (of(AccessKind::Atomic(0x24)), of(AccessKind::Atomic(0x23)));
        assert!(own_conflict(std::slice::from_ref(&sum), &max).is_none());
        assert!(own_conflict(std::slice::from_ref(&sum), &of(AccessKind::Get)).is_some());
        let complete = WindowAccess { is_complete: true, ..sum };
        assert!(own_conflict(&[complete], &of(AccessKind::Get)).is_none());
    }

    #[test]
    fn bytes_that_are_only_read_must_not_change() {
        let (before, mut after) = (vec![0u8; 32], vec![0u8; 32]);
        after[9] = 1;
        let get = access(0, AccessKind::Get, AccessEpoch::Fence, (8, 4));
        let put = access(1, AccessKind::Put, AccessEpoch::Fence, (9, 1));
        assert_eq!(uncovered_change(std::slice::from_ref(&get), &before, &after), Some((0, 9)));
        assert_eq!(uncovered_change(&[get, put], &before, &after), None);
    }

    #[test]
    fn a_put_is_compared_if_it_is_the_only_writer() {
        let put = |rank, at| access(rank, AccessKind::Put, AccessEpoch::Fence, at);
        let all = [put(0, (0, 8)), put(1, (4, 8)), put(1, (16, 4))];
        assert_eq!([0, 1, 2].map(|place| single_put(&all, place)), [false, false, true]);
    }
}
