//! The groups of processors in which the ranks of a job stay, as each rank says in its control block.

use crate::control::RankControl;
use crate::processors;
use crate::segment::Segment;
use crate::sync::Ordering;
use weft_fabric::copies::{ProcessorGroups, TopologyLevel};
use weft_topology::{BoundGroups, Sysfs};

/// Levels of [`ProcessorGroups`], from near to far.
const LEVELS: [TopologyLevel; ProcessorGroups::LEVELS] =
    [TopologyLevel::Core, TopologyLevel::Cache, TopologyLevel::Numa, TopologyLevel::Socket];

/// Writes the groups in which this process stays. A process that may move between groups of a level writes 0 there.
pub(crate) fn introduce(control: &RankControl) {
    let bound = BoundGroups::here();
    for (word, level) in control.groups.0.iter().zip(LEVELS) {
        word.store(bound.number(level).into(), Ordering::Release);
    }
}

/// Returns the groups of all ranks, the same on all of them. A level counts only if every rank stays within a group there. Returns
/// `None` if ranks take turns on processors. Call only after the closing fence.
pub(crate) fn of_job(segment: &Segment) -> Option<Box<[ProcessorGroups]>> {
    let ranks = segment.shape().ranks;
    // The processors of a machine that is not there are not those of the masks.
    if processors::count(segment) < ranks && !Sysfs::here().is_fake() {
        return None;
    }
    let said = |rank: usize| {
        let words = segment.control(rank).groups.0.each_ref();
        words.map(|word| word.load(Ordering::Acquire) as u32)
    };
    Some(known_by_all((0..ranks).map(said).collect()))
}

/// Returns groups in which a level counts only if every rank has said its number.
fn known_by_all(said: Vec<[u32; ProcessorGroups::LEVELS]>) -> Box<[ProcessorGroups]> {
    let known: [bool; ProcessorGroups::LEVELS] =
        std::array::from_fn(|level| said.iter().all(|numbers| numbers[level] > 0));
    let groups = |numbers: [u32; ProcessorGroups::LEVELS]| {
        ProcessorGroups::of(std::array::from_fn(
            |level| {
                if known[level] { numbers[level] } else { 0 }
            },
        ))
    };
    said.into_iter().map(groups).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_counts_if_every_rank_stays_within_a_group() {
        let groups = known_by_all(vec![[1, 1, 1, 1], [2, 1, 1, 1], [0, 9, 1, 1]]);
        assert_eq!(*groups, [[0, 1, 1, 1], [0, 1, 1, 1], [0, 9, 1, 1]].map(ProcessorGroups::of));
        let unbound = known_by_all(vec![[0; 4], [4, 3, 2, 1]]);
        assert_eq!(*unbound, [ProcessorGroups::default(); 2]);
    }
}
