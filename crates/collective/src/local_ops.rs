//! Local operations of an algorithm: copies and reductions, which cost simulated time, and temporary buffers.

use crate::{CommView, ElementReduction, words};
use weft_fabric::{Fabric, FabricExt, Sge, Staging, Work};

/// Copies `from` to `to` unless both are the same memory. Phantom memory is always copied, because its addresses mean nothing.
pub(crate) fn copy<F: Fabric>(link: &CommView<F>, from: Sge, to: Sge) {
    if from.is_phantom() || from.ptr() != to.ptr() {
        to.copy_from(from);
        link.endpoint.fabric().charge(Work::Copy(from.len()));
    }
}

/// Number of bytes to copy between two calls of message progress.
const LOOK: usize = 256 << 10;

/// Copies `from` to `to` while messages make progress, because peers need an answer before they can copy. Costs no simulated time,
/// since the copy overlaps a transfer.
pub(crate) fn copy_beside<F: Fabric>(link: &CommView<F>, from: Sge, to: Sge) {
    let mut at = 0;
    while to.len() - at > LOOK && !to.is_phantom() {
        to.part(at, LOOK).copy_from(from.part(at, LOOK));
        at += LOOK;
        link.endpoint.progress_between();
    }
    to.part(at, to.len() - at).copy_from(from.part(at, to.len() - at));
}

/// Computes `right = left op right`.
pub(crate) fn combine<F: Fabric>(
    link: &CommView<F>,
    op: &dyn ElementReduction,
    left: Sge,
    right: Sge,
) {
    if !right.is_empty() {
        op.combine(left, right);
        link.endpoint.fabric().charge(Work::Reduce(right.len()));
    }
}

/// Returns a temporary buffer of `len` bytes, without memory if `like` has no memory.
pub(crate) fn stage<F: Fabric>(link: &CommView<F>, like: Sge, len: usize) -> Staging {
    match like.is_phantom() {
        true => link.endpoint.staging().take_for(Sge::phantom(len)),
        false => link.stage(len),
    }
}

/// Writes lengths in their wire format: a word each.
pub(crate) fn write_lengths(to: Sge, lengths: impl IntoIterator<Item = usize>) {
    words::write(lengths.into_iter().map(|len| len as u64), to);
}

/// Reads lengths in the format of [`write_lengths`].
pub(crate) fn read_lengths(from: Sge) -> Vec<usize> {
    (0..from.len() / 8).map(|i| words::read(from, i) as usize).collect()
}
