//! The groups in which a process stays.

use crate::level::TopologyLevel;
use crate::processor_list::ProcessorSet;
use crate::sysfs::{CacheKind, Siblings, Sysfs};

/// The groups that contain all processors of a process. If two processes are bound to the same group at a level, they are never
/// farther apart than this level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BoundGroups {
    /// First processor of the group, by level.
    heads: [Option<u32>; TopologyLevel::COUNT],
}

impl BoundGroups {
    /// Finds the groups of this process.
    pub fn here() -> BoundGroups {
        let sysfs = Sysfs::here();
        BoundGroups::of(&sysfs, &sysfs.allowed().unwrap_or_default())
    }

    /// Finds the groups of a process that may use the processors `allowed`. Reads only the files of the first of them, because all
    /// ranks of a large machine do this at the same time. Gaps are filled as in [`crate::NodeTopology`].
    pub fn of(sysfs: &Sysfs, allowed: &ProcessorSet) -> BoundGroups {
        let Some(&first) = allowed.first() else { return BoundGroups::default() };
        let node = sysfs.online().unwrap_or_else(|| allowed.clone());
        let socket = sysfs.siblings(first, Siblings::Package).unwrap_or_else(|| node.clone());
        let domains = sysfs.numa_domains().into_iter().map(|domain| domain.processors);
        let numa = domains.into_iter().find(|domain| domain.contains(&first));
        let numa = numa.unwrap_or_else(|| socket.clone());
        let core = sysfs.siblings(first, Siblings::Core).unwrap_or_else(|| [first].into());
        let mut caches = sysfs.caches(first);
        caches.retain(|cache| cache.kind != CacheKind::Instruction);
        let second = caches.iter().find(|cache| cache.level == 2);
        let second = second.map_or(&core, |cache| &cache.processors) | &core;
        let last = caches.iter().max_by_key(|cache| cache.level);
        let last = last.map_or(&numa, |cache| &cache.processors) | &second;
        let groups = [[first].into(), core, second, last, numa, socket, node];
        let head = |group: ProcessorSet| {
            allowed.is_subset(&group).then(|| group.first().map(|&head| head as u32)).flatten()
        };
        BoundGroups { heads: groups.map(head) }
    }

    /// Returns the first processor of the group of `level` that the process is bound to, or `None` if it may move between groups.
    pub fn group(&self, level: TopologyLevel) -> Option<u32> {
        self.heads[level.index()]
    }

    /// Returns a number of the group of `level`, for comparison with numbers of other processes. Processes that may move between
    /// groups have number 0.
    pub fn number(&self, level: TopologyLevel) -> u32 {
        self.group(level).map_or(0, |head| head + 1)
    }

    /// Returns the lowest level at which both processes are bound to the same group.
    pub fn common_level(&self, other: &BoundGroups) -> TopologyLevel {
        let same = |level| self.group(level).is_some() && self.group(level) == other.group(level);
        let common = |&level: &TopologyLevel| match level {
            // A domain of several sockets says nothing about the distance between them.
            TopologyLevel::Numa => same(level) && same(TopologyLevel::Socket),
            level => same(level),
        };
        TopologyLevel::ALL.into_iter().find(common).unwrap_or(TopologyLevel::Node)
    }
}

// These tests need files of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::fake::FakeMachine;
    use crate::node_topology::NodeTopology;

    #[test]
    fn bound_processes_are_as_far_apart_as_their_processors() {
        for machine in [
            FakeMachine::epyc_genoa(4),
            FakeMachine::xeon(4),
            FakeMachine::neoverse(),
            FakeMachine::hybrid_laptop(),
            FakeMachine::small_vm(),
        ] {
            let sysfs = machine.sysfs();
            let topology = NodeTopology::read(&sysfs, &ProcessorSet::new());
            let some: Vec<_> = topology
                .processors()
                .iter()
                .step_by(7.min(topology.processors().len() / 2))
                .collect();
            let bound = |number: usize| BoundGroups::of(&sysfs, &[number].into());
            for (one, other) in
                some.iter().zip(&some[1..]).chain(some.iter().zip(some.iter().rev()))
            {
                let [a, b] = [one, other].map(|processor| bound(processor.number));
                let level = one.common_level(other);
                assert_eq!(a.common_level(&b), level, "{} {}", one.number, other.number);
            }
        }
    }

    #[test]
    fn a_process_with_room_belongs_to_large_groups_only() {
        let sysfs = FakeMachine::epyc_genoa(4).sysfs();
        let on = |allowed: &[usize]| BoundGroups::of(&sysfs, &allowed.iter().copied().collect());
        let core = on(&[3, 195]);
        assert_eq!(core.group(TopologyLevel::Thread), None);
        assert_eq!(core.group(TopologyLevel::Core), Some(3));
        assert_eq!([TopologyLevel::Thread, TopologyLevel::Core].map(|at| core.number(at)), [0, 4]);
        assert_eq!(core.common_level(&on(&[3, 195])), TopologyLevel::Core);
        assert_eq!(core.common_level(&on(&[4, 5])), TopologyLevel::Cache);
        let domain = on(&[0, 8, 23]);
        assert_eq!(domain.group(TopologyLevel::Cache), None);
        assert_eq!(domain.common_level(&core), TopologyLevel::Numa);
        assert_eq!(on(&[0, 191]).common_level(&core), TopologyLevel::Node);
        assert_eq!(on(&[]).common_level(&on(&[])), TopologyLevel::Node);
    }
}
