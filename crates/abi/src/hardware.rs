//! Parts of this machine to which a process may be bound. They are read from /sys of Linux, and have hwloc's names.
//!
//! ```text
//!   processors  0 1 2 3 | 4 5 6 7      bound to 4 and 5: within one package (instance 4), one L3
//!   cores       --- ---   --- ---      cache (4), one core (4), but not within one processor
//!   packages    -------   -------
//! ```
//! An instance has the number of its first processor.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Processors, by the system's numbers.
type Processors = BTreeSet<u32>;

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
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = line.and_then(|list| parse(list.trim())).unwrap_or_default();
    survey(Path::new("/sys/devices/system"), &allowed)
}

/// Returns the parts in which a process may run that is bound to the processors `allowed`.
fn survey(system: &Path, allowed: &Processors) -> [HardwarePart; KINDS.len()] {
    let Some(&first) = allowed.first() else { return [HardwarePart::None; KINDS.len()] };
    let processor = system.join(format!("cpu/cpu{first}"));
    let topology = |names: [&str; 2]| {
        names.iter().find_map(|name| list(&processor.join("topology").join(name)))
    };
    let around = [
        topology(["package_cpus_list", "core_siblings_list"]),
        memory_node(system, first),
        topology(["die_cpus_list", "die_cpus_list"]),
        cache(&processor, 3),
        cache(&processor, 2),
        cache(&processor, 1),
        topology(["core_cpus_list", "thread_siblings_list"]),
        processor.is_dir().then(|| Processors::from([first])),
    ];
    around.map(|part| match part {
        None => HardwarePart::None,
        Some(part) if allowed.is_subset(&part) => {
            part.first().map_or(HardwarePart::None, |&p| HardwarePart::One(p))
        }
        Some(_) => HardwarePart::Several,
    })
}

/// Returns the processors of the NUMA node of `processor`.
fn memory_node(system: &Path, processor: u32) -> Option<Processors> {
    let nodes = fs::read_dir(system.join("node")).ok()?.flatten();
    let lists = nodes.filter_map(|node| list(&node.path().join("cpulist")));
    lists.into_iter().find(|list| list.contains(&processor))
}

/// Returns the processors that share the data cache of `level` with this processor.
fn cache(processor: &Path, level: u32) -> Option<Processors> {
    let caches = fs::read_dir(processor.join("cache")).ok()?.flatten().map(|entry| entry.path());
    let read = |path: &Path, name| fs::read_to_string(path.join(name)).unwrap_or_default();
    let fits = |path: &Path| {
        read(path, "level").trim().parse() == Ok(level)
            && read(path, "type").trim() != "Instruction"
    };
    list(&caches.into_iter().find(|path| fits(path))?.join("shared_cpu_list"))
}

fn list(file: &Path) -> Option<Processors> {
    parse(fs::read_to_string(file).ok()?.trim())
}

/// Parses `0-3,8`. Returns `None` if the text is empty or has another form.
fn parse(text: &str) -> Option<Processors> {
    let mut all = Processors::new();
    for range in text.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        all.extend(first.trim().parse::<u32>().ok()?..=last.trim().parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use HardwarePart::{None as Nothing, One, Several};

    /// Creates the files of a machine with two packages. Each package has two cores, and each core has two processors. The first
    /// four processors share an L3 cache.
    fn machine(name: &str) -> std::path::PathBuf {
        let root = std::env::temp_dir().join(format!("weft-{name}-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        };
        for p in 0..8 {
            let (half, pair) = (p / 4 * 4, p / 2 * 2);
            let (half, pair) = (format!("{half}-{}", half + 3), format!("{pair},{}", pair + 1));
            write(&format!("cpu/cpu{p}/topology/core_siblings_list"), &half);
            write(&format!("cpu/cpu{p}/topology/core_cpus_list"), &pair);
            let caches = [("0", "1", "Instruction"), ("1", "1", "Data"), ("2", "3", "Unified")];
            for (index, level, kind) in caches {
                let cache = format!("cpu/cpu{p}/cache/index{index}");
                write(&format!("{cache}/level"), level);
                write(&format!("{cache}/type"), kind);
                let shared = if level == "3" { &half } else { &pair };
                write(&format!("{cache}/shared_cpu_list"), shared);
            }
        }
        write("node/node0/cpulist", "0-1,4-5");
        write("node/node1/cpulist", "2-3,6-7");
        root
    }

    #[test]
    fn a_process_is_within_the_parts_that_hold_all_its_processors() {
        let root = machine("parts");
        let on = |list: &str| survey(&root, &parse(list).unwrap());
        // The expected parts are package, memory node, die, L3, L2, L1, core, processor.
        assert_eq!(on("5"), [One(4), One(0), Nothing, One(4), Nothing, One(4), One(4), One(5)]);
        assert_eq!(on("2-3"), [One(0), One(2), Nothing, One(0), Nothing, One(2), One(2), Several]);
        let apart = [One(4), Several, Nothing, One(4), Nothing, Several, Several, Several];
        assert_eq!(on("5-6"), apart);
        let all = [Several, Several, Nothing, Several, Nothing, Several, Several, Several];
        assert_eq!(on("0-7"), all);
        assert_eq!(on("99"), [Nothing; 8]);
        assert_eq!(survey(&root, &Processors::new()), [Nothing; 8]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn lists_of_processors_are_read() {
        assert_eq!(parse("0-2,8"), Some(Processors::from([0, 1, 2, 8])));
        assert_eq!(parse("7"), Some(Processors::from([7])));
        for wrong in ["", "a", "1-", "1,,2"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn this_machine_has_processors() {
        let parts = here();
        assert!(parts[KINDS.len() - 1] != Nothing, "{parts:?}");
    }
}
