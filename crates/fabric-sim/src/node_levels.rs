//! Transfers between the processors of a node whose machine file has levels: cache lines, copies, and the limits of their groups.
//!
//! ```text
//!   processors   0 1 2 3 | 4 5 6 7      level cache: within, between 0 and 1
//!                └──out──┘ └─into─┘     level node:  between 1 and 4: out of the first cache, within the node, into the second
//! ```
//! A line waits for nothing but other atomic operations on it, which pass it from processor to processor. Longer transfers wait for
//! the limits of all groups that they cross, in the order of their beginnings.
//!
//! The processor that posts a longer write or read does the copy itself, by loads and stores, so that its copies follow each other. Its
//! clock passes the time of the copy at the post, and a delay by limits when the copy begins, before its next poll. A message is no
//! such copy: sender and receiver pay for theirs as on every machine.

use crate::machine::{LevelName, Machine};
use crate::units::{Picoseconds, Rate};
use std::collections::HashMap;
use weft_fabric::RemoteAddr;
use weft_fabric::copies::{LINE, ProcessorGroups};

/// Costs of one level.
struct LevelPath {
    name: LevelName,
    processors: usize,
    line: Picoseconds,
    rewrite: Picoseconds,
    copy: Rate,
    within: Rate,
    out: Rate,
}

/// Times at which the limits of a group are free again.
#[derive(Debug, Clone, Copy, Default)]
struct ProcessorGroupState {
    within: Picoseconds,
    out: Picoseconds,
    into: Picoseconds,
}

/// A cache line on which atomic operations work: the time at which it is free, and the rank that has it.
struct LineState {
    free: Picoseconds,
    holder: usize,
}

/// Beginning and end of a transfer.
#[derive(Debug, Clone, Copy)]
pub struct CarriedSpan {
    /// Time from which no limit delays the transfer.
    pub begin: Picoseconds,
    /// Time at which the last byte arrives.
    pub end: Picoseconds,
}

/// Groups of all nodes, and the lines of atomic operations.
pub struct NodeLevels {
    per_node: usize,
    /// By rank, the time by which limits have delayed the rank's copies since its last poll began.
    delays: Vec<Picoseconds>,
    levels: Vec<LevelPath>,
    /// By level, the groups of all nodes.
    groups: Vec<Vec<ProcessorGroupState>>,
    lines: HashMap<(u64, u64), LineState>,
}

impl NodeLevels {
    /// Makes the state of `nodes` nodes. Returns `None` if the machine file has no levels.
    pub fn new(machine: &Machine, nodes: usize) -> Option<Box<NodeLevels>> {
        let limit = |rate: Option<Rate>| rate.unwrap_or(Rate::INFINITE);
        let path = |level: &crate::machine::ProcessorLevel| LevelPath {
            name: level.name,
            processors: level.processors.0,
            line: level.line.0,
            rewrite: level.rewrite.0,
            copy: level.copy,
            within: limit(level.within),
            out: limit(level.out),
        };
        let levels: Vec<LevelPath> = machine.level.iter().map(path).collect();
        let per_node = machine.ranks_per_node.0;
        let groups = levels.iter().map(|level| {
            vec![ProcessorGroupState::default(); nodes * per_node.div_ceil(level.processors)]
        });
        let groups = groups.collect();
        let delays = vec![0; nodes * per_node];
        let state = NodeLevels { per_node, delays, groups, levels, lines: HashMap::new() };
        (!state.levels.is_empty()).then(|| Box::new(state))
    }

    /// Returns the groups of a rank's processor. Ranks of a node have its processors in their order.
    pub fn groups_of(&self, rank: usize) -> ProcessorGroups {
        let mut groups = ProcessorGroups::default();
        for level in &self.levels {
            let number = (rank % self.per_node / level.processors) as u32;
            match level.name {
                LevelName::Core => groups.core = number,
                LevelName::Cache => groups.cache = number,
                LevelName::Numa => groups.numa = number,
                LevelName::Socket => groups.socket = number,
                LevelName::Node => {}
            }
        }
        groups
    }

    /// Returns the index of the nearest level at which two ranks of a node have a common group; `None` for a rank and itself.
    fn level(&self, a: usize, b: usize) -> Option<usize> {
        let (a, b) = (a % self.per_node, b % self.per_node);
        let common = |level: &LevelPath| a / level.processors == b / level.processors;
        self.levels.iter().position(common).filter(|_| a != b)
    }

    fn group(&mut self, level: usize, rank: usize) -> &mut ProcessorGroupState {
        let (node, processor) = (rank / self.per_node, rank % self.per_node);
        let size = self.levels[level].processors;
        let per_node = self.per_node.div_ceil(size);
        &mut self.groups[level][node * per_node + processor / size]
    }

    /// Returns the time for which `me` is busy with a write to a line that `peer` has read.
    pub fn rewrite(&self, me: usize, peer: usize) -> Picoseconds {
        self.level(me, peer).map_or(0, |level| self.levels[level].rewrite)
    }

    /// Returns the time for which a processor is busy that copies `bytes` bytes between its caches and those of another one, if no
    /// other transfer is in the way. A short transfer is a line that the processor does not wait for.
    pub fn copying(&self, a: usize, b: usize, bytes: usize) -> Picoseconds {
        let Some(level) = self.level(a, b).filter(|_| bytes > LINE) else { return 0 };
        let LevelPath { copy, within, .. } = self.levels[level];
        let below = self.levels[..level].iter().map(|level| level.out.time(bytes));
        below.fold(copy.time(bytes).max(within.time(bytes)), Picoseconds::max)
    }

    /// Moves `bytes` bytes from the caches of `from` to those of `to`, from `at` on.
    pub fn carry(&mut self, from: usize, to: usize, at: Picoseconds, bytes: usize) -> CarriedSpan {
        let Some(level) = self.level(from, to) else { return CarriedSpan { begin: at, end: at } };
        let LevelPath { line, within, .. } = self.levels[level];
        if bytes <= LINE {
            return CarriedSpan { begin: at, end: at + line };
        }
        let time = self.copying(from, to, bytes);
        let mut begin = at.max(self.group(level, from).within);
        for below in 0..level {
            begin = begin.max(self.group(below, from).out).max(self.group(below, to).into);
        }
        self.group(level, from).within = begin + within.time(bytes);
        for below in 0..level {
            let busy = begin + self.levels[below].out.time(bytes);
            self.group(below, from).out = busy;
            self.group(below, to).into = busy;
        }
        CarriedSpan { begin, end: begin + line + time }
    }

    /// Returns the time by which limits have delayed the copies of `rank` since its last poll began, and so all that it has posted
    /// after them.
    pub fn delay(&self, rank: usize) -> Picoseconds {
        self.delays[rank]
    }

    /// Delays what `rank` has posted after a copy.
    pub fn add_delay(&mut self, rank: usize, time: Picoseconds) {
        self.delays[rank] += time;
    }

    /// Sets the delay of `rank` to zero at the begin of a poll, because the rank's clock contains it by then.
    pub fn begin_poll(&mut self, rank: usize) {
        self.delays[rank] = 0;
    }

    /// Passes the line of the word at `target`, which `owner` has allocated, to `rank` for an atomic operation. Returns the time at
    /// which `rank` has the line.
    pub fn take_line(
        &mut self,
        owner: usize,
        target: RemoteAddr,
        rank: usize,
        now: Picoseconds,
    ) -> Picoseconds {
        let line = (target.key.0[0], target.addr / LINE as u64);
        let holder = self.lines.get(&line).map_or(owner, |line| line.holder);
        let free = self.lines.get(&line).map_or(0, |line| line.free);
        let cost = self.level(holder, rank).map_or(0, |level| self.levels[level].line);
        let free = free.max(now) + cost;
        self.lines.insert(line, LineState { free, holder: rank });
        free
    }
}
