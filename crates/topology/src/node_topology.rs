//! All processors of a machine by level.

use crate::level::TopologyLevel;
use crate::processor_list::ProcessorSet;
use crate::sysfs::{CacheKind, Siblings, Sysfs};
use std::collections::BTreeMap;

/// A processor with its group at each level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlacedProcessor {
    /// The system's number of the processor.
    pub number: usize,
    /// The system's number of the NUMA domain, if the system reports one.
    pub numa: Option<usize>,
    groups: [u32; TopologyLevel::COUNT],
}

impl PlacedProcessor {
    /// Returns the number of the processor's group at `level`. Groups are numbered from 0 by the order of their first processors in
    /// [`NodeTopology::processors`].
    pub fn group(&self, level: TopologyLevel) -> u32 {
        self.groups[level.index()]
    }

    /// Returns the lowest level at which both processors are in the same group.
    pub fn common_level(&self, other: &PlacedProcessor) -> TopologyLevel {
        let same = |level| self.group(level) == other.group(level);
        let common = |&level: &TopologyLevel| match level {
            // A domain of several sockets says nothing about the distance between them.
            TopologyLevel::Numa => same(level) && same(TopologyLevel::Socket),
            level => same(level),
        };
        TopologyLevel::ALL.into_iter().find(common).unwrap_or(TopologyLevel::Node)
    }
}

/// The processors of a machine, or those of them that a process may use.
///
/// Every processor has a group at every level. Where the system reports nothing, a core is a processor, a group of level 2 is a core,
/// all processors of a NUMA domain share a cache, a NUMA domain is a socket, and a machine has one socket. Groups of caches contain
/// whole cores. Nothing is assumed about caches and NUMA domains: either may contain several of the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeTopology {
    processors: Vec<PlacedProcessor>,
}

/// A processor with the first processor of its group at each level.
struct ProcessorHeads {
    number: usize,
    numa: Option<usize>,
    heads: [usize; TopologyLevel::COUNT],
}

/// First processor of the group of each processor, at one level.
type GroupHeads = BTreeMap<usize, usize>;

/// Groups the processors by the sets that `set` returns. All processors without a set form a group for each value of `rest`.
fn grouped(
    online: &ProcessorSet,
    mut set: impl FnMut(usize) -> Option<ProcessorSet>,
    rest: impl Fn(usize) -> usize,
) -> GroupHeads {
    let mut heads = GroupHeads::new();
    let mut alone = BTreeMap::new();
    for &processor in online {
        if heads.contains_key(&processor) {
            continue;
        }
        match set(processor) {
            Some(set) => {
                heads.insert(processor, processor);
                for &other in set.intersection(online) {
                    heads.entry(other).or_insert(processor);
                }
            }
            None => {
                let head = *alone.entry(rest(processor)).or_insert(processor);
                heads.insert(processor, head);
            }
        }
    }
    heads
}

impl NodeTopology {
    /// Reads the processors of this machine that this process may use.
    pub fn here() -> NodeTopology {
        let sysfs = Sysfs::here();
        let allowed = sysfs.allowed().unwrap_or_default();
        NodeTopology::read(&sysfs, &allowed).restricted(&allowed)
    }

    /// Reads the processors that are online. `known` are processors that exist even if the system describes none.
    pub fn read(sysfs: &Sysfs, known: &ProcessorSet) -> NodeTopology {
        let mut online = sysfs.online().unwrap_or_else(|| sysfs.described());
        if online.is_empty() {
            online.clone_from(known);
        }
        let Some(&first) = online.first() else { return NodeTopology::default() };
        let cores = grouped(&online, |p| sysfs.siblings(p, Siblings::Core), |p| p);
        let sockets = grouped(&online, |p| sysfs.siblings(p, Siblings::Package), |_| first);
        let domains = sysfs.numa_domains();
        let domain = |p: usize| domains.iter().find(|domain| domain.processors.contains(&p));
        let numa = grouped(&online, |p| Some(domain(p)?.processors.clone()), |p| sockets[&p]);
        // The threads of a core have the same caches, so only the files of the first thread are read.
        let (mut second, mut last) = (BTreeMap::new(), BTreeMap::new());
        for &head in online.iter().filter(|&&p| cores[&p] == p) {
            let mut caches = sysfs.caches_from(head, 2);
            if caches.is_empty() {
                caches = sysfs.caches(head);
            }
            caches.retain(|cache| cache.kind != CacheKind::Instruction);
            let farthest = caches.iter().max_by_key(|cache| cache.level);
            let set = farthest.map(|cache| cache.processors.clone());
            last.insert(head, set);
            let set = caches.iter().find(|cache| cache.level == 2);
            second.insert(head, set.map(|cache| cache.processors.clone()));
        }
        let around = |sets: &BTreeMap<usize, Option<ProcessorSet>>, p: usize| {
            let mut set = sets[&cores[&p]].clone()?;
            set.extend(online.iter().filter(|&other| cores[other] == cores[&p]));
            Some(set)
        };
        let second = grouped(&online, |p| around(&second, p), |p| cores[&p]);
        let last = grouped(&online, |p| around(&last, p), |p| numa[&p]);
        let heads = |p: usize| [p, cores[&p], second[&p], last[&p], numa[&p], sockets[&p], first];
        let number = |p: usize| Some(domain(p)?.number);
        let place = |&p: &usize| ProcessorHeads { number: p, numa: number(p), heads: heads(p) };
        NodeTopology::of(online.iter().map(place).collect())
    }

    /// Numbers the groups of all processors.
    fn of(mut all: Vec<ProcessorHeads>) -> NodeTopology {
        // The processors of a group become neighbours, from the farthest level to the nearest.
        all.sort_by_key(|processor| {
            let mut key = processor.heads;
            key.reverse();
            key
        });
        let mut numbers: [BTreeMap<usize, u32>; TopologyLevel::COUNT] = Default::default();
        let place = |processor: ProcessorHeads| {
            let mut groups = [0; TopologyLevel::COUNT];
            for (level, head) in processor.heads.into_iter().enumerate() {
                let next = numbers[level].len() as u32;
                groups[level] = *numbers[level].entry(head).or_insert(next);
            }
            PlacedProcessor { number: processor.number, numa: processor.numa, groups }
        };
        NodeTopology { processors: all.into_iter().map(place).collect() }
    }

    /// Returns the same machine with only the processors in `allowed`. The groups keep their numbers.
    pub fn restricted(mut self, allowed: &ProcessorSet) -> NodeTopology {
        self.processors.retain(|processor| allowed.contains(&processor.number));
        self
    }

    /// Returns the processors, in an order in which those of a group are next to each other.
    pub fn processors(&self) -> &[PlacedProcessor] {
        &self.processors
    }

    /// Returns the processor with this number.
    pub fn processor(&self, number: usize) -> Option<&PlacedProcessor> {
        self.processors.iter().find(|processor| processor.number == number)
    }

    /// Returns the groups of `level`, each with its processors.
    pub fn groups(&self, level: TopologyLevel) -> Vec<Vec<&PlacedProcessor>> {
        let mut groups: BTreeMap<u32, Vec<&PlacedProcessor>> = BTreeMap::new();
        for processor in &self.processors {
            groups.entry(processor.group(level)).or_default().push(processor);
        }
        groups.into_values().collect()
    }

    /// Returns the number of groups of `level`.
    pub fn count(&self, level: TopologyLevel) -> usize {
        self.groups(level).len()
    }
}

// These tests need files of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::fake::FakeMachine;
    use TopologyLevel::{Cache, Core, L2, Node, Numa, Socket, Thread};

    fn read(machine: &FakeMachine) -> NodeTopology {
        NodeTopology::read(&machine.sysfs(), &ProcessorSet::new())
    }

    fn counts(topology: &NodeTopology) -> [usize; TopologyLevel::COUNT] {
        TopologyLevel::ALL.map(|level| topology.count(level))
    }

    fn distance(topology: &NodeTopology, one: usize, other: usize) -> TopologyLevel {
        let [one, other] = [one, other].map(|number| topology.processor(number).unwrap());
        assert_eq!(one.common_level(other), other.common_level(one));
        one.common_level(other)
    }

    #[test]
    fn machines_have_the_groups_of_their_data_sheets() {
        // Threads, cores, caches of level 2, last caches, NUMA domains, sockets, nodes.
        for (machine, expected) in [
            (FakeMachine::epyc_genoa(1), [384, 192, 192, 24, 2, 2, 1]),
            (FakeMachine::epyc_genoa(4), [384, 192, 192, 24, 8, 2, 1]),
            (FakeMachine::epyc_rome(), [256, 128, 128, 32, 2, 2, 1]),
            (FakeMachine::xeon(1), [224, 112, 112, 2, 2, 2, 1]),
            (FakeMachine::xeon(4), [224, 112, 112, 2, 8, 2, 1]),
            (FakeMachine::neoverse(), [80, 80, 80, 80, 1, 1, 1]),
            (FakeMachine::hybrid_laptop(), [22, 16, 9, 2, 1, 1, 1]),
            (FakeMachine::small_vm(), [2, 2, 2, 1, 1, 1, 1]),
        ] {
            let topology = read(&machine);
            assert_eq!(counts(&topology), expected);
            for processor in topology.processors() {
                assert_eq!(processor.common_level(processor), Thread);
            }
        }
    }

    #[test]
    fn distances_are_lowest_common_levels() {
        let genoa = read(&FakeMachine::epyc_genoa(4));
        for (other, level) in [
            (192, Core),
            (7, Cache),
            (199, Cache),
            (8, Numa),
            (24, Socket),
            (95, Socket),
            (96, Node),
        ] {
            assert_eq!(distance(&genoa, 0, other), level, "{other}");
        }
        assert_eq!(genoa.processor(100).unwrap().numa, Some(4));
        // All cores of a socket share a cache, which is nearer than the NUMA domains within it.
        let xeon = read(&FakeMachine::xeon(4));
        assert_eq!((distance(&xeon, 0, 13), distance(&xeon, 0, 14)), (Cache, Cache));
        let neoverse = read(&FakeMachine::neoverse());
        assert_eq!(distance(&neoverse, 0, 1), Numa);
        let laptop = read(&FakeMachine::hybrid_laptop());
        for (one, other, level) in [(0, 1, Core), (0, 2, Cache), (12, 13, L2), (12, 16, Cache)] {
            assert_eq!(distance(&laptop, one, other), level, "{one} {other}");
        }
        assert_eq!((distance(&laptop, 20, 21), distance(&laptop, 0, 20)), (L2, Numa));
    }

    #[test]
    fn processors_of_a_group_are_neighbours() {
        for machine in [FakeMachine::epyc_genoa(4), FakeMachine::hybrid_laptop()] {
            let topology = read(&machine);
            for level in TopologyLevel::ALL {
                let groups = topology.processors().iter().map(|processor| processor.group(level));
                assert!(groups.is_sorted(), "{level:?}");
            }
        }
    }

    #[test]
    fn a_mask_leaves_the_numbers_of_groups() {
        let topology = read(&FakeMachine::epyc_genoa(1));
        let part = topology.restricted(&ProcessorSet::from([8, 9, 96, 200, 9999]));
        assert_eq!(counts(&part), [4, 3, 3, 2, 2, 2, 1]);
        let groups = part.groups(Cache);
        let numbers =
            |group: &[&PlacedProcessor]| group.iter().map(|p| p.number).collect::<Vec<_>>();
        assert_eq!((numbers(&groups[0]), numbers(&groups[1])), (vec![8, 200, 9], vec![96]));
        assert_eq!((groups[0][0].group(Cache), groups[1][0].group(Cache)), (1, 12));
        assert!(part.processor(0).is_none());
    }

    #[test]
    fn holes_and_offline_processors_are_no_processors() {
        let mut machine = FakeMachine::epyc_rome();
        machine.set_offline(&[0, 5, 128]);
        let topology = read(&machine);
        assert_eq!(counts(&topology), [253, 127, 127, 32, 2, 2, 1]);
        // The other thread of core 5 is left.
        assert_eq!(distance(&topology, 133, 4), Cache);
    }

    #[test]
    fn a_written_machine_is_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let machine = FakeMachine::hybrid_laptop();
        machine.write(directory.path()).unwrap();
        let sysfs = Sysfs::at(directory.path());
        assert_eq!(NodeTopology::read(&sysfs, &ProcessorSet::new()), read(&machine));
        assert_eq!((sysfs.described(), sysfs.describes(22)), (machine.sysfs().described(), false));
        assert_eq!(sysfs.numa_domains(), machine.sysfs().numa_domains());
    }

    #[test]
    fn missing_files_leave_a_sane_machine() {
        let mut machine = FakeMachine::epyc_rome();
        machine.has_caches = false;
        assert_eq!(counts(&read(&machine)), [256, 128, 128, 2, 2, 2, 1]);
        machine.has_numa = false;
        assert_eq!(counts(&read(&machine)), [256, 128, 128, 2, 2, 2, 1]);
        machine.has_topology = false;
        assert_eq!(counts(&read(&machine)), [256, 256, 256, 1, 1, 1, 1]);
        let nothing = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(nothing.path());
        let known = ProcessorSet::from([3, 5]);
        assert_eq!(counts(&NodeTopology::read(&sysfs, &known)), [2, 2, 2, 1, 1, 1, 1]);
        assert_eq!(NodeTopology::read(&sysfs, &ProcessorSet::new()), NodeTopology::default());
    }

    #[test]
    fn processors_without_a_domain_form_groups_by_socket() {
        let mut machine = FakeMachine::epyc_genoa(1);
        for processor in &mut machine.processors {
            processor.numa = processor.numa.filter(|_| processor.number % 192 >= 8);
        }
        let topology = read(&machine);
        assert_eq!(topology.count(Numa), 3);
        assert_eq!((distance(&topology, 0, 1), distance(&topology, 0, 8)), (Cache, Socket));
        assert_eq!(topology.processor(0).unwrap().numa, None);
    }

    /// Checks a machine whose firmware calls all memory one domain, as virtual machines with a socket for each processor do.
    #[test]
    fn a_domain_of_several_sockets_is_no_nearer_than_the_machine() {
        let mut machine = FakeMachine::epyc_rome();
        machine.processors.iter_mut().for_each(|processor| processor.numa = Some(0));
        let topology = read(&machine);
        assert_eq!((distance(&topology, 0, 63), distance(&topology, 0, 64)), (Numa, Node));
        assert_eq!((topology.count(Numa), topology.count(Socket)), (1, 2));
    }

    #[test]
    fn this_machine_has_all_allowed_processors() {
        let topology = NodeTopology::here();
        let numbers: ProcessorSet = topology.processors().iter().map(|p| p.number).collect();
        assert_eq!(Some(numbers), Sysfs::here().allowed());
    }
}
