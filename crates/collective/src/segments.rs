//! Segments of payloads that ranks read from each other: how they are cut, and how they are combined.

use crate::{CommView, ElementReduction};
use std::ops::Range;
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Work};

/// Minimum number of bytes from which two operands are combined in place. Shorter operands are copied first: if an operand is in
/// another processor's cache, a copy requests more of its lines at once. The value is a quarter of a first-level cache, so that the
/// copy is still in the cache.
const FUSED: usize = 8 << 10;

/// Combines the operands of `ranks` in their order into `result`; does nothing without ranks. The operand of this rank
/// is `own`, which `result` must not overlap. `operand` returns the place of another rank's operand, or reads it into the
/// memory that it gets. The combination goes from the highest rank down, so that it accumulates in `result` itself.
pub async fn fold<F: Fabric>(
    link: &CommView<F>,
    ranks: Range<usize>,
    own: Sge,
    result: Sge,
    op: &(impl ElementReduction + ?Sized),
    operand: impl AsyncFn(usize, Sge) -> Result<Sge, Fault>,
) -> Result<(), Fault> {
    let Some(last) = ranks.clone().next_back() else { return Ok(()) };
    if result.is_empty() {
        return Ok(());
    }
    let mut right = if last == link.rank { own } else { operand(last, result).await? };
    let is_result = |sge: Sge| sge.ptr() == result.ptr() && !sge.is_phantom();
    if (result.len() < FUSED || last == ranks.start) && !is_result(right) {
        result.copy_from(right);
        right = result;
    }
    let spare = link.endpoint.staging().take_for(result);
    for rank in (ranks.start..last).rev() {
        let left = if rank == link.rank { own } else { operand(rank, spare.sge()).await? };
        link.endpoint.fabric().charge(Work::Reduce(result.len()));
        match is_result(right) {
            true => op.combine(left, result),
            false => op.combine_into(left, right, result),
        }
        right = result;
    }
    Ok(())
}

/// Returns offset and length of part `t` of `len` bytes cut into parts of `most` bytes. The length is zero beyond the end.
pub fn part(len: usize, most: usize, t: usize) -> (usize, usize) {
    let at = (t * most).min(len);
    (at, most.min(len - at))
}

/// Tests whether two pieces of memory have bytes in common.
pub fn overlap(a: Sge, b: Sge) -> bool {
    let (first, second) = (a.ptr().addr(), b.ptr().addr());
    !a.is_empty() && !b.is_empty() && first < second + b.len() && second < first + a.len()
}

/// Returns offset and length of the slice of `len` bytes, in elements of `unit` bytes, on which rank `r` of `size` works.
pub fn slice(len: usize, unit: usize, r: usize, size: usize) -> (usize, usize) {
    let unit = unit.max(1);
    let at = |r: usize| len / unit * r / size * unit;
    (at(r), at(r + 1) - at(r))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_everything_in_whole_elements() {
        for size in 1..=64 {
            for (count, unit) in [(0, 8), (1, 8), (5, 12), (64, 1), (1000, 16), (7, 0)] {
                let len = count * unit;
                let mut at = 0;
                for r in 0..size {
                    let (offset, part) = slice(len, unit, r, size);
                    assert_eq!((offset, part % unit.max(1)), (at, 0), "{count} of {unit}, {size}");
                    at += part;
                }
                assert_eq!(at, len, "{count} of {unit}, {size} ranks");
            }
        }
    }
}
