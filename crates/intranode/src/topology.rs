//! The processors for measurements, and their caches, as Linux describes them in /sys.

use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::{Pid, getppid};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The directory in which Linux describes the processors.
pub const SYSTEM: &str = "/sys/devices/system/cpu";

/// Maximum number of processors that are examined. On a larger machine, a pair that is not among the first processors is not
/// found.
const LOOKED_AT: usize = 32;

/// A pair of processors.
pub type ProcessorPair = (usize, usize);

/// The processors on which measurements are made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MeasurementPlaces {
    /// The first allowed processor.
    pub first: Option<usize>,
    /// A pair that shares its last cache, of different cores if possible.
    pub shared: Option<ProcessorPair>,
    /// A pair that shares no cache.
    pub apart: Option<ProcessorPair>,
    /// Size of the largest private cache of the first processor, in bytes.
    pub private: Option<usize>,
    /// Size of the last cache of the first processor, in bytes.
    pub last: Option<usize>,
}

/// Returns the processors that this job may use, as far as this process can find out: its own processors and the processors of its
/// parent process, because a launcher binds each rank to only some of the job's processors.
pub fn allowed() -> CpuSet {
    let mut all = sched_getaffinity(Pid::from_raw(0)).unwrap_or_default();
    let parent = getppid();
    // If the parent is in another name space, its number is 0, and the call would ask for this process itself.
    if parent.as_raw() > 1 {
        let of_parent = sched_getaffinity(parent).unwrap_or_default();
        for processor in listed(&of_parent) {
            let _ = all.set(processor);
        }
    }
    all
}

pub fn listed(set: &CpuSet) -> Vec<usize> {
    (0..CpuSet::count()).filter(|&processor| set.is_set(processor).unwrap_or(false)).collect()
}

/// Returns the number of processors that are online.
pub fn online(system: &Path) -> Option<usize> {
    Some(list(&system.join("online"))?.len())
}

/// Chooses among the processors `allowed`, which are in ascending order.
pub fn places(system: &Path, allowed: &[usize]) -> MeasurementPlaces {
    let Some(&first) = allowed.first() else { return MeasurementPlaces::default() };
    let core = |processor| {
        let topology = system.join(format!("cpu{processor}/topology"));
        let lists = ["core_cpus_list", "thread_siblings_list"];
        let list = lists.iter().find_map(|name| list(&topology.join(name)));
        list.unwrap_or_else(|| BTreeSet::from([processor]))
    };
    let caches = caches(system, first);
    let last = caches.iter().max_by_key(|cache| cache.level);
    let siblings = core(first);
    let own = caches.iter().filter(|cache| cache.shared.is_subset(&siblings));
    // If no cache is shared, the last cache is private, too.
    let own = own.max_by_key(|cache| cache.level);
    let mut places = MeasurementPlaces {
        first: Some(first),
        private: own.map(|cache| cache.size),
        last: last.map(|cache| cache.size),
        ..MeasurementPlaces::default()
    };
    let mut siblings = None;
    for &one in allowed.iter().take(LOOKED_AT) {
        let near = self::caches(system, one).into_iter().max_by_key(|cache| cache.level);
        // If the caches are unknown, all processors are assumed to share a cache.
        let near = near.map(|cache| cache.shared);
        let shares = |other: usize| near.as_ref().is_none_or(|near| near.contains(&other));
        let others = || allowed.iter().copied().filter(move |&other| other != one);
        if places.shared.is_none() {
            let core = core(one);
            let sharing: Vec<usize> = others().filter(|&other| shares(other)).collect();
            let other = sharing.iter().find(|other| !core.contains(other));
            places.shared = other.map(|&other| (one, other));
            siblings = siblings.or(sharing.first().map(|&other| (one, other)));
        }
        if places.apart.is_none() {
            places.apart = others().find(|&other| !shares(other)).map(|other| (one, other));
        }
        if places.shared.is_some() && places.apart.is_some() {
            break;
        }
    }
    places.shared = places.shared.or(siblings);
    places
}

#[derive(Debug)]
struct Cache {
    level: u32,
    size: usize,
    shared: BTreeSet<usize>,
}

/// Returns the caches of a processor that hold data.
fn caches(system: &Path, processor: usize) -> Vec<Cache> {
    let directory = system.join(format!("cpu{processor}/cache"));
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let cache = |path: &Path| {
        let read = |name| Some(fs::read_to_string(path.join(name)).ok()?.trim().to_owned());
        if read("type")? == "Instruction" {
            return None;
        }
        let kilobytes: usize = read("size")?.strip_suffix('K')?.parse().ok()?;
        let shared = parse(&read("shared_cpu_list")?)?;
        let size = kilobytes.checked_mul(1024).filter(|&size| size > 0)?;
        Some(Cache { level: read("level")?.parse().ok()?, size, shared })
    };
    entries.flatten().filter_map(|entry| cache(&entry.path())).collect()
}

fn list(file: &Path) -> Option<BTreeSet<usize>> {
    parse(fs::read_to_string(file).ok()?.trim())
}

/// Parses a list such as `0-3,8`; returns `None` if the text is not such a list, or is empty.
fn parse(text: &str) -> Option<BTreeSet<usize>> {
    let mut all = BTreeSet::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<usize>().ok()?);
        all.extend(first..=last.min(CpuSet::count()));
    }
    Some(all)
}

// These tests need files, processors and signals of the system, which Miri does not have.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Describes a machine of eight processors: cores of two, and last caches of four.
    fn machine(directory: &Path) {
        let write = |path: String, text: &str| {
            let path = directory.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        for p in 0..8 {
            let half = format!("{}-{}", p / 4 * 4, p / 4 * 4 + 3);
            let core = format!("{},{}", p / 2 * 2, p / 2 * 2 + 1);
            write(format!("cpu{p}/topology/core_cpus_list"), &core);
            let caches = [
                ("1", "Data", "32K", &core),
                ("1", "Instruction", "64K", &core),
                ("2", "Unified", "512K", &core),
                ("3", "Unified", "16384K", &half),
            ];
            for (index, (level, kind, size, shared)) in caches.into_iter().enumerate() {
                for (name, text) in
                    [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)]
                {
                    write(format!("cpu{p}/cache/index{index}/{name}"), text);
                }
            }
        }
    }

    #[test]
    fn pairs_are_found_by_what_they_share() {
        let directory = tempfile::tempdir().unwrap();
        machine(directory.path());
        let on = |allowed: &[usize]| places(directory.path(), allowed);
        let all = on(&[0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((all.shared, all.apart), (Some((0, 2)), Some((0, 4))));
        assert_eq!((all.private, all.last), (Some(512 << 10), Some(16 << 20)));
        // Siblings are chosen only if there is no other pair.
        assert_eq!(on(&[0, 1]).shared, Some((0, 1)));
        assert_eq!(on(&[0, 1]).apart, None);
        // The first processor shares its cache with no allowed processor, other processors do.
        let odd = on(&[0, 4, 6]);
        assert_eq!((odd.shared, odd.apart), (Some((4, 6)), Some((0, 4))));
        let one = on(&[5]);
        assert_eq!((one.first, one.shared, one.apart), (Some(5), None, None));
        assert_eq!(on(&[]), MeasurementPlaces::default());
    }

    #[test]
    fn without_a_word_on_caches_all_share_one() {
        let directory = tempfile::tempdir().unwrap();
        let places = places(directory.path(), &[1, 2]);
        assert_eq!((places.shared, places.apart), (Some((1, 2)), None));
        assert_eq!((places.private, places.last), (None, None));
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(parse("0-2,8"), Some(BTreeSet::from([0, 1, 2, 8])));
        for wrong in ["", "a", "1-", "1,,2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
