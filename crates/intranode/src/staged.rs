//! Copies in and out of staging buffers that another rank of the machine sees, in the best way for the distance between the ranks'
//! caches ([`weft_fabric::Copies`]).
//!
//! ```text
//!                         short, or near              long and far
//!   writer                through the caches,         the first page through the caches, the rest past them, where a line
//!                         all lines requested         that another rank has read is slow to write; else as if near
//!   one reader            copies, and gives the       copies data that came through the caches many pages at once,
//!                         lines back if they are      and gives the lines back
//!                         written again soon
//! ```
//! If each rank has a separate processor, a reader times accesses to some of the lines before it copies, and so learns its distance
//! to the writer. Otherwise a reader learns the distance from the time that copies of some blocks take. A writer demotes the lines
//! of short payloads after it has notified the reader. Then the reader need not get the payload out of the writer's cache.

use crate::interleaved::{self, copy_interleaved};
use crate::lines::{CacheLines, CachePath};
use std::time::Instant;
use weft_fabric::copies::PAGE;
use weft_fabric::{Copies, Sge};

/// Copies `from` to `to`, which has the same length, for a single other rank that reads the copy ([`read`]). If `past` is set, the
/// copy goes past the caches. Otherwise it goes in the best way for the distance between the ranks. Then the first page always goes
/// through the caches, because the reader learns its distance from this page.
pub fn write(copies: &Copies, to: Sge, from: Sge, past: bool) {
    let len = from.len();
    let head = if !past && copies.is_past_for_one(len) { PAGE } else { len };
    let path = if past { CachePath::Past } else { CachePath::Through };
    to.part(0, head).copy_for_others(from.part(0, head), path, copies);
    if head < len {
        copies.count_past();
        let (to, from) = (to.part(head, len - head), from.part(head, len - head));
        to.copy_for_others(from, CachePath::Past, copies);
    }
}

/// Demotes the lines of `memory`, after this rank has notified another rank of its writes there.
#[inline]
pub fn told_of(copies: &Copies, memory: Sge) {
    if !memory.is_empty() && copies.hands_over() {
        memory.hand_over_lines();
    }
}

/// Copies data that another rank has just written, and will write again, in blocks that stay in the nearest cache until their lines
/// are taken ([`CacheLines::take_lines`]). Lines are taken if the caches are far from each other, or if `soon` is set. `soon` means
/// that the memory is written again while the lines would still be in this processor's cache.
pub fn read(copies: &Copies, into: Sge, from: Sge, soon: bool) {
    if !copies.may_be_past() {
        return by_blocks(copies, into, from, BlockCopies { soon, learns: true });
    }
    // Data that may have gone past the caches do not reveal the distance to the writer.
    let (head, learns) = (PAGE.min(into.len()), !copies.looks_alone());
    sense_sent(copies, from);
    by_blocks(copies, into.part(0, head), from.part(0, head), BlockCopies { soon, learns });
    read_more(copies, into.part(head, into.len() - head), from.part(head, from.len() - head), soon);
}

/// Copies the data after the first block as [`read`] does. If data may have gone past the caches, they do not reveal the distance,
/// and the time of the copy is ignored.
pub fn read_more(copies: &Copies, into: Sge, from: Sge, soon: bool) {
    match copies.is_past_for_one(into.len()) {
        // If the data went past the caches, it is useless to take their lines, because the writer gets them back no faster.
        true => into.copy_from(from),
        false => {
            let learns = !copies.may_be_past();
            by_blocks(copies, into, from, BlockCopies { soon, learns })
        }
    }
}

/// Copies of several blocks.
#[derive(Clone, Copy)]
struct BlockCopies {
    /// True if the memory is written again soon.
    soon: bool,
    /// True if the time of the copies reveals the distance to the writer.
    learns: bool,
}

fn by_blocks(copies: &Copies, into: Sge, from: Sge, how: BlockCopies) {
    let mut at = 0;
    while into.len() - at >= interleaved::LEAST && copies.interleaves() && !copies.is_sample() {
        let next = (into.len() - at).min(interleaved::MOST);
        let block = from.part(at, next);
        copy_interleaved(into.part(at, next), block);
        give_back(copies, block);
        at += next;
    }
    while at < into.len() {
        let next = (into.len() - at).min(PAGE);
        let block = from.part(at, next);
        copy_block(copies, into.part(at, next), block, how);
        if how.soon || copies.is_far() {
            give_back(copies, block);
        }
        at += next;
    }
}

fn copy_block(copies: &Copies, into: Sge, from: Sge, how: BlockCopies) {
    if how.learns && copies.looks_alone() {
        sense_sent(copies, from);
    } else if how.learns && from.len() >= PAGE && copies.is_sample() {
        return timed(copies, into, from);
    }
    into.copy_from(from);
}

fn timed(copies: &Copies, into: Sge, from: Sge) {
    let start = Instant::now();
    into.copy_from(from);
    copies.note_copy(from.len(), start.elapsed());
}

/// Takes the lines of `read` for this processor, if that pays off. This rank has read this memory, and another rank has written it
/// and will write it again. If the two ranks demote lines for each other, taking lines gains nothing, because the writer requests
/// all lines together.
#[inline]
pub fn give_back(copies: &Copies, read: Sge) {
    let through = if copies.is_past_for_one(read.len()) { PAGE } else { read.len() };
    if copies.ways().gives_back && !copies.hands_over() {
        read.part(0, through).take_lines();
    }
}

/// Copies data that another rank has written for several readers, in the best way for the distance between the ranks. Returns true
/// if the copy was slow. The caller must report this to the writer ([`Copies::told`]).
pub fn read_shared(copies: &Copies, into: Sge, from: Sge) -> bool {
    if !copies.times_shared(into.len()) {
        copy_shared(copies, into, from);
        return false;
    }
    let start = Instant::now();
    copy_shared(copies, into, from);
    copies.is_slow(into.len(), start.elapsed())
}

/// Copies as [`read_shared`] does, but ignores the time of the copy.
pub fn copy_shared(copies: &Copies, into: Sge, from: Sge) {
    match into.len() >= interleaved::LEAST && copies.interleaves() {
        true => copy_interleaved(into, from),
        false => into.copy_from(from),
    }
}

/// Learns the distance from data that another rank has just written and this rank is about to read in place. If this rank learns
/// from copies, every Nth call copies a block to `spare`, which is as long as `from`.
pub fn sense(copies: &Copies, spare: Sge, from: Sge) {
    if copies.looks_alone() {
        sense_sent(copies, from);
    } else if from.len() >= PAGE && copies.is_sample() {
        timed(copies, spare.part(0, PAGE), from.part(0, PAGE));
    }
}

/// Learns the distance from data that another rank has just sent and this rank is about to copy. Times accesses to the lines of the
/// data if [`Copies::looks`] returns true.
#[inline]
pub fn sense_sent(copies: &Copies, from: Sge) {
    if copies.looks(from.len()) {
        let seen = from.part(0, from.len().min(PAGE));
        let start = Instant::now();
        seen.look_at_lines();
        copies.note_look(seen.len(), start.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weft_fabric::copies::{Caches, PastCaches};
    use weft_fabric::{ByDistance, CopyModel};

    /// Returns models by which each way pays off, both with near caches and with far caches.
    fn models() -> impl Iterator<Item = CopyModel> {
        let all = |cost| ByDistance { shared: cost, apart: cost };
        (0..16).map(move |bits| {
            let cost = |bit: u32, dear: f64| all(if bits >> bit & 1 == 1 { 0.0 } else { dear });
            CopyModel {
                rewrite: all(30.0),
                rewrite_asked: cost(0, 30.0),
                rewrite_returned: cost(1, 30.0),
                fetch_pages: cost(2, 0.15),
                past: if bits >> 3 & 1 == 1 { 0.0 } else { 1.0 },
                ..CopyModel::GENERIC
            }
        })
    }

    #[test]
    fn every_way_copies_every_byte() {
        let lens = if cfg!(miri) { vec![100, 9000] } else { vec![1, 100, 4096, 9000, 70_001] };
        for (model, len) in models().flat_map(|m| lens.iter().map(move |&len| (m.clone(), len))) {
            for caches in [Caches::AsFound, Caches::Near, Caches::Far, Caches::Changing] {
                let copies = Copies::new(Arc::new(model.clone()));
                copies.past_caches(PastCaches::AsFound);
                copies.assume(caches, true);
                let mut source: Vec<u8> = (0..len).map(|i| (i * 31 + 7) as u8).collect();
                let (mut staging, mut target) = (vec![0; len], vec![0; len]);
                let [from, place, into] = [&mut source, &mut staging, &mut target]
                    // SAFETY: the vectors outlive the `Sge`s.
                    .map(|bytes| unsafe { Sge::new(bytes.as_mut_ptr(), len) });
                write(&copies, place, from, false);
                told_of(&copies, place);
                sense_sent(&copies, place);
                read(&copies, into, place, false);
                give_back(&copies, place);
                assert!(source == target, "{len} bytes, {caches:?}, {model:?}");
                target.fill(0);
                // SAFETY: `target` has `len` bytes and outlives the `Sge`.
                let into = unsafe { Sge::new(target.as_mut_ptr(), len) };
                read_shared(&copies, into, place);
                assert!(source == target && source == staging);
            }
        }
    }

    /// Copies that are faster past the caches go past them, and are counted.
    #[test]
    fn what_goes_past_is_counted() {
        let dear = ByDistance { shared: 100.0, apart: 100.0 };
        let model = CopyModel {
            rewrite: dear,
            rewrite_asked: dear,
            rewrite_returned: dear,
            ..CopyModel::GENERIC
        };
        let copies = Copies::new(Arc::new(model));
        copies.past_caches(PastCaches::AsFound);
        copies.assume(Caches::Far, true);
        let (mut source, mut staging) = (vec![5u8; 9000], vec![0u8; 9000]);
        // SAFETY: the vectors outlive the `Sge`s.
        let [from, to] =
            [&mut source, &mut staging].map(|b| unsafe { Sge::new(b.as_mut_ptr(), b.len()) });
        write(&copies, to, from, false);
        write(&copies, to.part(0, 8000), from.part(0, 8000), false);
        assert_eq!(copies.counted_past(), 1);
        assert!(source == staging);
    }
}
