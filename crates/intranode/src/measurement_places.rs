//! The processors for measurements, chosen by the caches that they share.

use nix::unistd::getppid;
use weft_topology::{
    CacheKind, NodeTopology, PlacedProcessor, ProcessorSet, Siblings, Sysfs, TopologyLevel,
    allowed, allowed_to,
};

/// A pair of processors.
pub type ProcessorPair = (usize, usize);

/// The levels that are measured besides a common and no common cache, in the order of the fields of the model.
pub const MEASURED_LEVELS: [TopologyLevel; 4] =
    [TopologyLevel::Core, TopologyLevel::Numa, TopologyLevel::Socket, TopologyLevel::Node];

/// The processors on which measurements are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasurementPlaces {
    /// The first allowed processor.
    pub first: Option<usize>,
    /// A pair that shares its last cache, of different cores if possible.
    pub shared: Option<ProcessorPair>,
    /// A pair that shares no cache.
    pub apart: Option<ProcessorPair>,
    /// A pair that meets at each of [`MEASURED_LEVELS`], but no nearer.
    pub by_level: [Option<ProcessorPair>; MEASURED_LEVELS.len()],
    /// Size of the largest private cache of the first processor, in bytes.
    pub private: Option<usize>,
    /// Size of the last cache of the first processor, in bytes.
    pub last: Option<usize>,
}

/// Returns the processors that this job may use, as far as this process can find out: its own processors and the processors of its
/// parent process, because a launcher binds each rank to only some of the job's processors.
pub fn allowed_to_job() -> ProcessorSet {
    let mut all = allowed().unwrap_or_default();
    let parent = getppid().as_raw();
    // If the parent is in another PID namespace, its process ID is 0.
    if parent > 1 {
        all.extend(allowed_to(parent).unwrap_or_default());
    }
    all
}

/// Chooses among the processors `allowed`.
pub fn places(sysfs: &Sysfs, allowed: &ProcessorSet) -> MeasurementPlaces {
    let Some(&first) = allowed.first() else { return MeasurementPlaces::default() };
    let mut caches = sysfs.caches(first);
    caches.retain(|cache| cache.kind != CacheKind::Instruction && cache.size.is_some());
    let last = caches.iter().max_by_key(|cache| cache.level);
    let core = sysfs.siblings(first, Siblings::Core).unwrap_or_else(|| [first].into());
    // Without a cache that several cores share, this is the last cache.
    let own = caches.iter().filter(|cache| cache.processors.is_subset(&core));
    let own = own.max_by_key(|cache| cache.level);
    let topology = NodeTopology::read(sysfs, allowed).restricted(allowed);
    let pair = |wanted: fn(TopologyLevel) -> bool| first_pair(&topology, wanted);
    let by_level = MEASURED_LEVELS.map(|level| first_pair(&topology, |found| found == level));
    MeasurementPlaces {
        first: Some(first),
        shared: pair(|level| matches!(level, TopologyLevel::L2 | TopologyLevel::Cache))
            .or_else(|| pair(|level| level == TopologyLevel::Core)),
        apart: pair(|level| level > TopologyLevel::Cache),
        by_level,
        private: own.and_then(|cache| cache.size),
        last: last.and_then(|cache| cache.size),
    }
}

/// Finds the first pair of processors whose lowest common level is `wanted`. Pairs are ordered by the system's numbers.
fn first_pair(
    topology: &NodeTopology,
    wanted: impl Fn(TopologyLevel) -> bool,
) -> Option<ProcessorPair> {
    let mut all: Vec<&PlacedProcessor> = topology.processors().iter().collect();
    all.sort_by_key(|processor| processor.number);
    all.iter().enumerate().find_map(|(at, one)| {
        let other = all[at + 1..].iter().find(|other| wanted(one.common_level(other)))?;
        Some((one.number, other.number))
    })
}

// These tests need files, processors and signals of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use weft_topology::fake::FakeMachine;

    #[test]
    fn pairs_are_found_by_what_they_share() {
        let sysfs = FakeMachine::epyc_rome().sysfs();
        let on = |allowed: &[usize]| places(&sysfs, &allowed.iter().copied().collect());
        let all = on(&[0, 128, 1, 129, 4, 132, 5, 133]);
        assert_eq!((all.shared, all.apart), (Some((0, 1)), Some((0, 4))));
        assert_eq!((all.private, all.last), (Some(512 << 10), Some(16 << 20)));
        assert_eq!(all.by_level, [Some((0, 128)), Some((0, 4)), None, None]);
        assert_eq!(on(&[0, 64]).by_level, [None, None, None, Some((0, 64))]);
        // Siblings are chosen only if there is no other pair.
        assert_eq!(on(&[0, 128]).shared, Some((0, 128)));
        assert_eq!(on(&[0, 128]).apart, None);
        // The first processor shares its cache with no allowed processor, but other processors share a cache.
        let odd = on(&[0, 4, 6]);
        assert_eq!((odd.shared, odd.apart), (Some((4, 6)), Some((0, 4))));
        // The only pair is beyond the first sixty-four processors.
        assert_eq!(on(&[0, 127, 126]).shared, Some((126, 127)));
        let one = on(&[5]);
        assert_eq!((one.first, one.shared, one.apart), (Some(5), None, None));
        assert_eq!(on(&[]), MeasurementPlaces::default());
    }

    #[test]
    fn without_a_word_on_caches_all_share_one() {
        let places = places(&Sysfs::of_files(Default::default()), &[1, 2].into());
        assert_eq!((places.shared, places.apart), (Some((1, 2)), None));
        assert_eq!((places.private, places.last), (None, None));
    }
}
