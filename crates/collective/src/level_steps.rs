//! Levels of a node at which the ranks of a communicator form groups: caches, NUMA domains and sockets.
//!
//! ```text
//!   ranks 0 .. 11 on two sockets of two caches      0 1 2 | 3 4 5     6 7 8 | 9 10 11
//!   step of the caches: 4 groups of 3               0       3         6       9            the leaders
//!   step of the sockets: 2 groups of 2 leaders      0                 6
//! ```
//! The innermost level with several groups, at least one of which has several ranks, is the first step. The leaders of its groups
//! form groups at a level farther out, and so on. A level at which every rank is alone, or all ranks are together, is no step.

use weft_fabric::copies::{ProcessorGroups, TopologyLevel};

/// Levels that may be steps, from near to far. The threads of a core and the cores of a cache of level 2 are near each other
/// already.
const LEVELS: [TopologyLevel; 3] =
    [TopologyLevel::Cache, TopologyLevel::Numa, TopologyLevel::Socket];

/// Groups of the members at one level. The members are all ranks at the first step, and the leaders of the step before at each
/// further step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelStep {
    /// Level of the groups.
    pub level: TopologyLevel,
    /// Number of groups.
    pub groups: u16,
    /// Maximum number of members of a group.
    pub largest: u16,
    /// True if each group has consecutive members.
    pub contiguous: bool,
    /// True if all groups have the same number of members.
    pub even: bool,
}

/// All steps from the ranks of a communicator on one node to a single group of leaders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LevelSteps {
    steps: [Option<LevelStep>; LEVELS.len()],
    /// Nearest level at which all ranks are in one group, if the places of all ranks are known.
    common: Option<TopologyLevel>,
    /// True if the ranks are a part of the ranks of a composition, whose steps follow each other.
    is_part: bool,
}

/// Numbers each member's group, in the order of their first members. A NUMA domain of several sockets is a group for each socket,
/// because it says nothing about the distance between the sockets. All members are one group if they have the same number.
pub(crate) fn numbered(groups: &[ProcessorGroups], level: TopologyLevel) -> Vec<usize> {
    if groups.windows(2).all(|pair| pair[0].number(level) == pair[1].number(level)) {
        return vec![0; groups.len()];
    }
    let mut found: Vec<[u32; 2]> = Vec::new();
    let mut number = |group: &ProcessorGroups| {
        let key = [group.socket, group.number(level)];
        found.iter().position(|&other| other == key).unwrap_or_else(|| {
            found.push(key);
            found.len() - 1
        })
    };
    groups.iter().map(&mut number).collect()
}

impl LevelSteps {
    /// The places of the ranks are not known, or the ranks are on several nodes.
    pub const UNKNOWN: LevelSteps =
        LevelSteps { steps: [None; LEVELS.len()], common: None, is_part: false };

    /// Finds the steps of ranks whose processors are in `groups`. All ranks are on one node.
    pub fn of(groups: &[ProcessorGroups]) -> LevelSteps {
        let mut found = LevelSteps { common: Some(TopologyLevel::Node), ..LevelSteps::default() };
        let mut members = groups.to_vec();
        let mut free = found.steps.iter_mut();
        for level in LEVELS {
            let numbers = numbered(&members, level);
            let count = numbers.iter().max().map_or(0, |last| last + 1);
            if count > 1 && count < members.len() {
                let sizes = (0..count).map(|group| numbers.iter().filter(|&&n| n == group).count());
                let largest = sizes.max().unwrap_or(0);
                *free.next().expect("a place for each level") = Some(LevelStep {
                    level,
                    groups: count as u16,
                    largest: largest as u16,
                    contiguous: numbers.is_sorted(),
                    even: count * largest == members.len(),
                });
                let mut next = 0;
                let is_leader = |group: usize| {
                    let is_first = group == next;
                    next += usize::from(is_first);
                    is_first
                };
                let firsts: Vec<bool> = numbers.iter().copied().map(is_leader).collect();
                let leaders = members.iter().zip(firsts).filter(|(_, is_first)| *is_first);
                members = leaders.map(|(&member, _)| member).collect();
            }
        }
        let is_one = |level| numbered(groups, level).iter().all(|&n| n == 0);
        let together = |&level: &TopologyLevel| is_one(level) && is_one(TopologyLevel::Socket);
        if let Some(level) = LEVELS.into_iter().find(together) {
            found.common = Some(level);
        }
        found
    }

    /// Returns the first step: the groups in which the ranks are.
    pub fn first(&self) -> Option<LevelStep> {
        self.steps[0]
    }

    /// Returns the steps of the leaders of the first step's groups.
    pub fn of_leaders(&self) -> LevelSteps {
        let [_, second, third] = self.steps;
        LevelSteps { steps: [second, third, None], ..*self }.as_part()
    }

    /// Returns the steps within a group of the first step, which has none.
    pub fn of_group(&self) -> LevelSteps {
        let common = self.first().map(|step| step.level).or(self.common);
        LevelSteps { steps: [None; LEVELS.len()], common, ..*self }.as_part()
    }

    /// Returns the same steps, as those of a part of the ranks of a composition.
    pub fn as_part(self) -> LevelSteps {
        LevelSteps { is_part: true, ..self }
    }

    /// Iterates over the steps from near to far.
    pub fn iter(&self) -> impl Iterator<Item = LevelStep> {
        self.steps.into_iter().flatten()
    }

    /// Returns the maximum number of ranks that are in one group of `level`, if ranks of several such groups are there.
    pub fn within(&self, level: TopologyLevel) -> Option<f64> {
        let common = self.common.filter(|&common| common > level)?;
        debug_assert!(common > level);
        let near = self.iter().filter(|step| step.level <= level);
        Some(near.map(|step| f64::from(step.largest)).product())
    }

    /// Returns the level at which most pairs of ranks meet whose numbers differ by `difference`, if groups have consecutive ranks.
    /// Returns `None` if the places of the ranks are not known, or if all ranks share a cache, unless they carry out a step of a
    /// composition.
    pub fn at_difference(&self, difference: f64) -> Option<TopologyLevel> {
        let common = self.common.filter(|&common| common > TopologyLevel::Cache || self.is_part)?;
        let mut size = 1.0;
        let is_within = |step: &LevelStep| {
            size *= f64::from(step.largest);
            difference < size
        };
        Some(self.iter().find(is_within).map_or(common, |step| step.level))
    }

    /// Returns the sum of `cost` over the pairs of ranks with successive numbers, if groups have consecutive ranks. Returns `None` if
    /// the places of the `ranks` ranks are not known, or if all ranks share a cache, unless they carry out a step of a composition.
    pub fn along_neighbors(&self, ranks: f64, cost: impl Fn(TopologyLevel) -> f64) -> Option<f64> {
        let common = self.common.filter(|&common| common > TopologyLevel::Cache || self.is_part)?;
        let (mut members, mut sum) = (ranks, 0.0);
        for step in self.iter() {
            sum += (members - f64::from(step.groups)) * cost(step.level);
            members = step.groups.into();
        }
        Some(sum + (members - 1.0) * cost(common))
    }

    /// Iterates over the levels at which members of groups meet, from near to far, with the maximum number of members of a group. There
    /// are none if the places of the `ranks` ranks are not known, or if the ranks form no groups.
    pub fn stages(&self, ranks: f64) -> impl Iterator<Item = (TopologyLevel, f64)> {
        let last = self.iter().last().map_or(ranks, |step| step.groups.into());
        let common = self.common.filter(|_| self.first().is_some()).map(|common| (common, last));
        self.iter().map(|step| (step.level, step.largest.into())).chain(common)
    }

    /// Returns the mean of `cost` over the pairs of `ranks` ranks, by the nearest level at which both meet. Returns `None` if the
    /// places of the ranks are not known, or if all ranks share a cache.
    pub fn mean(&self, ranks: f64, cost: impl Fn(TopologyLevel) -> f64) -> Option<f64> {
        let common = self.common.filter(|&common| common > TopologyLevel::Cache)?;
        let (mut size, mut met, mut sum) = (1.0, 0.0, 0.0);
        for step in self.iter() {
            size = (size * f64::from(step.largest)).min(ranks);
            let within = ((size - 1.0) / (ranks - 1.0).max(1.0)).max(met);
            sum += (within - met) * cost(step.level);
            met = within;
        }
        Some(sum + (1.0 - met) * cost(common))
    }
}

/// Returns each member's group at the first step of `steps`, by a number for comparison.
pub(crate) fn first_groups(steps: &LevelSteps, groups: &[ProcessorGroups]) -> Option<Vec<usize>> {
    Some(numbered(groups, steps.first()?.level))
}

#[cfg(test)]
mod tests {
    use super::*;
    use TopologyLevel::{Cache, Node, Numa, Socket};

    /// Returns the groups of processors with `cache`, `numa` and `socket` processors in a group.
    fn machine(processors: impl IntoIterator<Item = u32>, sizes: [u32; 3]) -> Vec<ProcessorGroups> {
        let [cache, numa, socket] = sizes;
        let place = |p: u32| ProcessorGroups {
            core: p,
            cache: p / cache,
            numa: p / numa,
            socket: p / socket,
        };
        processors.into_iter().map(place).collect()
    }

    fn steps(groups: &[ProcessorGroups]) -> Vec<(TopologyLevel, u16, u16, bool)> {
        let all = LevelSteps::of(groups);
        all.iter().map(|step| (step.level, step.groups, step.largest, step.contiguous)).collect()
    }

    const GENOA: [u32; 3] = [8, 24, 96];

    #[test]
    fn each_level_groups_the_leaders_of_the_level_before() {
        let all = machine(0..192, GENOA);
        assert_eq!(steps(&all), [(Cache, 24, 8, true), (Numa, 8, 3, true), (Socket, 2, 4, true)]);
        assert_eq!(LevelSteps::of(&all).common, Some(Node));
        // Half of a socket: the leaders of its NUMA domains are all in one socket.
        let half = machine(0..48, GENOA);
        assert_eq!(steps(&half), [(Cache, 6, 8, true), (Numa, 2, 3, true)]);
        assert_eq!(LevelSteps::of(&half).common, Some(Socket));
        // Without a NUMA domain between cache and socket.
        let rome = machine(0..128, [4, 128, 64]);
        assert_eq!(steps(&rome), [(Cache, 32, 4, true), (Socket, 2, 16, true)]);
    }

    #[test]
    fn levels_without_groups_of_several_are_left_out() {
        // A rank in each cache, three in each NUMA domain.
        let sparse = machine((0..192).step_by(8), GENOA);
        assert_eq!(steps(&sparse), [(Numa, 8, 3, true), (Socket, 2, 4, true)]);
        assert_eq!(steps(&machine(0..8, GENOA)), []);
        assert_eq!(LevelSteps::of(&machine(0..8, GENOA)).common, Some(Cache));
        assert_eq!(steps(&machine([0, 96], GENOA)), []);
        assert_eq!(steps(&machine([0, 1, 96], GENOA)), [(Cache, 2, 2, true)]);
        assert_eq!(steps(&[]), []);
        assert_eq!(steps(&[ProcessorGroups::default(); 5]), []);
    }

    #[test]
    fn groups_are_those_of_the_members_and_their_leaders_the_lowest() {
        // Ranks dealt to the sockets in turn.
        let dealt = machine((0..16).map(|rank| rank % 2 * 96 + rank / 2), GENOA);
        assert_eq!(steps(&dealt), [(Cache, 2, 8, false)]);
        let groups = first_groups(&LevelSteps::of(&dealt), &dealt).unwrap();
        assert!(groups.iter().enumerate().all(|(rank, &group)| group == rank % 2));
        // NUMA domains within a cache: the cache is the nearest level, and its leaders are in different sockets.
        let clusters = machine(0..112, [56, 14, 56]);
        assert_eq!(steps(&clusters), [(Cache, 2, 56, true)]);
    }

    #[test]
    fn steps_of_parts_are_parts_of_the_steps() {
        let all = LevelSteps::of(&machine(0..192, GENOA));
        let of = |processors| LevelSteps::of(&machine(processors, GENOA)).as_part();
        let leaders: Vec<u32> = (0..192).step_by(8).collect();
        assert_eq!(all.of_leaders(), of(leaders));
        assert_eq!(all.of_group(), of((0..8).collect()));
        let last = all.of_leaders().of_leaders().of_leaders();
        assert_eq!((last.first(), last.common), (None, Some(Node)));
    }

    #[test]
    fn near_numbers_meet_at_near_levels() {
        let all = LevelSteps::of(&machine(0..192, GENOA));
        let levels = [1.0, 7.0, 8.0, 16.0, 32.0, 64.0, 128.0].map(|by| all.at_difference(by));
        assert_eq!(levels, [Cache, Cache, Numa, Numa, Socket, Socket, Node].map(Some));
        let group = LevelSteps::of(&machine(0..8, GENOA));
        assert_eq!(group.at_difference(1.0), None);
        assert_eq!(group.as_part().at_difference(1.0), Some(Cache));
    }

    #[test]
    fn neighbors_meet_at_each_boundary_once() {
        let count = |level| {
            let all = LevelSteps::of(&machine(0..192, GENOA));
            all.along_neighbors(192.0, |at| f64::from(u8::from(at == level)))
        };
        let counts = [Cache, Numa, Socket, Node].map(|level| count(level).unwrap());
        assert_eq!(counts, [168.0, 16.0, 6.0, 1.0]);
        let group = LevelSteps::of(&machine(0..8, GENOA));
        assert_eq!(group.along_neighbors(8.0, |_| 1.0), None);
        assert_eq!(group.as_part().along_neighbors(8.0, |_| 1.0), Some(7.0));
    }

    #[test]
    fn a_mean_counts_each_pair_at_its_level() {
        let cost = |level| match level {
            Cache => 1.0,
            Numa => 10.0,
            Socket => 100.0,
            _ => 1000.0,
        };
        let all = LevelSteps::of(&machine(0..192, GENOA));
        // Of 191 others, 7 share the cache, 16 more the NUMA domain, 72 more the socket.
        let expected = (7.0 + 16.0 * 10.0 + 72.0 * 100.0 + 96.0 * 1000.0) / 191.0;
        assert!((all.mean(192.0, cost).unwrap() - expected).abs() < 1e-9);
        assert_eq!(all.of_group().mean(8.0, cost), None);
        assert_eq!(LevelSteps::default().mean(8.0, cost), None);
        assert_eq!(LevelSteps::of(&machine([0, 96], GENOA)).mean(2.0, cost), Some(1000.0));
    }
}
