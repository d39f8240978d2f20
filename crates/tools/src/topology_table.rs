//! The topology of a machine for people: its parts in a line, and a table by level.

use std::fmt::Write;
use weft_topology::{CacheKind, NodeTopology, PlacedProcessor, Sysfs, TopologyLevel, format_list};

/// Levels of the table, from large to small, with their names.
const LEVELS: [(TopologyLevel, &str); 6] = [
    (TopologyLevel::Socket, "socket"),
    (TopologyLevel::Numa, "NUMA domain"),
    (TopologyLevel::Cache, "last-level cache"),
    (TopologyLevel::L2, "L2 cache"),
    (TopologyLevel::Core, "core"),
    (TopologyLevel::Thread, "thread"),
];

/// Describes the machine in a line, as in `2 sockets, 8 NUMA domains, 24 last-level caches, 192 cores, 384 threads`.
pub fn summary(topology: &NodeTopology) -> String {
    let part = |&(level, name): &(TopologyLevel, &str)| {
        let count = topology.count(level);
        format!("{count} {name}{}", if count == 1 { "" } else { "s" })
    };
    let shown = LEVELS.iter().filter(|(level, _)| is_shown(topology, *level));
    shown.map(part).collect::<Vec<_>>().join(", ")
}

/// Returns false for caches of level 2 that are those of the cores or the last caches.
fn is_shown(topology: &NodeTopology, level: TopologyLevel) -> bool {
    let [cores, second, last] = [TopologyLevel::Core, TopologyLevel::L2, TopologyLevel::Cache]
        .map(|level| topology.count(level));
    level != TopologyLevel::L2 || second != cores && second != last
}

/// Formats `low`, or `low-high` if they differ.
fn range(values: impl Iterator<Item = usize> + Clone) -> String {
    let (low, high) = (values.clone().min().unwrap_or(0), values.max().unwrap_or(0));
    if low == high { low.to_string() } else { format!("{low}-{high}") }
}

/// Returns the table: for each level the number of groups, how many threads a group has, and the processors of the first group.
pub fn table(topology: &NodeTopology, sysfs: &Sysfs) -> String {
    let mut out = String::new();
    let head = ["level", "groups", "threads each", "processors of the first"];
    let mut row = |cells: [&str; 4]| {
        let [level, groups, threads, first] = cells;
        writeln!(out, "    {level:<26} {groups:>6} {threads:>13}   {first}")
            .expect("a string grows");
    };
    row(head);
    for (level, name) in LEVELS {
        if level == TopologyLevel::Thread || !is_shown(topology, level) {
            continue;
        }
        let groups = topology.groups(level);
        let Some(first) = groups.first() else { continue };
        let name = match cache_size(first[0], level, sysfs) {
            Some(kib) if kib >= 1 << 10 => format!("{name}, {} MiB", kib >> 10),
            Some(kib) => format!("{name}, {kib} KiB"),
            None => name.to_owned(),
        };
        let mut numbers: Vec<usize> = first.iter().map(|processor| processor.number).collect();
        numbers.sort_unstable();
        let threads = range(groups.iter().map(Vec::len));
        row([&name, &groups.len().to_string(), &threads, &format_list(numbers)]);
    }
    out
}

/// Returns the size of a processor's cache in KiB, if `level` is a level of caches.
fn cache_size(processor: &PlacedProcessor, level: TopologyLevel, sysfs: &Sysfs) -> Option<usize> {
    let caches = sysfs.caches(processor.number);
    let mut data = caches.iter().filter(|cache| cache.kind != CacheKind::Instruction);
    let cache = match level {
        TopologyLevel::L2 => data.find(|cache| cache.level == 2),
        TopologyLevel::Cache => data.max_by_key(|cache| cache.level),
        _ => None,
    };
    Some(cache?.size? >> 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_topology::ProcessorSet;
    use weft_topology::fake::FakeMachine;

    fn shown(machine: &FakeMachine) -> (String, String) {
        let sysfs = machine.sysfs();
        let topology = NodeTopology::read(&sysfs, &ProcessorSet::new());
        (summary(&topology), table(&topology, &sysfs))
    }

    #[test]
    fn a_large_node_fits_in_a_few_lines() {
        let (summary, table) = shown(&FakeMachine::epyc_genoa(4));
        let expected = "2 sockets, 8 NUMA domains, 24 last-level caches, 192 cores, 384 threads";
        assert_eq!(summary, expected);
        assert_eq!(
            table,
            "    level                      groups  threads each   processors of the first
    socket                          2           192   0-95,192-287
    NUMA domain                     8            48   0-23,192-215
    last-level cache, 32 MiB       24            16   0-7,192-199
    core                          192             2   0,192
"
        );
    }

    #[test]
    fn unequal_groups_show_a_range() {
        let (summary, table) = shown(&FakeMachine::hybrid_laptop());
        let expected =
            "1 socket, 1 NUMA domain, 2 last-level caches, 9 L2 caches, 16 cores, 22 threads";
        assert_eq!(summary, expected);
        assert!(table.contains("L2 cache, 2 MiB                 9           2-4"), "{table}");
    }
}
