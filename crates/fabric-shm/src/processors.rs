//! The processors that the ranks of a job may use on this machine, as each rank says in its control block.

use crate::cgroup;
use crate::control::CPUS_MAX;
use crate::segment::Segment;
use crate::sync::Ordering;
use weft_fabric::wait::place;

/// Words of a mask of processors.
const WORDS: usize = CPUS_MAX / 64;

fn mask(segment: &Segment, rank: usize) -> [u64; WORDS] {
    let words = &segment.control(rank).affinity.0;
    std::array::from_fn(|word| words[word].load(Ordering::Relaxed))
}

/// Returns the number of processors for all ranks together, at least 1, and at most the control group's quota.
pub(crate) fn count(segment: &Segment) -> usize {
    let masks = (0..segment.shape().ranks).map(|rank| mask(segment, rank));
    let union = masks.fold([0; WORDS], |all, mask| std::array::from_fn(|i| all[i] | mask[i]));
    let processors: u32 = union.iter().map(|word| word.count_ones()).sum();
    (processors as usize).min(cgroup::quota().unwrap_or(usize::MAX)).max(1)
}

/// Returns the processors on which `rank` should stay while threads take turns on processors. Returns `None` if the ranks may use
/// different processors, if a quota allows fewer processors, or if there is only one processor.
pub(crate) fn own(segment: &Segment, rank: usize) -> Option<Box<[usize]>> {
    let ranks = segment.shape().ranks;
    let own = mask(segment, rank);
    let allows = |processor: &usize| own[processor / 64] >> (processor % 64) & 1 == 1;
    let processors: Vec<usize> = (0..CPUS_MAX).filter(allows).collect();
    let alike = (0..ranks).all(|rank| mask(segment, rank) == own);
    let shared = alike && count(segment) == processors.len();
    (shared && processors.len() > 1).then(|| place(rank, ranks, &processors).into())
}
