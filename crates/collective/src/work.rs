//! What an algorithm does with memory itself: copies and reductions, which cost time, and room for
//! what comes between.

use crate::{Link, Reduce};
use weft_fabric::{Fabric, Sge, Staging, Work};

/// Copies `from` to `to` unless they are the same memory.
pub(crate) fn copy<F: Fabric>(link: &Link<F>, from: Sge, to: Sge) {
    if from.ptr() != to.ptr() {
        to.copy_from(from);
        link.endpoint.fabric().charge(Work::Copy(from.len()));
    }
}

/// `right = left op right`.
pub(crate) fn combine<F: Fabric>(
    link: &Link<F>,
    op: &(impl Reduce + ?Sized),
    left: Sge,
    right: Sge,
) {
    if !right.is_empty() {
        op.combine(left, right);
        link.endpoint.fabric().charge(Work::Reduce(right.len()));
    }
}

/// A temporary buffer of `len` bytes, without memory if `like` has none.
pub(crate) fn stage<F: Fabric>(link: &Link<F>, like: Sge, len: usize) -> Staging {
    match like.is_phantom() {
        true => link.endpoint.staging().take_for(Sge::phantom(len)),
        false => link.stage(len),
    }
}

/// Writes lengths as they travel: 8 bytes each, little endian.
pub(crate) fn write_lengths(to: Sge, lengths: impl IntoIterator<Item = usize>) {
    for (i, len) in lengths.into_iter().enumerate() {
        to.part(8 * i, 8).fill(&(len as u64).to_le_bytes());
    }
}

/// Reads them.
pub(crate) fn read_lengths(from: Sge) -> Vec<usize> {
    let mut bytes = vec![0; from.len()];
    from.read(&mut bytes);
    let length = |word: &[u8]| u64::from_le_bytes(word.try_into().expect("8 bytes")) as usize;
    bytes.chunks_exact(8).map(length).collect()
}
