//! Processors that each rank may use.

use std::collections::BTreeMap;
use std::fs;

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;

use crate::options::Bind;

/// Hardware threads of one core that this process may use.
type Core = Vec<usize>;

/// Returns the processors of each rank, or `None` if the ranks are not bound.
///
/// If there is a core for every rank, rank `i` gets the `i`-th of `size` equal, disjoint shares of the cores. So each rank of a
/// threaded program has several cores if there are fewer ranks than cores. If there are more ranks than cores, the scheduler places
/// them.
pub fn plan(cores: &[Core], size: usize, bind: Bind) -> Option<Vec<Vec<usize>>> {
    let count = cores.len();
    match bind {
        Bind::Core if count > 0 => Some((0..size).map(|i| cores[i % count].clone()).collect()),
        Bind::Share if size > 1 && size <= count => Some(
            (0..size).map(|i| cores[i * count / size..(i + 1) * count / size].concat()).collect(),
        ),
        _ => None,
    }
}

/// Returns the cores that this process may use. Cores of one package are next to each other.
pub fn allowed() -> Vec<Core> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else { return Vec::new() };
    let mut cores: BTreeMap<(usize, usize), Core> = BTreeMap::new();
    for processor in (0..CpuSet::count()).filter(|&p| set.is_set(p).unwrap_or(false)) {
        let read = |file: &str| {
            let path = format!("/sys/devices/system/cpu/cpu{processor}/topology/{file}");
            fs::read_to_string(path).ok()?.trim().parse().ok()
        };
        // Without a topology (some containers) each processor counts as a core.
        let key = read("physical_package_id").zip(read("core_id"));
        cores.entry(key.unwrap_or((0, processor))).or_default().push(processor);
    }
    cores.into_values().collect()
}

/// Returns the processors as a set for the system call, or `None` if a processor's number is too large for the set.
pub fn set(processors: &[usize]) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    processors.iter().try_for_each(|&processor| set.set(processor)).ok()?;
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: usize) -> Vec<Core> {
        (0..cores).map(|core| vec![core, core + cores]).collect()
    }

    #[test]
    fn shares_are_disjoint_and_cover_the_machine() {
        for cores in 1..20 {
            for size in 2..=cores {
                let plan = plan(&machine(cores), size, Bind::Share).unwrap();
                assert_eq!(plan.len(), size);
                assert!(plan.iter().all(|share| share.len() >= 2 * (cores / size)));
                let mut all = plan.concat();
                all.sort_unstable();
                assert_eq!(all, (0..2 * cores).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn more_ranks_than_cores_are_not_bound() {
        assert_eq!(plan(&machine(2), 3, Bind::Share), None);
        assert_eq!(plan(&machine(2), 1, Bind::Share), None);
        assert_eq!(plan(&machine(2), 2, Bind::None), None);
        assert_eq!(plan(&[], 1, Bind::Core), None);
    }

    #[test]
    fn one_core_each_in_turn() {
        let plan = plan(&machine(2), 3, Bind::Core).unwrap();
        assert_eq!(plan, [vec![0, 2], vec![1, 3], vec![0, 2]]);
    }

    #[test]
    fn this_machine_has_cores() {
        let cores = allowed();
        assert!(!cores.is_empty() && cores.iter().all(|core| !core.is_empty()));
    }
}
