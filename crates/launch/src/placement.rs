//! Processors that each rank of a host may use.
//!
//! ```text
//!   Placement  the wishes of the command line: parts to spread ranks over, cores for each rank, parts to bind them to
//!   Seat       of a rank: the part, and the cores or hardware threads in it that no other rank has
//!   binding    of a rank: all processors of the parts, at the level of -bind-to, in which its seat lies
//! ```
//! By default rank `i` gets the `i`-th of equal shares of the cores, so that each rank has several cores for its threads.

use std::collections::BTreeSet;

use nix::sched::CpuSet;
use serde::{Deserialize, Serialize};
use weft_topology::{NodeTopology, PlacedProcessor, ProcessorSet, TopologyLevel, format_list};

/// Parts of a host that ranks are spread over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum MapPolicy {
    /// Ranks take cores in order.
    Slot,
    /// Ranks take a seat in each part of this level in turn.
    Level(TopologyLevel),
    /// A number of ranks takes seats in the first part of a level, the next ones in the next part.
    PerPart { ranks: usize, level: TopologyLevel },
}

/// Binding of ranks to processors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BindPolicy {
    /// An equal share of the cores for each rank, if there is a core for each rank. Otherwise ranks are not bound.
    Share,
    /// Ranks are not bound.
    None,
    /// Ranks are bound to their part of this level.
    Level(TopologyLevel),
    /// Ranks are bound to these processors, in turn.
    Sets(Vec<ProcessorSet>),
}

/// Order in which ranks take the seats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RankOrder {
    /// In the order in which seats are taken.
    #[default]
    Slot,
    /// All seats of a part before the seats of the next part.
    Fill,
}

/// Wishes for the processors of ranks. Where a wish is absent, the others decide.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Placement {
    /// Parts that ranks are spread over.
    pub map: Option<MapPolicy>,
    /// Parts that ranks are bound to.
    pub bind: Option<BindPolicy>,
    /// Number of cores for each rank, or of hardware threads if ranks are bound to those.
    pub cores_each: Option<usize>,
    /// Ranks may share the cores that `cores_each` demands.
    pub overload: bool,
    /// Order of the ranks.
    pub order: RankOrder,
}

/// Cores or hardware threads for one rank.
struct Seat {
    part: usize,
    processors: Vec<usize>,
}

/// A part that seats are taken from, as cores or hardware threads.
struct Part<'t> {
    units: Vec<Vec<&'t PlacedProcessor>>,
    /// Number of units that are taken.
    taken: usize,
}

/// Splits processors, which are neighbours in each group, into the groups of `level`.
fn split<'t>(
    processors: &[&'t PlacedProcessor],
    level: TopologyLevel,
) -> Vec<Vec<&'t PlacedProcessor>> {
    let same = |a: &&PlacedProcessor, b: &&PlacedProcessor| a.group(level) == b.group(level);
    processors.chunk_by(same).map(<[_]>::to_vec).collect()
}

impl Placement {
    /// Returns true if ranks get equal shares of the cores.
    pub fn is_share(&self) -> bool {
        match self.bind {
            None => matches!(self.map, None | Some(MapPolicy::Slot)) && self.cores_each.is_none(),
            Some(BindPolicy::Share) => true,
            Some(_) => false,
        }
    }

    /// Returns the processors of each of `ranks` ranks, or `None` if ranks are not bound. An error names the option and the limit.
    pub fn plan(
        &self,
        topology: &NodeTopology,
        ranks: usize,
    ) -> Result<Option<Vec<ProcessorSet>>, String> {
        if topology.processors().is_empty() {
            return Ok(None);
        }
        let map = match (&self.bind, self.map, self.cores_each) {
            (Some(BindPolicy::None), ..) => return Ok(None),
            (Some(BindPolicy::Sets(sets)), ..) => return given(sets, topology, ranks).map(Some),
            _ if self.is_share() => return Ok(share(topology, ranks)),
            (_, Some(map), _) => map,
            (Some(BindPolicy::Level(level)), None, None) => MapPolicy::Level(*level),
            (_, None, _) => MapPolicy::Slot,
        };
        let bind = match (&self.bind, map, self.cores_each) {
            (Some(BindPolicy::Level(level)), ..) => *level,
            (_, MapPolicy::Level(level) | MapPolicy::PerPart { level, .. }, None) => level,
            _ => TopologyLevel::Core,
        };
        let mut seats = self.seats(topology, ranks, map, bind)?;
        if self.order == RankOrder::Fill {
            seats.sort_by_key(|seat| seat.part);
        }
        let around = |seat: &Seat| {
            let inside = |p: &&PlacedProcessor| seat.processors.contains(&p.number);
            let all = topology.processors();
            let groups: BTreeSet<u32> = all.iter().filter(inside).map(|p| p.group(bind)).collect();
            all.iter().filter(|p| groups.contains(&p.group(bind))).map(|p| p.number).collect()
        };
        Ok(Some(seats.iter().map(around).collect()))
    }

    /// Takes a seat for each rank.
    fn seats(
        &self,
        topology: &NodeTopology,
        ranks: usize,
        map: MapPolicy,
        bind: TopologyLevel,
    ) -> Result<Vec<Seat>, String> {
        let each = self.cores_each.unwrap_or(1);
        let level = match map {
            MapPolicy::Slot => TopologyLevel::Node,
            // Cores in order. A rank may have more than one of them.
            MapPolicy::Level(level) if level <= TopologyLevel::Core => TopologyLevel::Node,
            MapPolicy::Level(level) | MapPolicy::PerPart { level, .. } => level,
        };
        let is_thread =
            bind == TopologyLevel::Thread || map == MapPolicy::Level(TopologyLevel::Thread);
        let unit = if is_thread { TopologyLevel::Thread } else { TopologyLevel::Core };
        let part = |group: Vec<_>| Part { units: split(&group, unit), taken: 0 };
        let mut parts: Vec<Part> = topology.groups(level).into_iter().map(part).collect();
        let largest = parts.iter().map(|part| part.units.len()).max().unwrap_or(0);
        let (unit, name) = (part_name(unit), part_name(level));
        if each > largest {
            return Err(format!(
                "PE={each} of -map-by, or -bind-to core:{each}: the largest {name} has {largest} {unit}s that may be used; a smaller PE, or \
                 larger parts"
            ));
        }
        let all: usize = parts.iter().map(|part| part.units.len()).sum();
        let full = || {
            format!(
                "PE={each} of -map-by, or -bind-to core:{each}: {ranks} ranks need {} {unit}s, this host has {all} that may be used, and no \
                 {name} is left with {each}; fewer ranks, a smaller PE, or :OVERSUBSCRIBE",
                ranks * each
            )
        };
        let may_share = self.cores_each.is_none() || self.overload;
        let mut seats = Vec::with_capacity(ranks);
        for rank in 0..ranks {
            let at = match map {
                MapPolicy::PerPart { ranks: most, .. } if rank / most >= parts.len() => {
                    let count = parts.len();
                    return Err(format!(
                        "-map-by ppr:{most}: {ranks} ranks, but this host has {count} {name}s for {} ranks; fewer \
                         ranks, or more in each",
                        count * most
                    ));
                }
                MapPolicy::PerPart { ranks: most, .. } => {
                    let at = rank / most;
                    parts[at].is_free(each).then_some(at)
                }
                _ => {
                    let next = seats.last().map_or(0, |seat: &Seat| seat.part + 1);
                    let mut turn = (next..parts.len()).chain(0..next);
                    turn.find(|&at| parts[at].is_free(each))
                }
            };
            let at = match at {
                Some(at) => at,
                None if may_share => again(&mut parts, each, map, rank).ok_or_else(full)?,
                None => return Err(full()),
            };
            seats.push(Seat { part: at, processors: parts[at].take(each) });
        }
        Ok(seats)
    }
}

impl Part<'_> {
    fn is_free(&self, each: usize) -> bool {
        self.taken + each <= self.units.len()
    }

    fn take(&mut self, each: usize) -> Vec<usize> {
        let units = &self.units[self.taken..self.taken + each];
        self.taken += each;
        units.iter().flatten().map(|processor| processor.number).collect()
    }
}

/// Makes all parts free again, so that ranks share cores. Returns the part for `rank`, or `None` if that part is too small.
fn again(parts: &mut [Part], each: usize, map: MapPolicy, rank: usize) -> Option<usize> {
    let first = match map {
        MapPolicy::PerPart { ranks, .. } => rank / ranks,
        _ => 0,
    };
    parts.iter_mut().for_each(|part| part.taken = 0);
    let mut fitting = (first..parts.len()).filter(|&at| parts[at].is_free(each));
    match map {
        MapPolicy::PerPart { .. } => fitting.next().filter(|&at| at == first),
        _ => fitting.next(),
    }
}

/// Returns the name of a part of `level` in messages.
fn part_name(level: TopologyLevel) -> &'static str {
    match level {
        TopologyLevel::Thread => "hardware thread",
        TopologyLevel::Core => "core",
        TopologyLevel::L2 => "L2 cache",
        TopologyLevel::Cache => "last-level cache",
        TopologyLevel::Numa => "NUMA domain",
        TopologyLevel::Socket => "socket",
        TopologyLevel::Node => "host",
    }
}

/// Gives the sets to the ranks in turn, if all their processors exist.
fn given(
    sets: &[ProcessorSet],
    topology: &NodeTopology,
    ranks: usize,
) -> Result<Vec<ProcessorSet>, String> {
    let known: ProcessorSet = topology.processors().iter().map(|p| p.number).collect();
    match sets.iter().flatten().find(|processor| !known.contains(processor)) {
        Some(missing) => Err(format!(
            "-bind-to user: processor {missing} may not be used on this host; the processors are {}",
            format_list(known)
        )),
        None => Ok((0..ranks).map(|rank| sets[rank % sets.len()].clone()).collect()),
    }
}

/// Returns disjoint, equal shares of the cores, or `None` if there are fewer cores than ranks, or a single rank.
fn share(topology: &NodeTopology, ranks: usize) -> Option<Vec<ProcessorSet>> {
    let cores = topology.groups(TopologyLevel::Core);
    let count = cores.len();
    let share = |rank: usize| {
        let cores = cores[rank * count / ranks..(rank + 1) * count / ranks].iter();
        cores.flatten().map(|processor| processor.number).collect()
    };
    (ranks > 1 && ranks <= count).then(|| (0..ranks).map(share).collect())
}

/// Describes processors for the user: their numbers, and the parts in which they lie.
pub fn describe(topology: &NodeTopology, processors: &ProcessorSet) -> String {
    let inside = || processors.iter().filter_map(|&number| topology.processor(number));
    let groups = |level| {
        let all: BTreeSet<usize> = inside().map(|p| p.group(level) as usize).collect();
        format_list(all)
    };
    let domains: BTreeSet<usize> = inside().filter_map(|processor| processor.numa).collect();
    let numa = match domains.is_empty() {
        true => groups(TopologyLevel::Numa),
        false => format_list(domains),
    };
    format!(
        "processors {} (core {}, L3 {}, NUMA {numa}, socket {})",
        format_list(processors.iter().copied()),
        groups(TopologyLevel::Core),
        groups(TopologyLevel::Cache),
        groups(TopologyLevel::Socket)
    )
}

/// Returns the processors as a set for the system call, or `None` if a processor's number is too large for the set.
pub fn set(processors: &ProcessorSet) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    processors.iter().try_for_each(|&processor| set.set(processor)).ok()?;
    Some(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_topology::fake::FakeMachine;

    fn topology(machine: &FakeMachine) -> NodeTopology {
        NodeTopology::read(&machine.sysfs(), &ProcessorSet::new())
    }

    fn lists(placement: &Placement, topology: &NodeTopology, ranks: usize) -> Vec<String> {
        let plan = placement.plan(topology, ranks).unwrap().unwrap();
        plan.into_iter().map(format_list).collect()
    }

    fn by(map: MapPolicy) -> Placement {
        Placement { map: Some(map), ..Placement::default() }
    }

    fn bound(level: TopologyLevel) -> Placement {
        Placement { bind: Some(BindPolicy::Level(level)), ..Placement::default() }
    }

    #[test]
    fn shares_are_disjoint_and_cover_the_machine() {
        let mut machine = FakeMachine::epyc_rome();
        machine.processors.retain(|processor| processor.core < 20);
        let topology = topology(&machine);
        let default = Placement::default();
        for ranks in 2..=20 {
            let plan = default.plan(&topology, ranks).unwrap().unwrap();
            assert_eq!(plan.len(), ranks);
            assert!(plan.iter().all(|share| share.len() >= 2 * (20 / ranks)));
            assert_eq!(plan.iter().map(ProcessorSet::len).sum::<usize>(), 40);
            assert_eq!(plan.iter().flatten().collect::<BTreeSet<_>>().len(), 40);
        }
        for ranks in [0, 1, 21] {
            assert_eq!(default.plan(&topology, ranks), Ok(None), "{ranks}");
        }
        let none =
            Placement { bind: Some(BindPolicy::None), ..by(MapPolicy::Level(TopologyLevel::Numa)) };
        assert_eq!(none.plan(&topology, 2), Ok(None));
        assert_eq!(bound(TopologyLevel::Core).plan(&NodeTopology::default(), 2), Ok(None));
    }

    #[test]
    fn a_core_each_in_turn() {
        let vm = topology(&FakeMachine::small_vm());
        assert_eq!(lists(&bound(TopologyLevel::Core), &vm, 3), ["0", "1", "0"]);
        let genoa = topology(&FakeMachine::epyc_genoa(4));
        let core = bound(TopologyLevel::Core);
        assert_eq!(lists(&core, &genoa, 193)[191..], ["191,383", "0,192"]);
        assert_eq!(lists(&bound(TopologyLevel::Thread), &genoa, 3), ["0", "192", "1"]);
    }

    #[test]
    fn ranks_take_parts_in_turn() {
        let genoa = topology(&FakeMachine::epyc_genoa(4));
        for (level, expected) in [
            (TopologyLevel::Cache, ["0-7,192-199", "8-15,200-207", "16-23,208-215"]),
            (TopologyLevel::Numa, ["0-23,192-215", "24-47,216-239", "48-71,240-263"]),
            (TopologyLevel::Socket, ["0-95,192-287", "96-191,288-383", "0-95,192-287"]),
            (TopologyLevel::Core, ["0,192", "1,193", "2,194"]),
        ] {
            assert_eq!(lists(&by(MapPolicy::Level(level)), &genoa, 3), expected, "{level:?}");
            assert_eq!(lists(&bound(level), &genoa, 3), expected, "{level:?}");
        }
        // Ranks of the same cache have cores of their own.
        let cores = Placement {
            bind: Some(BindPolicy::Level(TopologyLevel::Core)),
            ..by(MapPolicy::Level(TopologyLevel::Cache))
        };
        let plan = lists(&cores, &genoa, 192);
        assert_eq!(plan[..2], ["0,192", "8,200"]);
        assert_eq!(plan[24..26], ["1,193", "9,201"]);
        assert_eq!(plan.iter().collect::<BTreeSet<_>>().len(), 192);
        // Ranks in the order of the seats' parts.
        let fill = lists(&Placement { order: RankOrder::Fill, ..cores }, &genoa, 48);
        assert_eq!(fill[..4], ["0,192", "1,193", "8,200", "9,201"]);
        // Slots with the cache that each of them lies in.
        let slots = Placement { map: Some(MapPolicy::Slot), ..bound(TopologyLevel::Cache) };
        assert_eq!(lists(&slots, &genoa, 9)[7..], ["0-7,192-199", "8-15,200-207"]);
    }

    #[test]
    fn several_cores_for_each_rank() {
        let genoa = topology(&FakeMachine::epyc_genoa(1));
        let four = |map| Placement { cores_each: Some(4), ..by(map) };
        let cache = four(MapPolicy::Level(TopologyLevel::Cache));
        let plan = lists(&cache, &genoa, 48);
        assert_eq!(
            (&*plan[0], &*plan[23], &*plan[24]),
            ("0-3,192-195", "184-187,376-379", "4-7,196-199")
        );
        let error = cache.plan(&genoa, 49).unwrap_err();
        assert!(
            error.contains("PE=4") && error.contains("196 cores") && error.contains("192"),
            "{error}"
        );
        let wide = Placement { cores_each: Some(9), ..cache.clone() };
        let error = wide.plan(&genoa, 1).unwrap_err();
        assert!(error.contains("largest last-level cache has 8 cores"), "{error}");
        let shared = Placement { overload: true, ..cache };
        assert_eq!(lists(&shared, &genoa, 49)[48], "0-3,192-195");
        let slots = Placement { cores_each: Some(3), ..by(MapPolicy::Slot) };
        assert_eq!(lists(&slots, &genoa, 3)[2], "6-8,198-200");
        let threads = Placement { cores_each: Some(2), ..bound(TopologyLevel::Thread) };
        assert_eq!(lists(&threads, &genoa, 2), ["0,192", "1,193"]);
    }

    #[test]
    fn a_number_of_ranks_in_each_part() {
        let xeon = topology(&FakeMachine::xeon(4));
        let two = MapPolicy::PerPart { ranks: 2, level: TopologyLevel::Numa };
        let plan = lists(&by(two), &xeon, 16);
        assert_eq!(plan[..3], ["0-13,112-125", "0-13,112-125", "14-27,126-139"]);
        let cores = Placement { cores_each: Some(7), ..by(two) };
        assert_eq!(lists(&cores, &xeon, 16)[1], "7-13,119-125");
        let error = by(two).plan(&xeon, 17).unwrap_err();
        assert!(error.contains("17 ranks") && error.contains("8 NUMA domains"), "{error}");
        let eight = Placement { cores_each: Some(8), ..by(two) };
        assert!(eight.plan(&xeon, 2).unwrap_err().contains("PE=8"));
    }

    #[test]
    fn masks_and_odd_machines_have_places() {
        let allowed = ProcessorSet::from([3, 8, 9, 120]);
        let part = topology(&FakeMachine::epyc_genoa(1)).restricted(&allowed);
        let cache = by(MapPolicy::Level(TopologyLevel::Cache));
        assert_eq!(lists(&cache, &part, 5), ["3", "8-9", "120", "8-9", "3"]);
        let laptop = topology(&FakeMachine::hybrid_laptop());
        let plan = lists(&bound(TopologyLevel::L2), &laptop, 9);
        assert_eq!(plan[5..], ["10-11", "12-15", "16-19", "20-21"]);
        let arm = topology(&FakeMachine::neoverse());
        assert_eq!(lists(&bound(TopologyLevel::Cache), &arm, 2), ["0", "1"]);
    }

    #[test]
    fn named_processors_must_exist() {
        let vm = topology(&FakeMachine::small_vm());
        let user = |sets: &[&[usize]]| Placement {
            bind: Some(BindPolicy::Sets(
                sets.iter().map(|set| set.iter().copied().collect()).collect(),
            )),
            ..Placement::default()
        };
        assert_eq!(lists(&user(&[&[1], &[0, 1]]), &vm, 3), ["1", "0-1", "1"]);
        let error = user(&[&[1], &[7]]).plan(&vm, 2).unwrap_err();
        assert!(error.contains("processor 7") && error.contains("are 0-1"), "{error}");
    }

    #[test]
    fn processors_are_described_by_their_parts() {
        let genoa = topology(&FakeMachine::epyc_genoa(4));
        let text = describe(&genoa, &ProcessorSet::from([100, 292]));
        assert_eq!(text, "processors 100,292 (core 100, L3 12, NUMA 4, socket 1)");
    }

    #[test]
    fn this_machine_has_cores() {
        assert!(NodeTopology::here().count(TopologyLevel::Core) > 0);
    }
}
