//! Parts of this machine to which a process may be bound. They are read from /sys of Linux, and have hwloc's names.
//!
//! ```text
//!   processors  0 1 2 3 | 4 5 6 7      bound to 4 and 5: within one package (instance 4), one L3
//!   cores       --- ---   --- ---      cache (4), one core (4), but not within one processor
//!   packages    -------   -------
//! ```
//! An instance has the number of its first processor.

use weft_topology::{CacheKind, ProcessorCache, ProcessorSet, Siblings, Sysfs};

/// Kinds of parts, larger kinds first: the values of `mpi_hw_resource_type`.
pub const KINDS: [&str; 8] = [
    "hwloc://Package",
    "hwloc://NUMANode",
    "hwloc://Die",
    "hwloc://L3Cache",
    "hwloc://L2Cache",
    "hwloc://L1Cache",
    "hwloc://Core",
    "hwloc://PU",
];

/// Parts of one kind in which a process may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardwarePart {
    /// The machine has no part of this kind, or the system reports none.
    None,
    /// The process may run in several parts.
    Several,
    /// The process may run only in this part.
    One(u32),
}

/// Returns the parts in which this process may run, by [`KINDS`].
pub fn here() -> [HardwarePart; KINDS.len()] {
    let sysfs = Sysfs::here();
    survey(&sysfs, &sysfs.allowed().unwrap_or_default())
}

/// Returns the parts in which a process that is bound to the processors `allowed` may run.
fn survey(sysfs: &Sysfs, allowed: &ProcessorSet) -> [HardwarePart; KINDS.len()] {
    let Some(&first) = allowed.first() else { return [HardwarePart::None; KINDS.len()] };
    let domains = sysfs.numa_domains().into_iter().map(|domain| domain.processors);
    let caches = sysfs.caches(first);
    let cache = |level| {
        let is_wanted =
            |cache: &&ProcessorCache| cache.level == level && cache.kind != CacheKind::Instruction;
        Some(caches.iter().find(is_wanted)?.processors.clone())
    };
    let around = [
        sysfs.siblings(first, Siblings::Package),
        domains.into_iter().find(|domain| domain.contains(&first)),
        sysfs.siblings(first, Siblings::Die),
        cache(3),
        cache(2),
        cache(1),
        sysfs.siblings(first, Siblings::Core),
        sysfs.describes(first).then(|| [first].into()),
    ];
    around.map(|part| match part {
        None => HardwarePart::None,
        Some(part) if allowed.is_subset(&part) => {
            part.first().map_or(HardwarePart::None, |&p| HardwarePart::One(p as u32))
        }
        Some(_) => HardwarePart::Several,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use HardwarePart::{None as Nothing, One, Several};
    use weft_topology::fake::FakeMachine;

    #[test]
    fn a_process_is_within_the_parts_that_hold_all_its_processors() {
        let sysfs = FakeMachine::epyc_genoa(4).sysfs();
        let on = |allowed: &[usize]| survey(&sysfs, &allowed.iter().copied().collect());
        // The expected parts are package, NUMA domain, die, L3, L2, L1, core, processor.
        let of_100 = [One(96), One(96), Nothing, One(96), One(100), One(100), One(100)];
        assert_eq!(on(&[292])[..7], of_100);
        assert_eq!(on(&[292])[7], One(292));
        assert_eq!((on(&[100, 292])[..7] == of_100, on(&[100, 292])[7]), (true, Several));
        let caches = [One(0), One(0), Nothing, Several, Several, Several, Several, Several];
        assert_eq!(on(&[7, 8]), caches);
        let domains = [One(0), Several, Nothing, Several, Several, Several, Several, Several];
        assert_eq!(on(&[23, 24]), domains);
        let all = [Several, Several, Nothing, Several, Several, Several, Several, Several];
        assert_eq!(on(&[0, 96]), all);
        assert_eq!(on(&[999]), [Nothing; 8]);
        assert_eq!(on(&[]), [Nothing; 8]);
    }

    #[test]
    fn this_machine_has_processors() {
        let parts = here();
        assert!(parts[KINDS.len() - 1] != Nothing, "{parts:?}");
    }
}
