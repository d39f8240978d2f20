//! Segments of payloads that ranks read from each other: cutting payloads into segments, and combining segments.

use crate::{CommView, ElementReduction, local_ops};
use std::ops::Range;
use weft_fabric::{Fabric, FabricExt, Fault, Sge, Staging, Work};

/// Minimum length in bytes of operands that are combined in place. Shorter operands are copied first, because a copy from another
/// processor's cache requests more of the operand's lines at once. The value is a quarter of a first-level cache, so that the copy
/// is still in the cache when it is combined.
const FUSED: usize = 8 << 10;

/// Combines the operands of `ranks` in their order into `result`. Does nothing if there are no ranks. The operand of this rank is
/// `own`, and `result` must not overlap `own`. `operand` returns the memory of another rank's operand, or reads the operand into
/// the memory that it gets as an argument. The combination starts with the highest ranks, so that it accumulates in `result`
/// itself.
pub async fn fold<F: Fabric>(
    link: &CommView<F>,
    ranks: Range<usize>,
    own: Sge,
    result: Sge,
    op: &dyn ElementReduction,
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

/// Returns part `t` of `data` cut into parts of `most` bytes. The part is empty beyond the end.
pub fn piece(data: Sge, most: usize, t: usize) -> Sge {
    let (at, len) = part(data.len(), most, t);
    data.part(at, len)
}

/// Copies `data` to other memory if `result` overlaps `data`.
pub fn copied_aside<F: Fabric>(link: &CommView<F>, data: Sge, result: Sge) -> Option<Staging> {
    let aside = overlap(data, result).then(|| local_ops::stage(link, data, data.len()))?;
    aside.sge().copy_from(data);
    Some(aside)
}

/// Tests whether two pieces of memory have bytes in common.
pub fn overlap(a: Sge, b: Sge) -> bool {
    let (first, second) = (a.ptr().addr(), b.ptr().addr());
    !a.is_empty() && !b.is_empty() && first < second + b.len() && second < first + a.len()
}

/// Returns offset and length of the slice on which rank `r` of `size` ranks works. The `len` bytes are cut into slices between
/// elements of `unit` bytes.
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
